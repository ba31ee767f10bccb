//! Where the visitor of an event was before. The lists contain only what generators of test events
//! use.

use crate::text::{Url, without_www};

/// Suffixes of more than one label under which anybody has a site.
const SHARED_SUFFIXES: [&str; 4] = ["co.uk", "com.br", "github.io", "myshopify.com"];

/// Where people pay or sign in.
const PASSED_THROUGH: [&str; 9] = [
    "paypal.com",
    "stripe.com",
    "klarna.com",
    "mollie.com",
    "mercadopago.com.br",
    "acs.bank.example",
    "accounts.google.com",
    "login.microsoftonline.com",
    "okta.com",
];

/// Returns the host of a referrer, if it belongs to another site than the event, and the project
/// counts it.
#[must_use]
pub fn external(referrer: &str, hostname: Option<&str>, url: Option<&Url>, ignored: &[String]) -> Option<String> {
    let host = bare(&Url::parse(referrer).host?);
    let own = [hostname, url.and_then(|url| url.host.as_deref())];
    let is_own = own.into_iter().flatten().any(|own| site(&bare(own)) == site(&host));
    let is_ignored = ignored.iter().map(|ignored| bare(ignored)).any(|ignored| is_below(&host, &ignored));
    let is_passed = PASSED_THROUGH.iter().any(|passed| is_below(&host, passed));
    (!is_own && !is_ignored && !is_passed).then_some(host)
}

/// A host in lower case, without `www.`, port and trailing dot.
fn bare(host: &str) -> String {
    let host = host.trim().to_lowercase();
    let host = host.split(':').next().unwrap_or_default();
    without_www(host.trim_end_matches('.')).to_owned()
}

fn is_below(host: &str, above: &str) -> bool {
    host == above || host.ends_with(&format!(".{above}"))
}

/// The domain that the owner of a host registered; the host itself, if it is an address.
fn site(host: &str) -> String {
    if host.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
        return host.to_owned();
    }
    let labels: Vec<&str> = host.split('.').collect();
    let last = |count: usize| labels[labels.len().saturating_sub(count)..].join(".");
    if SHARED_SUFFIXES.contains(&last(2).as_str()) { last(3) } else { last(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites() {
        for (referrer, host) in [
            ("https://www.news.example/a", Some("news.example")),
            ("https://blog.shop.example/", None),
            ("https://SHOP.example.:8443/", None),
            ("https://www.paypal.com/", None),
            ("https://x.listed.example/", None),
            ("https://unlisted.example/", Some("unlisted.example")),
            ("https://a.github.io/", Some("a.github.io")),
        ] {
            let found = external(referrer, Some("shop.example"), None, &["Listed.example".to_owned()]);
            assert_eq!(found.as_deref(), host, "{referrer}");
        }
        let of = |referrer, own| external(referrer, Some(own), None, &[]);
        assert_eq!(of("https://one.myshopify.com/", "two.myshopify.com").as_deref(), Some("one.myshopify.com"));
        assert_eq!(of("https://a.one.myshopify.com/", "one.myshopify.com"), None);
        assert_eq!(of("http://10.0.0.1/", "10.0.0.2").as_deref(), Some("10.0.0.1"));
        assert_eq!(of("http://10.0.0.1:81/", "10.0.0.1"), None);
    }
}
