//! Hosts in their form for comparison: lower case, ASCII, without `www.`, port and trailing dot.

use std::borrow::Cow;
use std::sync::Arc;

pub use headcount_suffixes::is_registry_suffix;
use headcount_suffixes::registrable_domain;

use crate::text;

/// The longest name of a host (RFC 1035), and the longest part of one.
const MAX_NAME_LEN: usize = 253;
const MAX_LABEL_LEN: usize = 63;

/// Hosts. Each includes its subdomains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList(Arc<[String]>);

impl HostList {
    /// Creates a list of hosts that [`listed`] returned.
    pub fn new(hosts: impl IntoIterator<Item = String>) -> HostList {
        let mut hosts: Vec<String> = hosts.into_iter().collect();
        hosts.sort_unstable();
        HostList(hosts.into())
    }

    /// Whether a host or a parent of it is listed.
    pub fn covers(&self, host: &str) -> bool {
        let is_listed = |host: &str| self.0.binary_search_by(|listed| listed.as_str().cmp(host)).is_ok();
        !self.0.is_empty() && and_parents(host).any(is_listed)
    }
}

/// Returns a host in the form of lists. `None` if the text is not just a host: it has a scheme, a
/// port, a path or a wildcard.
pub fn listed(text: &str) -> Option<String> {
    let text = text.trim();
    let host = text::read_host(text)?;
    let is_alone = text.strip_suffix('.').unwrap_or(text).to_lowercase() == host;
    let host = in_ascii(&host);
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let is_label = |label: &str| (1..=MAX_LABEL_LEN).contains(&label.len());
    let is_number = host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let is_name = host.is_ascii() && host.len() <= MAX_NAME_LEN && host.split('.').all(is_label);
    let is_address = host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok());
    let is_host = if is_number { is_address } else { is_name };
    (is_alone && is_host).then(|| host.to_owned())
}

/// The site of an event or of its referrer.
pub(crate) struct SiteHost<'a> {
    /// The host, in the form of [`listed`].
    pub(crate) host: Cow<'a, str>,
    /// Whether it is an app. An app has a package name, whose parts have the reverse order of a
    /// host.
    pub(crate) is_app: bool,
}

impl<'a> SiteHost<'a> {
    /// The place of a host that was read from `address`.
    pub(crate) fn new(host: &'a str, address: &str) -> SiteHost<'a> {
        let is_scheme =
            |scheme: &&str| text::trimmed(address).get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
        let host = in_ascii(host.strip_prefix("www.").unwrap_or(host));
        SiteHost { host, is_app: ["android-app:", "ios-app:"].iter().any(is_scheme) }
    }

    /// The registered domain, under a public suffix; `None` for apps, addresses and names of a
    /// local network.
    pub(crate) fn domain(&self) -> Option<&str> {
        registrable_domain(&self.host).filter(|_| !self.is_app)
    }

    /// Whether both belong to one site.
    pub(crate) fn is_of_site(&self, other: &SiteHost<'_>) -> bool {
        self.host == other.host
            || end_alike(self.host.as_bytes(), other.host.as_bytes())
                && self.domain().is_some_and(|domain| other.domain() == Some(domain))
    }
}

/// Whether the last two labels are equal, as in hosts of one registrable domain. This is faster
/// than asking the suffix list.
fn end_alike(left: &[u8], right: &[u8]) -> bool {
    let same = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    let begins_label = |host: &[u8]| host.len() == same || host[host.len() - same - 1] == b'.';
    match left[left.len() - same..].iter().filter(|byte| **byte == b'.').count() {
        0 => false,
        1 => begins_label(left) && begins_label(right),
        _ => true,
    }
}

/// A host and all of its parents.
pub(crate) fn and_parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |host| host.bytes().position(|byte| byte == b'.').map(|dot| &host[dot + 1..]))
}

/// A host with its international labels as `xn--…`, as browsers send them.
fn in_ascii(host: &str) -> Cow<'_, str> {
    if host.is_ascii() {
        return Cow::Borrowed(host);
    }
    idna::domain_to_ascii(host).map_or(Cow::Borrowed(host), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_in_one_form() {
        for (text, host) in [
            ("shop.example", Some("shop.example")),
            (" Shop.Example. ", Some("shop.example")),
            ("www.shop.example", Some("shop.example")),
            ("MÜNCHEN.example", Some("xn--mnchen-3ya.example")),
            ("xn--mnchen-3ya.example", Some("xn--mnchen-3ya.example")),
            ("localhost", Some("localhost")),
            ("192.0.2.7", Some("192.0.2.7")),
            ("[2001:DB8::1]", Some("[2001:db8::1]")),
            ("com.acme.app", Some("com.acme.app")),
            ("my_host.example", Some("my_host.example")),
            ("https://shop.example", None),
            ("shop.example/a", None),
            ("shop.example:8080", None),
            ("user@shop.example", None),
            ("*.shop.example", None),
            (".shop.example", None),
            ("shop..example", None),
            ("shop example", None),
            ("192.0.2.777", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(listed(text).as_deref(), host, "{text}");
        }
        assert_eq!(listed(&format!("{}.example", "a".repeat(64))), None);
        assert_eq!(listed(&"a.".repeat(150)), None);
    }

    #[test]
    fn lists_cover_subdomains() {
        let list = HostList::new(["shop.example", "a.b.example"].map(str::to_owned));
        for (host, is_covered) in [
            ("shop.example", true),
            ("x.y.shop.example", true),
            ("myshop.example", false),
            ("b.example", false),
            ("c.a.b.example", true),
            ("example", false),
        ] {
            assert_eq!(list.covers(host), is_covered, "{host}");
        }
        assert!(!HostList::default().covers("shop.example"));
    }

    #[test]
    fn a_site_is_a_registered_domain() {
        let table = [
            ("shop.example", "blog.shop.example", true),
            ("a.shop.co.uk", "b.shop.co.uk", true),
            ("shop.co.uk", "other.co.uk", false),
            ("one.github.io", "two.github.io", false),
            ("one.myshopify.com", "two.myshopify.com", false),
            ("x.one.github.io", "one.github.io", true),
            ("github.io", "one.github.io", false),
            ("localhost", "localhost", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("10.0.2.7", "11.0.2.7", false),
            ("münchen.example", "blog.xn--mnchen-3ya.example", true),
            ("www.shop.example", "shop.example", true),
        ];
        for (left, right, is_one) in table {
            assert_eq!(SiteHost::new(left, "https://").is_of_site(&SiteHost::new(right, "")), is_one, "{left} {right}");
        }
        let app = |host| SiteHost::new(host, "Android-App://");
        assert!(!app("com.one.android").is_of_site(&app("org.one.android")));
        assert!(app("com.one.android").is_of_site(&app("com.one.android")));
    }
}
