//! Access logs of web servers: the common and the combined log format, with or without the virtual
//! host in front.
//!
//! `ADDRESS IDENT USER [DAY/MONTH/YEAR:H:M:S ZONE] "REQUEST" STATUS SIZE "REFERRER" "AGENT"`, with
//! the escapes that Apache and nginx write inside quotes. Further fields are ignored.

use std::borrow::Cow;
use std::net::IpAddr;

use headcount_domain::Instant;
use headcount_domain::time::EARLIEST;
use serde::Serialize;

/// File name extensions of requests that are not page views.
const ASSETS: [&str; 43] = [
    "7z", "avi", "avif", "bmp", "bz2", "css", "csv", "deb", "dmg", "eot", "exe", "gif", "gz", "ico", "iso", "jar", "jpeg", "jpg",
    "js", "json", "map", "mjs", "mov", "mp3", "mp4", "ogg", "otf", "png", "rpm", "rss", "svg", "tar", "tgz", "tiff", "ttf",
    "txt", "wasm", "wav", "webm", "webp", "woff", "woff2", "xml",
];

/// One line of an access log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogEntry<'l> {
    /// The address of the client.
    pub(crate) address: &'l str,
    /// The virtual host, if the log names it.
    pub(crate) host: Option<&'l str>,
    /// The time of the request.
    pub(crate) at: Instant,
    /// The method, such as `GET`, if the request was HTTP.
    pub(crate) method: Option<Cow<'l, str>>,
    /// The request target, as sent.
    pub(crate) target: Option<Cow<'l, str>>,
    /// The status of the response.
    pub(crate) status: Option<u16>,
    /// The size of the response.
    pub(crate) size_bytes: Option<u64>,
    /// The referrer.
    pub(crate) referrer: Option<Cow<'l, str>>,
    /// The user agent.
    pub(crate) agent: Option<Cow<'l, str>>,
}

/// The error for a line that can't be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a line of an access log in the combined format: {0}")]
pub(crate) struct Unparsable(&'static str);

/// Parses one line.
pub(crate) fn parse(line: &str) -> Result<LogEntry<'_>, Unparsable> {
    let line = line.trim_end_matches(['\r', '\n']);
    let (who, rest) = split_at_time(line).ok_or(Unparsable("it has no time in brackets"))?;
    let (time, rest) = rest.split_once(']').ok_or(Unparsable("its time has no closing bracket"))?;
    let (host, address) = client(who).ok_or(Unparsable("it has no client"))?;
    let at = time_of(time).ok_or(Unparsable("its time is not DD/Mon/YYYY:HH:MM:SS ZONE since 1990"))?;
    let (request, rest) = quoted(rest).ok_or(Unparsable("its request has no closing quote"))?;
    let (status, rest) = word(rest);
    let (size, rest) = word(rest);
    let status = number(status).ok_or(Unparsable("its status is not a number"))?;
    let size_bytes = number(size).ok_or(Unparsable("its size is not a number"))?;
    let (referrer, agent) = if rest.trim().is_empty() {
        (None, None)
    } else {
        let (referrer, rest) = quoted(rest).ok_or(Unparsable("its referrer has no closing quote"))?;
        let (agent, _) = quoted(rest).ok_or(Unparsable("its user agent has no closing quote"))?;
        (field(referrer), field(agent))
    };
    let (method, target) = request_line(request);
    let status = status.and_then(|status| u16::try_from(status).ok());
    Ok(LogEntry { address, host, at, method, target, status, size_bytes, referrer, agent })
}

/// Splits a line at the bracket before its time: an address may be in brackets, too.
fn split_at_time(line: &str) -> Option<(&str, &str)> {
    let begins_time = |rest: &str| matches!(rest.as_bytes(), [b'0'..=b'9', b'0'..=b'9', b'/', ..]);
    let splits = || line.match_indices(" [").map(|(at, bracket)| (&line[..at], &line[at + bracket.len()..]));
    splits().find(|(_, rest)| begins_time(rest)).or_else(|| splits().next())
}

/// Parses `ADDRESS IDENT USER`, or `HOST:PORT ADDRESS IDENT USER`. The user may contain spaces. The
/// address may be a list, as a header `X-Forwarded-For` has it.
fn client(who: &str) -> Option<(Option<&str>, &str)> {
    let (first, rest) = list(who);
    if first.is_empty() || rest.is_empty() {
        return None;
    }
    if let Some(address) = first_address(first) {
        return Some((None, address));
    }
    if !first.contains(',')
        && let Some(address) = first_address(list(rest).0)
    {
        let host =
            first.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())).map_or(first, |(host, _)| host);
        return Some((Some(host), address));
    }
    Some((None, first.split(',').next()?))
}

/// Splits off the first word, with all words that follow a comma at its end.
fn list(text: &str) -> (&str, &str) {
    let end = text.match_indices(' ').map(|(at, _)| at).find(|at| !text[..*at].ends_with(','));
    let (list, rest) = text.split_at(end.unwrap_or(text.len()));
    (list, rest.strip_prefix(' ').unwrap_or(rest))
}

