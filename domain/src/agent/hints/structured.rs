//! Structured fields (RFC 9651), as far as client hints use them: strings, and lists of strings
//! with parameters.

/// The maximum size of a field. No browser sends as much.
pub const MAX_BYTES: usize = 512;
const MAX_MEMBERS: usize = 16;

/// A member of a list: a string, and its parameter `v`. Escapes stay as they are: no known name has
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub text: &'a str,
    pub version: Option<&'a str>,
}

/// The members of a list; empty if the field is not a list or too long.
pub(super) fn list(field: &str) -> Vec<Member<'_>> {
    if field.len() > MAX_BYTES { Vec::new() } else { members(field).unwrap_or_default() }
}

/// The string value of a field, without its parameters.
pub(super) fn text(field: &str) -> Option<&str> {
    if field.len() > MAX_BYTES {
        return None;
    }
    let (member, rest) = member(trimmed(field))?;
    rest.is_empty().then_some(member.text)
}

fn members(field: &str) -> Option<Vec<Member<'_>>> {
    let mut members = Vec::new();
    let mut rest = trimmed(field);
    while !rest.is_empty() {
        let (found, after) = member(rest)?;
        members.push(found);
        rest = match after.trim_start_matches([' ', '\t']) {
            "" => "",
            more => Some(more.strip_prefix(',')?.trim_start_matches([' ', '\t'])).filter(|next| !next.is_empty())?,
        };
        if members.len() > MAX_MEMBERS {
            return None;
        }
    }
    Some(members)
}

fn member(field: &str) -> Option<(Member<'_>, &str)> {
    let (text, mut rest) = string(field)?;
    let mut version = None;
    while let Some(parameter) = rest.strip_prefix(';') {
        let parameter = parameter.trim_start_matches(' ');
        let key = parameter.find(|character: char| !is_key(character)).unwrap_or(parameter.len());
        if !parameter.starts_with(|first: char| first.is_ascii_lowercase() || first == '*') {
            return None;
        }
        let (name, after) = parameter.split_at(key);
        (rest, version) = match after.strip_prefix('=') {
            Some(value) => {
                let (value, rest) = bare(value)?;
                (rest, if name == "v" { Some(value) } else { version })
            }
            None => (after, version),
        };
    }
    Some((Member { text, version }, rest))
}

/// Splits off a string, without its quotes.
fn string(field: &str) -> Option<(&str, &str)> {
    let inside = field.strip_prefix('"')?;
    let mut bytes = inside.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((&inside[..at], &inside[at + 1..])),
            b'\\' if !matches!(bytes.next()?.1, b'"' | b'\\') => return None,
            b' '..=b'~' => {}
            _ => return None,
        }
    }
    None
}

/// Splits off a string, a token, a number or a boolean.
fn bare(field: &str) -> Option<(&str, &str)> {
    if field.starts_with('"') {
        return string(field);
    }
    let is_part = |character: char| character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/?".contains(character);
    let end = field.find(|character| !is_part(character)).unwrap_or(field.len());
    (end > 0).then(|| field.split_at(end))
}

fn is_key(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || "_-.*".contains(character)
}

fn trimmed(field: &str) -> &str {
    field.trim_matches(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(text: &'static str, version: Option<&'static str>) -> Member<'static> {
        Member { text, version }
    }

    #[test]
    fn lists_are_read_as_the_rfc_says() {
        let brands = r#""Chromium";v="124", "Google Chrome";v="124",	"Not-A.Brand";a=?1;v=99"#;
        let expected =
            vec![member("Chromium", Some("124")), member("Google Chrome", Some("124")), member("Not-A.Brand", Some("99"))];
        assert_eq!(list(brands), expected);
        assert_eq!(list(r#""a\"b\\c"; v="1""#), [member(r#"a\"b\\c"#, Some("1"))]);
        for none in [
            "",
            "  ",
            "Chromium",
            r#""a" "b""#,
            r#""a","#,
            r#""a\b""#,
            "\"a\u{e9}\"",
            "\"a",
            r#""a";V="1""#,
            r#""a";v="#,
            r#""a",,"b""#,
        ] {
            assert_eq!(list(none), [], "{none}");
        }
        assert_eq!(list(&format!("\"{}\"", "x".repeat(600))), []);
        assert_eq!(list(&vec!["\"a\""; 20].join(",")), []);
    }

    #[test]
    fn a_text_is_one_string() {
        assert_eq!(text(r#" "Windows" "#), Some("Windows"));
        assert_eq!(text(r#""""#), Some(""));
        assert_eq!(text(r#""a";b"#), Some("a"));
        for none in ["Windows", r#""a", "b""#, r#""a" b"#, "?1", ""] {
            assert_eq!(text(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(field in "[\"\\\\;=, va1é?\\PC]{0,60}") {
            let members = list(&field);
            prop_assert!(members.len() <= MAX_MEMBERS + 1);
            let _ = text(&field);
        }
    }
}
