//! The cookie of the page, and when it counts: only in requests that the page itself makes. A
//! browser sends it by itself, so that another site could otherwise have it send requests in the
//! user's name. The page of a share may be in a frame of another site, and has the share's secret:
//! there, it counts for nothing.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderName};
use headcount_control::{SESSION_SECONDS, normal_origin};

use crate::app::AppState;
use crate::page_policy::SHARE_PATH;
use crate::request::HttpRequest;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// The name over https. Browsers take a cookie of this prefix from the host itself only, over https, for all its paths.
const SECURE_NAME: &str = "__Host-headcount";
/// The name over plain http.
const PLAIN_NAME: &str = "headcount";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns the name of the cookie.
fn name(is_https: bool) -> &'static str {
    if is_https { SECURE_NAME } else { PLAIN_NAME }
}

/// Returns the header that gives the cookie to a browser.
pub fn set(is_https: bool, secret: &str) -> String {
    with_age(is_https, secret, SESSION_SECONDS)
}

/// Returns the header that takes the cookie from a browser.
pub fn clear(is_https: bool) -> String {
    with_age(is_https, "", 0)
}

fn with_age(is_https: bool, value: &str, seconds: i64) -> String {
    let secure = if is_https { "; Secure" } else { "" };
    format!("{}={value}; HttpOnly{secure}; SameSite=Strict; Path=/; Max-Age={seconds}", name(is_https))
}

/// Returns the cookie of a request, whether it counts or not.
pub fn find<'r>(state: &AppState, request: &'r HttpRequest) -> Result<Option<&'r str>> {
    let headers = request.headers();
    if !headers.contains_key(header::COOKIE) {
        return Ok(None);
    }
    let name = name(state.is_https(request));
    let pairs = headers.get_all(header::COOKIE).filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(';'));
    let mut values = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(known, _)| *known == name);
    let value = values.next().map(|(_, value)| value);
    if values.next().is_some() {
        let message = format!("there are several cookies `{name}`; a request has one credential");
        return Err(ApiError::new(ErrorCode::DuplicateCredentials, message));
    }
    Ok(value)
}

/// Whether the page of this server made the request, so that its cookie counts.
pub fn is_of_page(state: &AppState, request: &HttpRequest) -> bool {
    Maker::of(state, request).is_page()
}

/// Whether a page of another site made the request. Programs that are no browsers don't say where a request comes from.
pub fn is_of_other_site(state: &AppState, request: &HttpRequest) -> bool {
    let maker = Maker::of(state, request);
    let says_nothing = maker.fetch_site == Said::Nothing && maker.origin == Said::Nothing;
    !says_nothing && !maker.is_page()
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said<'r> {
    Nothing,
    Once(&'r str),
    /// It is there twice, or is no text.
    Nonsense,
}

impl<'r> Said<'r> {
    fn by(request: &'r HttpRequest, name: &HeaderName) -> Self {
        let mut values = request.headers().get_all(name);
        match (values.next().map(|value| value.to_str()), values.next()) {
            (None, _) => Self::Nothing,
            (Some(Ok(text)), None) => Self::Once(text),
            _ => Self::Nonsense,
        }
    }
}

/// What a request says of who made it. Scripts of pages can't change these headers.
#[derive(Debug, Clone, Copy)]
struct Maker<'r> {
    fetch_site: Said<'r>,
    origin: Said<'r>,
    referer: Said<'r>,
    host: Said<'r>,
    /// Whether the method only reads.
    is_read: bool,
    /// The setting.
    public_url: Option<&'r str>,
}

impl<'r> Maker<'r> {
    fn of(state: &'r AppState, request: &'r HttpRequest) -> Self {
        Self {
            fetch_site: Said::by(request, &SEC_FETCH_SITE),
            origin: Said::by(request, &header::ORIGIN),
            referer: Said::by(request, &header::REFERER),
            host: Said::by(request, &header::HOST),
            is_read: [Method::GET, Method::HEAD].contains(request.method()),
            public_url: state.public_url.as_deref(),
        }
    }

    /// `Sec-Fetch-Site` decides. Browsers leave it out where a page came by plain http from another machine; then the `Origin` must be the host's own.
    /// They leave that out too where a page reads from its own host; then the `Referer` must be.
    fn is_page(self) -> bool {
        if matches!(self.referer, Said::Once(referer) if referer[origin_of(referer).len()..].starts_with(SHARE_PATH)) {
            return false;
        }
        match (self.fetch_site, self.origin, self.referer) {
            (Said::Once(site), _, _) => site == "same-origin",
            (Said::Nothing, Said::Once(origin), _) => self.is_own(origin),
            (Said::Nothing, Said::Nothing, Said::Once(referer)) if self.is_read => self.is_own(origin_of(referer)),
            _ => false,
        }
    }