/// Returns the first address of a list, without its port.
fn first_address(list: &str) -> Option<&str> {
    let without_port = |word: &'_ str| match word.strip_prefix('[') {
        Some(inside) => inside.split(']').next().map(str::len).map(|length| 1..1 + length),
        None => word.find(':').filter(|at| word.rfind(':') == Some(*at)).map(|at| 0..at),
    };
    let address = |word: &'_ str| {
        let range = if word.parse::<IpAddr>().is_ok() { Some(0..word.len()) } else { without_port(word) };
        range.filter(|range| word[range.clone()].parse::<IpAddr>().is_ok())
    };
    list.split(',').map(str::trim).find_map(|word| address(word).map(|range| &word[range]))
}

/// Parses a time such as `17/May/2015:10:05:03 +0000`.
fn time_of(text: &str) -> Option<Instant> {
    let time = chrono::DateTime::parse_from_str(text, "%d/%b/%Y:%H:%M:%S %z").ok()?;
    // Earlier times would be refused, or read as seconds.
    Some(Instant(time.timestamp_millis())).filter(|time| *time >= EARLIEST)
}

/// Splits off the next quoted text, without its quotes and with its escapes.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim_start_matches(' ').strip_prefix('"')?;
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((&inside[..at], &inside[at + 1..])),
            _ => {}
        }
    }
    None
}

fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(' ');
    text.split_at(text.find(' ').unwrap_or(text.len()))
}

/// Parses a number. `-` stands for no number.
fn number(word: &str) -> Option<Option<u64>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}

fn field(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty() && text != "-").then(|| unescape(text))
}

/// Parses `METHOD TARGET VERSION`. HTTP/0.9 has no version; any other text was not HTTP.
fn request_line(request: &str) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    let is_method = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'-' || b == b'_');
    match request.split_once(' ') {
        Some((method, rest)) if is_method(method) => {
            let target =
                rest.rsplit_once(' ').filter(|(_, version)| version.starts_with("HTTP/")).map_or(rest, |(target, _)| target);
            (Some(Cow::Borrowed(method)), field(target))
        }
        _ => (None, None),
    }
}

/// Undoes escapes such as `\"`, `\\`, `\t` and `\xHH`.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let (byte, used) = match (first, after) {
            (b'\\', [b'x', high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, 3),
                _ => (b'\\', 0),
            },
            (b'\\', [escape, ..]) => (escaped(*escape), 1),
            (byte, _) => (*byte, 0),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn escaped(letter: u8) -> u8 {
    match letter {
        b't' => b'\t',
        b'n' => b'\n',
        b'r' => b'\r',
        b'b' => 8,
        b'v' => 11,
        b'f' => 12,
        other => other,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

impl LogEntry<'_> {
    /// Returns whether this is a successful page view: a GET with a 2xx or 304 answer that is
    /// neither for an asset nor for a feed.
    pub(crate) fn is_successful_page_view(&self) -> bool {
        let answered = self.status.is_some_and(|status| (200..300).contains(&status) || status == 304);
        self.method.as_deref() == Some("GET") && answered && self.target.as_deref().is_some_and(is_page)
    }

    /// The event, in the format of `POST /track`.
    pub(crate) fn event<'e>(&'e self, hostname: Option<&'e str>) -> impl Serialize + use<'e> {
        let host = hostname.or(self.host);
        let url = match (self.target.as_deref(), host) {
            (Some(path), Some(host)) if path.starts_with('/') => Some(Cow::Owned(format!("https://{host}{path}"))),
            (target, _) => target.map(Cow::Borrowed),
        };
        let metadata = Metadata { method: self.method.as_deref(), status: self.status, size: self.size_bytes };
        Pageview {
            name: "pageview",
            timestamp: self.at.0,
            url,
            hostname: host,
            referrer: self.referrer.as_deref(),
            user_agent: self.agent.as_deref(),
            ip: self.address,
            metadata,
        }
    }
}

#[derive(Serialize)]
struct Pageview<'e> {
    name: &'static str,
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'e, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referrer: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'e str>,
    ip: &'e str,
    metadata: Metadata<'e>,
}

#[derive(Serialize)]
struct Metadata<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

