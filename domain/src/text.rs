//! Parsing of URLs and truncation of text. Parsing URLs from clients never fails: an unreadable
//! part is absent.

use std::borrow::Cow;

/// The maximum length of a host name (RFC 1035 §2.3.4, with room for brackets and a dot).
const MAX_HOST_LEN: usize = 255;

/// Returns the longest prefix of at most `max_bytes` bytes that ends at a character boundary.
pub fn cut_bytes(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Returns the first `max_chars` characters.
pub fn cut_chars(text: &str, max_chars: usize) -> &str {
    if text.len() <= max_chars {
        return text;
    }
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}

/// Trims the text; `None` if nothing remains, so that empty strings count as absent.
pub(crate) fn non_empty(text: &str) -> Option<&str> {
    Some(trimmed(text)).filter(|text| !text.is_empty())
}

/// Like `trim`, but fast for text that is trimmed already and has an ASCII character at each end,
/// as nearly all text.
pub(crate) fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [b'!'..=b'~', .., b'!'..=b'~'] => text,
        _ => text.trim(),
    }
}

/// Returns a URL without its query and fragment, trimmed: the form in which pages are counted.
pub(crate) fn page_url(url: &str) -> String {
    page(url).to_owned()
}

/// Returns the slice of a URL that [`page_url`] copies.
pub fn page(url: &str) -> &str {
    before_query(url)
}

/// Returns [`page_url`] without userinfo: it identifies the page, but no visitor.
pub(crate) fn page_without_userinfo(url: &str) -> String {
    let page = page(url);
    let userinfo = split_authority(page).and_then(|(authority, path)| {
        let host = authority.rfind('@')? + 1;
        let start = page.len() - path.len() - authority.len();
        Some(start..start + host)
    });
    match userinfo {
        Some(userinfo) => format!("{}{}", &page[..userinfo.start], &page[userinfo.end..]),
        None => page.to_owned(),
    }
}

/// Returns the path of a URL, absolute or relative, without query and fragment. Without a path, an
/// absolute URL has `/` and a relative one `None`.
pub fn path_of(url: &str) -> Option<&str> {
    let page = before_query(url);
    match split_authority(page) {
        Some((_, "")) => Some("/"),
        Some((_, path)) => Some(path),
        None => Some(page).filter(|path| !path.is_empty()),
    }
}

/// Returns the path as written in a URL; empty without one.
pub(crate) fn written_path(url: &str) -> &str {
    let page = before_query(url);
    split_authority(page).map_or(page, |(_, path)| path)
}

/// Returns the host of an absolute URL (`https://…` or `//…`), lower-cased, without userinfo, port
/// and trailing dot. `None` if the URL is relative or has no valid host.
pub(crate) fn host_of(url: &str) -> Option<Cow<'_, str>> {
    let (authority, _) = split_authority(before_query(url))?;
    read_host(authority)
}

/// Returns the host of a field that contains one: `shop.example`, or an address.
pub(crate) fn named_host(text: &str) -> Option<Cow<'_, str>> {
    split_authority(text).map_or_else(|| read_host(text), |_| host_of(text))
}

/// Returns a referrer that contains only `host`, in the form that [`referring_host`] reads.
pub(crate) fn host_as_referrer(host: &str) -> String {
    // A host without slashes needs a dot, and a leading `www.` is never read as part of it.
    let spellings = [host.to_owned(), format!("//{host}"), format!("//www.{host}")];
    spellings.into_iter().find(|spelling| referring_host(spelling).as_deref() == Some(host)).unwrap_or_default()
}

/// Returns the parameters of a URL's query in order: their names and values, to be
/// [decoded](decode_param).
pub(crate) fn query_params(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let before_fragment = memchr::memchr(b'#', url.as_bytes()).map_or(url, |end| &url[..end]);
    let query = memchr::memchr(b'?', before_fragment.as_bytes()).map_or("", |before| &before_fragment[before + 1..]);
    let params = query.trim_end().split('&').filter(|param| !param.is_empty());
    params.map(|param| param.split_once('=').unwrap_or((param, "")))
}

