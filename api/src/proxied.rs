//! What proxies say of the request that they pass on: `X-Forwarded-For`, `X-Forwarded-Proto`, and
//! `Forwarded` (RFC 7239).
//!
//! `Forwarded` is read where the older header is absent: a proxy that knows only one of them passes
//! on what the client wrote in the other.

use std::net::IpAddr;

use actix_web::http::header::{HeaderMap, HeaderName};
use headcount_domain::intake::client_address::ip_of;

/// Made once: a name that is given as text is checked again for each request.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// Returns the addresses that the request came through, the nearest last; `None` for one that can't be read.
pub(crate) fn hops(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    if headers.contains_key(&X_FORWARDED_FOR) {
        return elements(headers, &X_FORWARDED_FOR).map(ip_of).collect();
    }
    elements(headers, &FORWARDED).map(|element| ip_of(parameter(element, "for")?)).collect()
}

/// Whether the browser spoke https, by what the nearest proxy says.
pub fn is_https(headers: &HeaderMap) -> bool {
    let scheme = match elements(headers, &X_FORWARDED_PROTO).last() {
        Some(scheme) => Some(scheme),
        None => elements(headers, &FORWARDED).last().and_then(|element| parameter(element, "proto")),
    };
    scheme.is_some_and(|scheme| scheme.trim_matches('"').eq_ignore_ascii_case("https"))
}

/// The elements of the lists in all headers of a name. Neither addresses nor schemes have commas, also in quotes.
fn elements<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lists = headers.get_all(name).map(|value| value.to_str().unwrap_or_default());
    lists.flat_map(|list| list.split(',')).map(str::trim).filter(|element| !element.is_empty())
}

/// Returns a parameter of an element of `Forwarded`.
fn parameter<'e>(element: &'e str, name: &str) -> Option<&'e str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::request::HttpRequest;

    fn hops_of(headers: &[(&str, &str)]) -> Vec<String> {
        let request = headers.iter().fold(TestRequest::default(), |request, header| request.append_header(*header));
        let found = hops(HttpRequest::from(request.to_request()).headers());
        found.into_iter().map(|hop| hop.map_or("-".to_owned(), |hop| hop.to_string())).collect()
    }

    #[test]
    fn addresses_are_read_as_proxies_write_them() {
        for (value, expected) in [
            ("203.0.113.9", &["203.0.113.9"][..]),
            (" 203.0.113.9:41234 ,10.0.0.1:80", &["203.0.113.9", "10.0.0.1"]),
            ("[2001:db8::1]:443, ::ffff:10.0.0.1", &["2001:db8::1", "10.0.0.1"]),
            ("\"[2001:db8::1]\",,", &["2001:db8::1"]),
            ("unknown, 10.0.0.1", &["-", "10.0.0.1"]),
            ("", &[]),
        ] {
            assert_eq!(hops_of(&[("x-forwarded-for", value)]), expected, "{value}");
        }
        for (value, expected) in [
            ("for=203.0.113.9", &["203.0.113.9"][..]),
            ("For=\"[2001:db8:cafe::17]:4711\"", &["2001:db8:cafe::17"]),
            ("for=192.0.2.60;proto=http;by=203.0.113.43, FOR = \"198.51.100.17:80\"", &["192.0.2.60", "198.51.100.17"]),
            ("proto=https;for=_hidden, for=unknown, by=10.0.0.1", &["-", "-", "-"]),
        ] {
            assert_eq!(hops_of(&[("forwarded", value)]), expected, "{value}");
        }
        let both = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "10.0.0.1")];
        assert_eq!(hops_of(&both), ["203.0.113.9", "10.0.0.1"]);
        assert_eq!(hops_of(&[("x-forwarded-for", "unknown"), ("forwarded", "for=1.1.1.1")]), ["-"]);
    }

    #[test]
    fn the_nearest_proxy_says_the_scheme() {
        for (name, value, expected) in [
            ("x-forwarded-proto", "https", true),
            ("x-forwarded-proto", "https, HTTP", false),
            ("x-forwarded-proto", "http, HTTPS ", true),
            ("forwarded", "for=1.1.1.1;proto=http, for=10.0.0.1; Proto=\"https\"", true),
            ("forwarded", "for=1.1.1.1;proto=https, for=10.0.0.1", false),
        ] {
            let request = HttpRequest::from(TestRequest::default().insert_header((name, value)).to_request());
            assert_eq!(is_https(request.headers()), expected, "{name}: {value}");
        }
    }
}