fn is_page(target: &str) -> bool {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, extension)) => !ASSETS.iter().any(|asset| asset.eq_ignore_ascii_case(extension)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant(1_431_857_103_000);

    fn summary(line: &str) -> Result<String, Unparsable> {
        let entry = parse(line)?;
        let text = |it: &Option<Cow<'_, str>>| it.as_deref().unwrap_or("~").to_owned();
        Ok(format!(
            "{} {} {} {} {} {} | {} | {}",
            entry.address,
            entry.host.unwrap_or("~"),
            text(&entry.method),
            text(&entry.target),
            entry.status.map_or("~".into(), |status| status.to_string()),
            entry.size_bytes.map_or("~".into(), |size| size.to_string()),
            text(&entry.referrer),
            text(&entry.agent)
        ))
    }

    #[test]
    fn lines_and_what_they_mean() {
        let table: [(&str, &str); 18] = [
            (
                r#"83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 203023 "http://x.com/" "Mozilla/5.0 (X11)""#,
                "83.149.9.216 ~ GET /a?b=c 200 203023 | http://x.com/ | Mozilla/5.0 (X11)",
            ),
            (r#"::1 - ada b [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 304 - "-" "-""#, "::1 ~ GET / 304 ~ | ~ | ~"),
            (r#"a.host - - [17/May/2015:10:05:03 +0000] "POST /x HTTP/2.0" 201 5"#, "a.host ~ POST /x 201 5 | ~ | ~"),
            (
                r#"w.x.com:443 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
                "1.2.3.4 w.x.com GET / 200 5 | ~ | ~",
            ),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /old" 200 5 "" "x""#, "1.2.3.4 ~ GET /old 200 5 | ~ | x"),
            (
                r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a b HTTP/1.1" 200 5 "-" "a \"q\" \\ \x41\xc3\xa9 z" rt=0.1"#,
                "1.2.3.4 ~ GET /a b 200 5 | ~ | a \"q\" \\ A\u{e9} z",
            ),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 0 "-" "-""#, "1.2.3.4 ~ ~ ~ 400 0 | ~ | ~"),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 - "-" "-""#, "1.2.3.4 ~ ~ ~ 408 ~ | ~ | ~"),
            (r#"1.2.3.4 - - [17/May/2015:12:05:03 +0200] "GET / HTTP/1.1" 200 5"#, "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            (r#"1.2.3.4 - - [17/May/2015:04:35:03 -0530] "GET / HTTP/1.1" 200 5"#, "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            ("1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5\r", "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            (r#"1.2.3.4, 10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            (r#"1.2.3.4,10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            (
                r#"unknown, [2001:db8::1]:443, 1.2.3.4 - ada b [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
                "2001:db8::1 ~ GET / 200 5 | ~ | ~",
            ),
            (r#"-, 1.2.3.4:80 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, "1.2.3.4 ~ GET / 200 5 | ~ | ~"),
            (r#"unknown, other - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, "unknown ~ GET / 200 5 | ~ | ~"),
            (
                r#"w.x.com:443 1.2.3.4, ::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
                "1.2.3.4 w.x.com GET / 200 5 | ~ | ~",
            ),
            (
                r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET http://y.com/z HTTP/1.1" 404 5"#,
                "1.2.3.4 ~ GET http://y.com/z 404 5 | ~ | ~",
            ),
        ];
        for (line, expected) in table {
            assert_eq!(summary(line).as_deref(), Ok(expected), "{line}");
            assert_eq!(parse(line).unwrap().at, AT, "{line}");
        }
    }

    #[test]
    fn lines_that_are_refused() {
        let table = [
            "",
            "hello",
            "1.2.3.4 - - 17/May/2015",
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 5"#,
            r#"1.2.3.4 - - [32/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
            r#"1.2.3.4 - - [17/Mai/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
            r#"1.2.3.4 - - [17/May/2015:24:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
            r#"1.2.3.4 - - [17/May/2015:10:05:03 UTC] "GET / HTTP/1.1" 200 5"#,
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1 200 5"#,
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" OK 5"#,
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla (compatible; Googlebot"#,
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-"#,
            "[17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5",
            "1.2.3.4 - - [\u{e9}7/May/2015:10:05:03 +\u{e9}00] \"GET / HTTP/1.1\" 200 5",
        ];
        for line in table {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_counts_as_a_page_view() {
        let table = [
            ("GET / HTTP/1.1", 200, true),
            ("GET /blog/v1.2 HTTP/1.1", 200, true),
            ("GET /a.html?x=a.png HTTP/1.1", 304, true),
            ("GET /paper.pdf HTTP/1.1", 200, true),
            ("GET /style.CSS?v=3 HTTP/1.1", 200, false),
            ("GET /robots.txt HTTP/1.1", 200, false),
            ("GET /feed.xml HTTP/1.1", 200, false),
            ("HEAD / HTTP/1.1", 200, false),
            ("POST / HTTP/1.1", 200, false),
            ("GET / HTTP/1.1", 301, false),
            ("GET / HTTP/1.1", 404, false),
            ("-", 408, false),
        ];
        for (request, status, expected) in table {
            let line = format!("1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"{request}\" {status} 5");
            assert_eq!(parse(&line).unwrap().is_successful_page_view(), expected, "{line}");
        }
    }

    #[test]
    fn the_event_has_the_shape_of_track() {
        let line = r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 5 "http://r.com/" "agent""#;
        let json = serde_json::to_string(&parse(line).unwrap().event(Some("x.com"))).unwrap();
        let expected = r#"{"name":"pageview","timestamp":1431857103000,"url":"https://x.com/a?b","hostname":"x.com","referrer":"http://r.com/","user_agent":"agent","ip":"1.2.3.4","metadata":{"method":"GET","status":200,"size":5}}"#;
        assert_eq!(json, expected);
    }
}
