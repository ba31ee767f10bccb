//! The external referrer of an event: the host of the site that sent the visitor.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use super::no_sources::{CARD_CHECKS, SIGN_IN, TILLS};
use super::sources::{Fnv, name_under_country};
use crate::hosts::{HostList, SiteHost, and_parents};
use crate::text;

/// Words in the host names of banks' own card checks: `3dsecure.bank.example`,
/// `acs-2.bank.example`.
const CARD_CHECK_WORDS: [&str; 5] = ["3dsecure", "3ds", "threeds", "3dauth", "acs"];

static NO_SOURCES: LazyLock<HashSet<&'static str, BuildHasherDefault<Fnv>>> = LazyLock::new(|| {
    // `name.*` is stored as `name.`.
    let hosts = [TILLS, CARD_CHECKS, SIGN_IN].into_iter().flat_map(str::split_whitespace);
    hosts.map(|host| host.trim_end_matches('*')).collect()
});

/// Returns the referring host, lower-cased, without `www.` and port. Returns `None` without a
/// referrer, and if the host belongs to the site of the event (its `hostname`, or the host of its
/// `url`), is in `ignored`, or is a payment or sign-in page.
///
/// A referrer without a scheme counts if its first part contains a dot, because some trackers send
/// bare hosts.
#[must_use]
pub fn external_host<'r>(
    referrer: Option<&'r str>,
    own_hostname: Option<&str>,
    url: Option<&str>,
    ignored: &HostList,
) -> Option<Cow<'r, str>> {
    let referrer = referrer?;
    let host = text::referring_host(referrer)?;
    let from = SiteHost::new(&host, referrer);
    let is_own = |own: Option<Cow<'_, str>>, address: &str| own.is_some_and(|own| SiteHost::new(&own, address).is_of_site(&from));
    let is_internal = own_hostname.is_some_and(|own| is_own(text::named_host(own), own))
        || url.is_some_and(|url| is_own(text::host_of(url), url));
    let is_external = !is_internal && !ignored.covers(&from.host) && !is_no_source(&from);
    drop(from);
    is_external.then_some(host)
}

/// Whether a place is a payment or sign-in page, from which people come back.
fn is_no_source(place: &SiteHost<'_>) -> bool {
    let host = &*place.host;
    let name_end = name_under_country(host).map_or(0, str::len);
    let is_listed = |parent: &str| {
        let name = host.get(host.len() - parent.len()..name_end);
        NO_SOURCES.contains(parent) || name.is_some_and(|name| NO_SOURCES.contains(name))
    };
    and_parents(host).any(is_listed) || checks_cards(place)
}

