//! The public suffix list: under which names anybody can register a domain of their own.
//!
//! Hosts are lower-case, in their ASCII form (`xn--…`), without port and trailing dot.

/// Returns the registrable domain of a host: `blog.shop.co.uk` belongs to `shop.co.uk`, and
/// `a.github.io` to itself. `None` if the host is a public suffix, or an address.
pub fn registrable_domain(host: &str) -> Option<&str> {
    if is_address(host) {
        return None;
    }
    psl::domain_str(host)
}

/// Whether the host is a suffix under which a registry sells domains: `com`, `co.uk`. One under
/// which somebody hosts the sites of others (`github.io`) is none.
pub fn is_registry_suffix(host: &str) -> bool {
    psl::suffix(host.as_bytes()).is_some_and(|suffix| suffix.typ() == Some(psl::Type::Icann) && suffix == host)
}

/// Whether the host is an IP address. The last label of a name is never a number.
fn is_address(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    host.contains(':') || !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_registrable_domains() {
        for (host, domain) in [
            ("shop.example", Some("shop.example")),
            ("a.b.shop.example", Some("shop.example")),
            ("shop.co.uk", Some("shop.co.uk")),
            ("blog.shop.co.uk", Some("shop.co.uk")),
            ("blog.shop.com.br", Some("shop.com.br")),
            ("co.uk", None),
            ("com", None),
            ("localhost", None),
            ("a.github.io", Some("a.github.io")),
            ("x.a.github.io", Some("a.github.io")),
            ("github.io", None),
            ("one.myshopify.com", Some("one.myshopify.com")),
            ("www.ck", Some("www.ck")),
            ("shop.xn--55qx5d.cn", Some("shop.xn--55qx5d.cn")),
            ("192.0.2.7", None),
            ("[2001:db8::1]", None),
            ("2001:db8::1", None),
            ("", None),
        ] {
            assert_eq!(registrable_domain(host), domain, "{host}");
        }
    }

    #[test]
    fn registries_sell_domains_under_their_suffixes() {
        for (host, is_suffix) in [
            ("com", true),
            ("co.uk", true),
            ("shop.co.uk", false),
            ("github.io", false),
            ("localhost", false),
            ("example", false),
        ] {
            assert_eq!(is_registry_suffix(host), is_suffix, "{host}");
        }
    }
}
