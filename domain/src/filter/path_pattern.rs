//! Patterns of paths: `/blog/*`, `/docs/**`.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// The maximum length of a pattern.
pub const MAX_PATTERN_BYTES: usize = 256;
/// The memory that a compiled pattern may take. A pattern of the maximum length needs a tenth.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A pattern that a whole text must fit, with its case: `*` stands for any run of characters
/// without `/`, `**` for any run, everything else for itself.
#[derive(Debug, Clone)]
pub struct PathPattern {
    text: Box<str>,
    /// Takes time in proportion to the text, whatever the pattern.
    compiled: Regex,
}

impl PathPattern {
    /// Parses a pattern. `None` if it is empty or longer than [`MAX_PATTERN_BYTES`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !(1..=MAX_PATTERN_BYTES).contains(&text.len()) {
            return None;
        }
        let mut source = String::from(r"\A");
        let mut rest = text;
        while let Some(at) = rest.find('*') {
            source.push_str(&regex::escape(&rest[..at]));
            let stars = rest[at..].bytes().take_while(|byte| *byte == b'*').count();
            let run = if stars == 1 { "[^/]*" } else { ".*" };
            let _written = write!(source, "{run}");
            rest = &rest[at + stars..];
        }
        source.push_str(&regex::escape(rest));
        source.push_str(r"\z");
        let compiled = RegexBuilder::new(&source).dot_matches_new_line(true).size_limit(MAX_COMPILED_BYTES).build().ok()?;
        Some(Self { text: text.into(), compiled })
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole text fits.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// Its approximate heap memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        // A compiled pattern of n characters takes some hundred bytes for each.
        self.text.len() * 100
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_star_stops_at_a_slash_and_two_do_not() {
        for (pattern, text, expected) in [
            ("/a", "/a", true),
            ("/a", "/A", false),
            ("/a", "/ab", false),
            ("/blog/*", "/blog/x", true),
            ("/blog/*", "/blog/", true),
            ("/blog/*", "/blog", false),
            ("/blog/*", "/blog/x/y", false),
            ("/blog/**", "/blog/x/y", true),
            ("/**/edit", "/a/b/edit", true),
            ("/**/edit", "/edit", false),
            ("**", "", true),
            ("*", "/", false),
            ("***", "/x/", true),
            ("/a.b+(c)", "/a.b+(c)", true),
            ("/a.b", "/axb", false),
            ("/*é*", "/caféx", true),
            ("/**", "/a\nb", true),
            ("/*", "/a\nb", true),
        ] {
            assert_eq!(PathPattern::parse(pattern).expect(pattern).fits(text), expected, "{pattern} and {text}");
        }
    }

    #[test]
    fn a_pattern_has_bounds() {
        assert!(PathPattern::parse("").is_none() && PathPattern::parse(&"x".repeat(MAX_PATTERN_BYTES + 1)).is_none());
        for longest in ["*/".repeat(MAX_PATTERN_BYTES / 2), "é".repeat(MAX_PATTERN_BYTES / 2), "*a".repeat(MAX_PATTERN_BYTES / 2)]
        {
            assert!(!PathPattern::parse(&longest).expect("within the bounds").fits(&"/".repeat(9)), "{longest}");
        }
    }

    /// By the definition: the first character of the pattern, and all that it can stand for.
    fn fits(pattern: &str, text: &str) -> bool {
        if let Some(rest) = pattern.strip_prefix("**") {
            let rest = rest.trim_start_matches('*');
            return (0..=text.len()).any(|end| text.is_char_boundary(end) && fits(rest, &text[end..]));
        }
        if let Some(rest) = pattern.strip_prefix('*') {
            let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
            return ends.take_while(|end| !text[..*end].contains('/')).any(|end| fits(rest, &text[end..]));
        }
        match (pattern.chars().next(), text.chars().next()) {
            (None, None) => true,
            (Some(expected), Some(found)) if expected == found => {
                fits(&pattern[expected.len_utf8()..], &text[found.len_utf8()..])
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_fits_as_defined(pattern in "[ab/*.é]{1,8}", text in "[ab/.é]{0,8}") {
            prop_assert_eq!(PathPattern::parse(&pattern).expect("a pattern").fits(&text), fits(&pattern, &text));
        }
    }
}