fn checks_cards(place: &SiteHost<'_>) -> bool {
    let has_word = |text: &str| {
        let mut words = text.split(['.', '-']).map(|word| word.trim_end_matches(|letter: char| letter.is_ascii_digit()));
        words.any(|word| CARD_CHECK_WORDS.contains(&word))
    };
    // Nearly no host has one.
    has_word(&place.host) && place.domain().and_then(|domain| place.host.strip_suffix(domain)).is_some_and(has_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(referrer: &str, hostname: Option<&str>, url: Option<&str>) -> Option<String> {
        external_host(Some(referrer), hostname, url, &HostList::default()).map(Cow::into_owned)
    }

    #[test]
    fn referrers_are_hosts_of_other_sites() {
        let own_url = Some("https://www.shop.example/pricing");
        let table = [
            // referrer, own hostname, url, host
            ("https://www.Google.com/search?q=x", None, own_url, Some("google.com")),
            ("https://news.ycombinator.com/", Some("shop.example"), None, Some("news.ycombinator.com")),
            ("https://shop.example/other", None, own_url, None),
            ("https://WWW.shop.example:443/", Some("Shop.Example:8443"), None, None),
            ("https://shop.example/", Some("https://www.shop.example/"), None, None),
            ("https://blog.shop.example/", Some("shop.example"), own_url, None),
            ("https://shop.example./", Some("blog.shop.example"), None, None),
            ("https://shop.example/", None, Some("https://a.b.shop.example/"), None),
            ("https://myshop.example/", None, own_url, Some("myshop.example")),
            ("https://other.example/", Some("shop.example"), Some("https://other.example/x"), None),
            ("https://a.shop.co.uk/", Some("b.shop.co.uk"), None, None),
            ("https://other.co.uk/", Some("shop.co.uk"), None, Some("other.co.uk")),
            ("https://two.myshopify.com/", Some("one.myshopify.com"), None, Some("two.myshopify.com")),
            ("https://two.github.io/", Some("one.github.io"), None, Some("two.github.io")),
            ("https://blog.MÜNCHEN.example/", Some("xn--mnchen-3ya.example"), None, None),
            ("http://localhost:3000/", Some("localhost:8080"), None, None),
            ("http://192.168.0.2:81/", Some("192.168.0.2"), None, None),
            ("http://192.168.0.2/", Some("192.168.1.2"), None, Some("192.168.0.2")),
            ("http://[2001:db8::1]:81/", None, Some("http://[2001:db8::1]/"), None),
            ("google.com", None, own_url, Some("google.com")),
            ("www.google.com/search?q=x", None, own_url, Some("google.com")),
            ("android-app://com.linkedin.android/", None, own_url, Some("com.linkedin.android")),
            ("android-app://com.google.android.gm/", None, own_url, Some("com.google.android.gm")),
            ("android-app://org.one.app", None, Some("android-app://com.one.app/start"), Some("org.one.app")),
            ("android-app://com.one.app/a", None, Some("android-app://com.one.app/start"), None),
            ("/internal", None, own_url, None),
            ("about:blank", None, own_url, None),
            ("null", None, own_url, None),
            ("direct", None, own_url, None),
            ("", None, own_url, None),
            ("https://", None, own_url, None),
            ("https://?x", None, own_url, None),
        ];
        for (referrer, hostname, url, host) in table {
            assert_eq!(host_of(referrer, hostname, url).as_deref(), host, "{referrer} {hostname:?} {url:?}");
        }
        assert_eq!(external_host(None, None, own_url, &HostList::default()), None);
    }

    #[test]
    fn tills_and_sign_in_pages_send_nobody() {
        for host in [
            "www.paypal.com",
            "paypal.com",
            "www.paypal.co.uk",
            "CHECKOUT.paypal.de.",
            "checkout.stripe.com:443",
            "hooks.stripe.com",
            "pay.klarna.com",
            "checkoutshopper-live.adyen.com",
            "www.mollie.com",
            "shop.app",
            "pay.shopify.com",
            "payments.amazon.de",
            "pay.amazon.com",
            "www.mercadopago.com.ar",
            "mercadopago.com",
            "ideal.ing.nl",
            "betalen.rabobank.nl",
            "r3.girogate.giropay.de",
            "pay.google.com",
            "centinelapi.cardinalcommerce.com",
            "secure5.arcot.com",
            "3dsecure.bank.example",
            "acs2.bank.example",
            "3ds-acs.bank.example",
            "acs.3ds.bank.co.uk",
            "accounts.google.com",
            "accounts.google.co.uk",
            "login.microsoftonline.com",
            "login.live.com",
            "appleid.apple.com",
            "idmsa.apple.com",
            "acme.okta.com",
            "acme.eu.auth0.com",
            "acme.b2clogin.com",
        ] {
            assert_eq!(host_of(&format!("https://{host}/x"), None, Some("https://shop.example/")), None, "{host}");
        }
        for host in [
            "notpaypal.com",
            "paypal.com.evil.example",
            "google.com",
            "microsoft.com",
            "amazon.com",
            "rabobank.nl",
            "3ds.com",
            "acs.org",
            "pubs.acs.org",
            "shopify.com",
            "one.myshopify.com",
        ] {
            assert_eq!(host_of(&format!("https://{host}/x"), None, Some("https://shop.example/")).as_deref(), Some(host));
        }
    }

    #[test]
    fn a_project_ignores_what_it_lists() {
        let ignored = HostList::new(["acme.example", "10.0.0.1", "com.acme.app"].map(str::to_owned));
        let of = |referrer| external_host(Some(referrer), Some("shop.example"), None, &ignored).map(Cow::into_owned);
        for referrer in
            ["https://acme.example/", "http://WWW.acme.example./", "https://a.b.acme.example", "http://10.0.0.1:8080/"]
        {
            assert_eq!(of(referrer), None, "{referrer}");
        }
        assert_eq!(of("android-app://com.acme.app/"), None);
        assert_eq!(of("https://notacme.example/").as_deref(), Some("notacme.example"));
    }

    #[test]
    fn the_lists_name_no_host_twice() {
        let mut seen = HashSet::new();
        for host in [TILLS, CARD_CHECKS, SIGN_IN].into_iter().flat_map(str::split_whitespace) {
            let parents = and_parents(host).skip(1).any(|parent| seen.contains(parent));
            assert!(!parents && seen.insert(host) && host == host.to_lowercase(), "{host}");
        }
    }
}