/// Decodes a name or a value of [`query_params`]: `+` is a space, percent escapes are UTF-8, and
/// invalid UTF-8 becomes U+FFFD.
pub(crate) fn decode_param(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'+', b'%', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

fn before_query(url: &str) -> &str {
    let url = trimmed(url);
    memchr::memchr2(b'?', b'#', url.as_bytes()).map_or(url, |end| trimmed(&url[..end]))
}

/// Splits an absolute URL without query and fragment into authority and path. As in browsers, `\`
/// is equivalent to `/`.
fn split_authority(page: &str) -> Option<(&str, &str)> {
    let page = trimmed(page);
    let is_slash = |byte: u8| byte == b'/' || byte == b'\\';
    let slashes = memchr::memchr2(b'/', b'\\', page.as_bytes())?;
    let has_two = page.as_bytes().get(slashes + 1).copied().is_some_and(is_slash);
    if !has_two || !(slashes == 0 || is_scheme(page[..slashes].strip_suffix(':')?)) {
        return None;
    }
    let rest = &page[slashes + 2..];
    let end = memchr::memchr2(b'/', b'\\', rest.as_bytes()).unwrap_or(rest.len());
    Some(rest.split_at(end))
}

/// Whether the text is a URI scheme (RFC 3986 §3.1).
fn is_scheme(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.bytes().all(is_allowed) && text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
}

/// Returns the host of a referrer, with or without a scheme, without `www.`.
pub(crate) fn referring_host(referrer: &str) -> Option<Cow<'_, str>> {
    let page = before_query(referrer);
    let host = match split_authority(page) {
        Some((authority, _)) => read_host(authority)?,
        None => {
            let authority = page.split(['/', '\\']).next()?;
            read_host(authority).filter(|host| host.contains('.'))?
        }
    };
    Some(without_www(host))
}

/// Returns the host of `[userinfo@]host[:port]`, lower-cased, without a trailing dot.
pub(crate) fn read_host(authority: &str) -> Option<Cow<'_, str>> {
    match plain_host(authority) {
        Some(host) => Some(Cow::Borrowed(host)),
        None => read_any_host(authority).map(Cow::Owned),
    }
}

/// Returns the host of `host[:port]` if it is in its final form already, as nearly all are.
fn plain_host(authority: &str) -> Option<&str> {
    let bytes = authority.as_bytes();
    let mut label_len = 0;
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => label_len += 1,
            b'.' if label_len > 0 => label_len = 0,
            b':' if label_len > 0 && bytes[place + 1..].iter().all(u8::is_ascii_digit) => {
                return Some(&authority[..place]).filter(|host| host.len() <= MAX_HOST_LEN);
            }
            _ => return None,
        }
    }
    (label_len > 0 && bytes.len() <= MAX_HOST_LEN).then_some(authority)
}

