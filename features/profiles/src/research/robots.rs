//! What `robots.txt` allows (RFC 9309).
//!
//! A file is kept as it came, and read anew for each URL. So it takes no more memory than it has
//! bytes, whatever rules it has, and each question takes time in proportion to its bytes and those
//! of the URL.

use std::borrow::Cow;

use headcount_outbound::url::{Position, Url};
use memchr::memmem;

/// The name that rules are for.
const AGENT: &[u8] = b"headcount";
/// The most bytes of a file, which is what the RFC asks for at least.
pub(crate) const MAX_BYTES: usize = 512 << 10;

/// The rules of one origin.
pub(crate) enum Rules {
    /// There are none.
    None,
    /// They could not be read, so that nothing is allowed.
    Unknown,
    Read(RobotsFile),
}

impl Rules {
    /// The rules that an answer to the request for `robots.txt` makes.
    pub(crate) fn of(status: u16, body: Vec<u8>) -> Self {
        match status {
            200..=299 => Self::Read(RobotsFile::new(body)),
            400..=499 => Self::None,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn allow(&self, url: &Url) -> bool {
        match self {
            Self::None => true,
            Self::Unknown => false,
            Self::Read(file) => file.allows(url),
        }
    }
}

/// A file with rules.
pub(crate) struct RobotsFile {
    body: Vec<u8>,
    /// Whether a group names this reader. Then the groups for everybody don't count.
    names_us: bool,
}

impl RobotsFile {
    fn new(body: Vec<u8>) -> Self {
        let names_us = lines(&body).any(|line| matches!(line, Line::Agent(agent) if is_us(agent)));
        Self { body, names_us }
    }

    /// Whether the longest rule that matches allows the URL, or none matches. Of two that are as
    /// long, the one that allows counts.
    fn allows(&self, url: &Url) -> bool {
        let path = unescaped(url[Position::BeforePath..Position::AfterQuery].as_bytes());
        let (mut longest, mut allows) = (0, true);
        let (mut in_group, mut among_agents) = (false, false);
        for line in lines(&self.body) {
            let (pattern, is_allowed) = match line {
                Line::Agent(agent) => {
                    let is_named = if self.names_us { is_us(agent) } else { agent == b"*" };
                    in_group = is_named || (among_agents && in_group);
                    among_agents = true;
                    continue;
                }
                Line::Rule(pattern, is_allowed) => (pattern, is_allowed),
            };
            among_agents = false;
            let length = if in_group { matched(pattern, &path) } else { None };
            if let Some(length) = length
                && (length > longest || (length == longest && is_allowed))
            {
                (longest, allows) = (length, is_allowed);
            }
        }
        allows
    }
}

/// A line that counts.
enum Line<'a> {
    /// The beginning of a group, or one more name of it.
    Agent(&'a [u8]),
    /// A pattern, and whether what it matches is allowed.
    Rule(&'a [u8], bool),
}

fn lines(body: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| {
        let line = line.split(|byte| *byte == b'#').next()?;
        let colon = memchr::memchr(b':', line)?;
        let (key, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if key.eq_ignore_ascii_case(b"user-agent") {
            return Some(Line::Agent(value));
        }
        let is_allowed = key.eq_ignore_ascii_case(b"allow");
        (is_allowed || key.eq_ignore_ascii_case(b"disallow")).then_some(Line::Rule(value, is_allowed))
    })
}

/// Whether a name is this reader's, with a version or without.
fn is_us(agent: &[u8]) -> bool {
    let end = agent.iter().position(|byte| !(byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-')));
    agent[..end.unwrap_or(agent.len())].eq_ignore_ascii_case(AGENT)
}

/// The length of a pattern, if it matches the beginning of a path: `*` stands for anything, `$` at
/// its end for the end of the path. Nothing matches the empty pattern.
///
/// What is between two `*` is looked for where the one before it was found first: if the pattern
/// matches at all, it matches so. Nothing is tried twice.
fn matched(pattern: &[u8], path: &[u8]) -> Option<usize> {
    let (body, is_anchored) = pattern.strip_suffix(b"$").map_or((pattern, false), |body| (body, true));
    let mut parts = body.split(|byte| *byte == b'*');
    let first = unescaped(parts.next()?);
    let (mut rest, mut length) = (path.strip_prefix(&*first)?, first.len());
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let part = unescaped(part);
        length += 1 + part.len();
        if is_anchored && parts.peek().is_none() {
            rest.strip_suffix(&*part)?;
            rest = b"";
        } else {
            rest = &rest[memmem::find(rest, &part)? + part.len()..];
        }
    }
    let is_match = !pattern.is_empty() && (!is_anchored || rest.is_empty());
    is_match.then_some(length + usize::from(is_anchored))
}

/// A text in one spelling: percent-encoded letters, digits, `-._~*$` and bytes beyond ASCII stand
/// for themselves, the others have capital hex digits.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |place: usize| char::from(*after.get(place)?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (byte, digit(0).zip(digit(1))) {
            (b'%', Some((high, low))) => {
                let value = high << 4 | low;
                if value.is_ascii_alphanumeric() || b"-._~*$".contains(&value) || !value.is_ascii() {
                    out.push(value);
                } else {
                    out.extend([b'%', after[0].to_ascii_uppercase(), after[1].to_ascii_uppercase()]);
                }
                rest = &after[2..];
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(file: &str, path: &str) -> bool {
        let url = Url::parse("https://acme.example").unwrap().join(path).unwrap();
        Rules::of(200, file.as_bytes().to_vec()).allow(&url)
    }

    /// Whether a pattern matches, tried in every way.
    fn naive(pattern: &[u8], path: &[u8]) -> bool {
        match pattern.split_first() {
            None => true,
            Some((b'$', [])) => path.is_empty(),
            Some((b'*', rest)) => (0..=path.len()).any(|at| naive(rest, &path[at..])),
            Some((byte, rest)) => path.split_first().is_some_and(|(first, path)| first == byte && naive(rest, path)),
        }
    }

    #[test]
    fn the_longest_rule_counts_and_allow_on_a_tie() {
        let file = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/*/c\nAllow: /same\nDisallow: /same\nDisallow: /*.pdf$\nAllow:\nDisallow:";
        for (path, expected) in [
            ("/", true),
            ("/a", false),
            ("/a/b", true),
            ("/a/b/x/y/c", false),
            ("/same", true),
            ("/x.pdf", false),
            ("/x.pdf?a", true),
            ("/A", true),
        ] {
            assert_eq!(allows(file, path), expected, "{path}");
        }
        assert!(!allows("User-agent: *\nDisallow: /*?", "/x?y=1") && allows("User-agent: *\nDisallow: /*?", "/x#?"));
    }

    /// The examples of RFC 9309, section 2.2.2, and others.
    #[test]
    fn spellings_of_a_path_are_one() {
        for (pattern, path, expected) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz", true),
            ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84", true),
            ("/foo/bar/%E3%83%84", "/foo/bar/\u{30c4}", true),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", true),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
            ("/a%2fb", "/a%2Fb", true),
            ("/a%2fb", "/a/b", false),
            ("/a-%2A.html", "/a-*.html", true),
            ("/a-%2A.html", "/a-b.html", false),
            ("/a-%24", "/a-$", true),
            ("/a$b", "/a$b", true),
            ("/100%", "/100%", true),
            ("/%4", "/%4", true),
        ] {
            assert_eq!(!allows(&format!("User-agent: *\nDisallow: {pattern}"), path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn groups_are_those_of_the_name_else_of_everybody() {
        let named = "\u{feff}user-agent:headcount/1.0 # us\rUser-Agent: other\r\nSitemap: x\ndisallow : /us # not here\n\n\
                     User-agent: *\nDisallow: /all\nUser-agent: HeadCount\nDisallow: /more";
        for (path, expected) in [("/us", false), ("/more", false), ("/all", true)] {
            assert_eq!(allows(named, path), expected, "{path}");
        }
        let others = "Disallow: /before\nUser-agent: headcounter\nUser-agent: x\nDisallow: /\nUser-agent: x\nUser-agent: *\nDisallow: /all";
        for (path, expected) in [("/before", true), ("/x", true), ("/all", false)] {
            assert_eq!(allows(others, path), expected, "{path}");
        }
        assert!(allows(
            "User-agent: headcount\nUser-agent: x\n\nUser-agent: *\nDisallow: /\nUser-agent: headcount\nAllow: /",
            "/"
        ));
    }

    #[test]
    fn what_is_no_file_allows_all_or_nothing() {
        let url = Url::parse("https://acme.example/x").unwrap();
        let of = |status: u16| Rules::of(status, b"User-agent: *\nAllow: /".to_vec()).allow(&url);
        assert!(of(200) && of(404) && !of(503) && !of(304));
        assert!(Rules::of(200, b"\0\xff<html>".to_vec()).allow(&url) && Rules::of(200, Vec::new()).allow(&url));
    }

    #[test]
    fn patterns_match_as_if_everything_was_tried() {
        let letters = b"ab*$/";
        let texts = |most: u32| (0..most).flat_map(|length| (0..5_usize.pow(length)).map(move |number| (length, number)));
        let text = |(length, number): (u32, usize)| -> Vec<u8> {
            (0..length).map(|place| letters[number / 5_usize.pow(place) % 5]).collect()
        };
        let paths: Vec<Vec<u8>> = texts(5).map(text).filter(|path| !path.contains(&b'*') && !path.contains(&b'$')).collect();
        for pattern in texts(6).map(text).filter(|pattern| !pattern.is_empty()) {
            for path in &paths {
                assert_eq!(
                    matched(&pattern, path).is_some(),
                    naive(&pattern, path),
                    "{} {}",
                    pattern.escape_ascii(),
                    path.escape_ascii()
                );
            }
        }
    }
}
