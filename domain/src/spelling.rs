//! Normalizes the spelling of pages: one form for all ways to escape the letters of a path.

use std::borrow::Cow;

use crate::text::written_path;

/// Returns a URL with its path in normal form. Escapes of letters, digits, `-._~` and UTF-8
/// characters except spaces and controls are decoded; other escapes have upper-case digits.
/// Idempotent.
pub fn spelled(url: &str) -> Cow<'_, str> {
    let path = written_path(url);
    if memchr::memchr(b'%', path.as_bytes()).is_none() {
        return Cow::Borrowed(url);
    }
    // The path is a slice of the URL.
    let start = path.as_ptr().addr() - url.as_ptr().addr();
    let (before, after) = (&url[..start], &url[start + path.len()..]);
    Cow::Owned(format!("{before}{}{after}", spelled_path(path)))
}

fn spelled_path(path: &str) -> String {
    let mut spelled = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        let (escaped, after) = escaped_bytes(rest);
        for chunk in escaped.utf8_chunks() {
            for letter in chunk.valid().chars() {
                push_unescaped(&mut spelled, letter);
            }
            chunk.invalid().iter().for_each(|byte| push_escape(&mut spelled, *byte));
        }
        if escaped.is_empty() {
            spelled.push(letter);
        }
        rest = if escaped.is_empty() { &rest[letter.len_utf8()..] } else { after };
    }
    spelled
}

/// Returns the bytes of the escapes at the beginning of a text, and the rest.
fn escaped_bytes(text: &str) -> (Vec<u8>, &str) {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((digits, after)) = rest.strip_prefix('%').and_then(|rest| rest.split_at_checked(2)) {
        let digits = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { break };
        bytes.push(byte);
        rest = after;
    }
    (bytes, rest)
}

/// Adds an escaped character. It is decoded if that keeps the page and forms no escape with a `%`
/// before it.
fn push_unescaped(spelled: &mut String, letter: char) {
    let stands_for_itself = match letter {
        '-' | '.' | '_' | '~' => true,
        letter if letter.is_ascii_hexdigit() => !matches!(spelled.as_bytes(), [.., b'%'] | [.., b'%', _]),
        letter if letter.is_ascii() => letter.is_ascii_alphanumeric(),
        letter => !letter.is_whitespace() && !letter.is_control(),
    };
    if stands_for_itself {
        spelled.push(letter);
    } else {
        letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escape(spelled, byte));
    }
}

fn push_escape(spelled: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    spelled.extend(['%', DIGITS[usize::from(byte >> 4)].into(), DIGITS[usize::from(byte & 15)].into()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_has_one_spelling() {
        for (url, expected) in [
            ("https://a.example/%C3%BCber?x=%C3%BC#%41", "https://a.example/über?x=%C3%BC#%41"),
            ("https://a.example/%c3%bcber", "https://a.example/über"),
            ("/%D0%BF%D1%80%D0%B8", "/при"),
            ("/%E0%A4%B9%E0%A4%BF", "/हि"),
            ("/%E4%BD%A0%E5%A5%BD", "/你好"),
            ("/%F0%9F%98%80", "/😀"),
            ("/a%2fb%3Fc%23d%20e%26%3d%25", "/a%2Fb%3Fc%23d%20e%26%3D%25"),
            ("/%7Euser%2Ehtml%2D%5F", "/~user.html-_"),
            ("/%41%7a%30", "/Az0"),
            ("/%ff%C3%28%c3", "/%FF%C3%28%C3"),
            ("/%C2%A0%E2%80%A8%0a%7F%C2%85", "/%C2%A0%E2%80%A8%0A%7F%C2%85"),
            ("/100%", "/100%"),
            ("/100%/%zz%4", "/100%/%zz%4"),
            ("/%2541", "/%2541"),
            ("/%%34%31", "/%%341"),
            ("/%4%31", "/%4%31"),
            ("https://u%41@a.example", "https://u%41@a.example"),
            ("https://a%41.example/%41", "https://a%41.example/A"),
            ("  /%41  ", "  /A  "),
            ("%41", "A"),
            ("/a?%41", "/a?%41"),
            ("", ""),
        ] {
            assert_eq!(spelled(url), expected, "{url}");
        }
    }

    proptest! {
        #[test]
        fn a_spelling_is_its_own(url in "(https://a%4)?(/|%|[0-9a-fA-F]|%2|%c3%|%BC|é| |\\?|#){0,16}") {
            let once = spelled(&url).into_owned();
            prop_assert_eq!(spelled(&once), once.as_str());
            prop_assert!(once.len() <= url.len());
        }
    }
}