    /// Whether an origin has the host that the request is for. The scheme doesn't count: a proxy may have taken the https off.
    fn is_own(self, origin: &str) -> bool {
        let (Some(origin), Said::Once(host)) = (normal_origin(origin), self.host) else { return false };
        let scheme = origin.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_web = scheme == "http" || scheme == "https";
        let is_of_host = is_web && normal_origin(&format!("{scheme}://{host}")).as_ref() == Some(&origin);
        is_of_host || self.public_url == Some(&*origin)
    }
}

/// The scheme, host and port of a URL; the URL itself if it has no path.
fn origin_of(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    &url[..scheme.len() + "://".len() + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "stats.example";

    fn maker<'r>(fetch_site: Option<&'r str>, origin: Option<&'r str>, referer: Option<&'r str>, is_read: bool) -> Maker<'r> {
        let said = |text: Option<&'r str>| text.map_or(Said::Nothing, Said::Once);
        let (fetch_site, origin, referer) = (said(fetch_site), said(origin), said(referer));
        Maker { fetch_site, origin, referer, host: Said::Once(HOST), is_read, public_url: Some("https://public.example") }
    }

    #[test]
    fn a_table_of_requests() {
        let (own, other) = (Some("https://stats.example"), Some("https://evil.example"));
        let (own_page, other_page) = (Some("http://stats.example/ui/live?a=b#c"), Some("http://evil.example/stats.example"));
        let table = [
            // Sec-Fetch-Site, Origin, Referer, whether it only reads, whether the cookie counts
            (Some("same-origin"), None, None, true, true),
            (Some("same-origin"), own, own_page, false, true),
            (Some("same-origin"), other, None, false, true),
            (Some("same-site"), own, own_page, true, false),
            (Some("cross-site"), own, own_page, true, false),
            (Some("cross-site"), None, None, true, false),
            (Some("none"), None, None, true, false),
            (Some(""), own, own_page, true, false),
            (Some("same-origin, cross-site"), own, own_page, true, false),
            (Some("Same-Origin"), own, own_page, true, false),
            (None, own, None, false, true),
            (None, own, other_page, true, true),
            (None, Some("http://stats.example"), None, false, true),
            (None, Some("http://STATS.example:80"), None, false, true),
            (None, Some("https://stats.example:8443"), None, false, false),
            (None, Some("https://public.example"), None, false, true),
            (None, Some("http://public.example"), None, false, false),
            (None, other, None, false, false),
            (None, other, own_page, true, false),
            (None, Some("null"), own_page, true, false),
            (None, Some(""), own_page, true, false),
            (None, Some("https://stats.example.evil.example"), None, false, false),
            (None, Some("https://stats.example@evil.example"), None, false, false),
            (None, Some("chrome-extension://stats.example"), None, false, false),
            (None, None, own_page, true, true),
            (None, None, own_page, false, false),
            (None, None, other_page, true, false),
            (None, None, Some("http://stats.example@evil.example/"), true, false),
            (None, None, Some("http://evil.example?http://stats.example"), true, false),
            (None, None, Some("about:blank"), true, false),
            (None, None, Some("/ui"), true, false),
            (None, None, None, true, false),
            (None, None, None, false, false),
            // The page of a share, which others may frame.
            (Some("same-origin"), None, Some("https://stats.example/ui/share/shr_1"), true, false),
            (Some("same-origin"), own, Some("https://stats.example/ui/share/shr_1/live?a=b"), false, false),
            (None, own, Some("http://stats.example/ui/share/"), false, false),
            (None, None, Some("http://stats.example/ui/share/shr_1"), true, false),
            (Some("same-origin"), None, Some("https://stats.example/ui/prj_1/share/"), true, true),
            (Some("same-origin"), None, Some("https://stats.example/ui?/ui/share/"), true, true),
        ];
        for (fetch_site, origin, referer, is_read, counts) in table {
            let maker = maker(fetch_site, origin, referer, is_read);
            assert_eq!(maker.is_page(), counts, "{maker:?}");
        }
    }

    #[test]
    fn headers_that_come_twice_and_hosts_that_are_missing_count_for_nothing() {
        let own = maker(None, Some("http://stats.example"), None, true);
        assert!(own.is_page());
        assert!(!Maker { host: Said::Nothing, ..own }.is_page());
        assert!(!Maker { host: Said::Nonsense, ..own }.is_page());
        assert!(!Maker { origin: Said::Nonsense, referer: Said::Once("http://stats.example/"), ..own }.is_page());
        assert!(!Maker { fetch_site: Said::Nonsense, ..own }.is_page());
        assert!(!Maker { host: Said::Once("stats.example, evil.example"), ..own }.is_page());
        assert!(Maker { host: Said::Once("STATS.example:80"), ..own }.is_page());
    }

    #[test]
    fn cookies_are_named_by_the_scheme() {
        assert_eq!(set(true, "ss_1"), "__Host-headcount=ss_1; HttpOnly; Secure; SameSite=Strict; Path=/; Max-Age=1209600");
        assert_eq!(set(false, "ss_1"), "headcount=ss_1; HttpOnly; SameSite=Strict; Path=/; Max-Age=1209600");
        assert_eq!(clear(false), "headcount=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    }
}