fn read_any_host(authority: &str) -> Option<String> {
    let host_port = authority.trim().rsplit('@').next()?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match host_port.rsplit_once(':') {
        // The last colon of `[::1]` belongs to the address.
        Some((host, port)) if is_port(port) && (host.ends_with(']') || !host.starts_with('[')) => host,
        _ => host_port,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_allowed = |letter: char| match letter {
        '-' | '.' | '_' => true,
        '[' | ']' | ':' => is_address,
        letter if letter.is_ascii() => letter.is_ascii_alphanumeric(),
        letter => !letter.is_whitespace() && !letter.is_control(),
    };
    let has_shape = host.len() <= MAX_HOST_LEN && host.split('.').all(|label| !label.is_empty());
    (has_shape && host.chars().all(is_allowed)).then_some(host)
}

fn without_www(host: Cow<'_, str>) -> Cow<'_, str> {
    match host {
        Cow::Borrowed(host) => Cow::Borrowed(host.strip_prefix("www.").unwrap_or(host)),
        Cow::Owned(host) => Cow::Owned(host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_lose_userinfo() {
        for (url, page) in [
            ("https://ada:secret@shop.example:81/a@b?c#d", "https://shop.example:81/a@b"),
            ("//a@b@shop.example", "//shop.example"),
            ("https:\\\\ada@shop.example\\x", "https:\\\\shop.example\\x"),
            ("https://shop.example/a@b", "https://shop.example/a@b"),
            ("/a@b?c", "/a@b"),
            ("", ""),
        ] {
            assert_eq!(page_without_userinfo(url), page, "{url}");
        }
    }

    #[test]
    fn urls_come_apart() {
        let table = [
            // url; page | host | path
            ("https://a.example/b?c=1#d", "https://a.example/b | a.example | /b"),
            ("https://a.example", "https://a.example | a.example | /"),
            ("https://a.example?x", "https://a.example | a.example | /"),
            ("HTTP://U:pw@WWW.A.Example.:80/B", "HTTP://U:pw@WWW.A.Example.:80/B | www.a.example | /B"),
            ("//cdn.example/x", "//cdn.example/x | cdn.example | /x"),
            ("/pricing?utm_source=x", "/pricing | - | /pricing"),
            ("pricing.html#a?b", "pricing.html | - | pricing.html"),
            ("http://[::1]:3000/x", "http://[::1]:3000/x | [::1] | /x"),
            ("http://[::1]", "http://[::1] | [::1] | /"),
            ("http://localhost:3000", "http://localhost:3000 | localhost | /"),
            ("https://münchen.example/ä", "https://münchen.example/ä | münchen.example | /ä"),
            ("https:\\\\a.example\\x", "https:\\\\a.example\\x | a.example | \\x"),
            ("android-app://com.example.app/", "android-app://com.example.app/ | com.example.app | /"),
            ("  https://a.example/x  ", "https://a.example/x | a.example | /x"),
            ("/a//b", "/a//b | - | /a//b"),
            ("file:///etc/passwd", "file:///etc/passwd | - | /etc/passwd"),
            ("https://exa mple/", "https://exa mple/ | - | /"),
            ("https://a%20b.example/", "https://a%20b.example/ | - | /"),
            ("?x=1", " | - | -"),
            ("", " | - | -"),
        ];
        for (url, expected) in table {
            let host = host_of(url).unwrap_or("-".into());
            let parts = format!("{} | {host} | {}", page_url(url), path_of(url).unwrap_or("-"));
            assert_eq!(parts, expected, "{url}");
        }
    }

    #[test]
    fn hosts_are_read_from_what_is_kept_of_a_referrer() {
        for host in ["news.example", "intranet", "[::1]", "www.example", "a.b.c"] {
            assert_eq!(referring_host(&host_as_referrer(host)).as_deref(), Some(host));
        }
    }

    #[test]
    fn query_parameters_are_decoded() {
        let table = [
            ("https://a.example/?x=1&y=2", "y", Some("2")),
            ("/pricing?x=Hello+World%21", "x", Some("Hello World!")),
            ("?x=%C3%A9", "x", Some("é")),
            ("?x=%FF%FEa", "x", Some("\u{fffd}\u{fffd}a")),
            ("?x=%zz%4", "x", Some("%zz%4")),
            ("?utm%5Fsource=a", "utm_source", Some("a")),
            ("?x=&x=+&x=2", "x", Some("2")),
            ("?x=a=b", "x", Some("a=b")),
            ("?X=1", "x", None),
            ("?x", "x", None),
            ("/a#?x=1", "x", None),
            ("/a", "x", None),
        ];
        for (url, name, value) in table {
            let mut params = query_params(url).map(|(name, value)| (decode_param(name), decode_param(value)));
            let found = params.find(|(key, value)| key == name && non_empty(value).is_some());
            assert_eq!(found.map(|(_, value)| value.into_owned()).as_deref(), value, "{url}");
        }
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(cut_bytes("aé", 2), "a");
        assert_eq!(cut_bytes("aé", 3), "aé");
        assert_eq!(cut_bytes("aé", 99), "aé");
        assert_eq!(cut_chars("aéb", 2), "aé");
        assert_eq!(cut_chars("aéb", 3), "aéb");
        assert_eq!(cut_chars("aéb", 0), "");
        assert_eq!(non_empty(" \t"), None);
        assert_eq!(non_empty(" a "), Some("a"));
    }

    proptest! {
        #[test]
        fn nothing_panics(
            url in "\\PC{0,60}",
            shaped in "([a-zé+]{0,4}:)?[/\\\\]{0,3}([a-z:]{0,4}@)?[\\[\\]:.a-zA-ZÀ-ž0-9]{0,12}(:[0-9]{0,6})?[/?#]?[ -~é]{0,20}",
            own in ".{0,20}",
        ) {
            for url in [&url, &shaped, &own] {
                prop_assert!(!page_url(url).contains(['?', '#']));
                let _ = (host_of(url), path_of(url), query_params(url).count());
                if let Some(host) = referring_host(url) {
                    // A host is its own host.
                    let page = format!("https://{host}/");
                    prop_assert_eq!(host_of(&page), Some(host));
                }
            }
        }

        #[test]
        fn a_host_is_the_same_however_it_is_read(
            authority in "([a-zA-Z]{0,2}@)?\\[?[a-zA-Zé0-9_.-]{0,12}\\]?[. ]?(:[0-9]{0,3}[a-z]?)?",
            long in "[a-z]{250}\\.[a-z]{0,9}(:1)?",
        ) {
            for authority in [authority, long] {
                prop_assert_eq!(read_host(&authority).map(Cow::into_owned), read_any_host(&authority));
            }
        }

        #[test]
        fn parameters_are_those_of_a_form(query in "[ -~é]{0,20}|([a-z%+=&0-9A-F]{0,3}[&=]){0,6}") {
            let url = format!("/?{query}");
            let read: Vec<_> = query_params(&url).map(|(name, value)| (decode_param(name), decode_param(value))).collect();
            let query = query.split('#').next().unwrap().trim_end();
            prop_assert_eq!(read, form_urlencoded::parse(query.as_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn cuts_are_prefixes(text in ".{0,20}", at in 0usize..40) {
            prop_assert!(text.starts_with(cut_bytes(&text, at)) && cut_bytes(&text, at).len() <= at);
            prop_assert_eq!(cut_chars(&text, at).chars().count(), text.chars().count().min(at));
        }
    }
}
