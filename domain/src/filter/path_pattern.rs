//! Patterns of paths: `/blog/*`, `/docs/**`.

/// The maximum length of a pattern.
pub const MAX_PATTERN_BYTES: usize = 256;
/// The words of a set of places in a pattern: before each byte, and at the end.
const WORDS: usize = MAX_PATTERN_BYTES / 64 + 1;

/// A pattern that a whole text must fit, with its case: `*` stands for any run of characters
/// without `/`, `**` for any run, everything else for itself.
///
/// Matching keeps the set of all places that the text so far can lead to, so it takes a few steps
/// for each byte of the text, whatever the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    /// For each byte, the places at which the pattern has it. Bytes that it lacks are left out.
    literals: Vec<(u8, Places)>,
    /// The places of one star, and of two or more.
    stars: Places,
    double_stars: Places,
    /// The place behind everything.
    end: usize,
}

/// A set of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Places([u64; WORDS]);

impl Places {
    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 > 0
    }

    fn and(self, other: &Places) -> Places {
        Places(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    fn or(self, other: Places) -> Places {
        Places(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The places after these.
    fn next(self) -> Places {
        let carry = |word: usize| word.checked_sub(1).map_or(0, |below| self.0[below] >> 63);
        Places(std::array::from_fn(|word| self.0[word] << 1 | carry(word)))
    }
}

impl PathPattern {
    /// Parses a pattern. `None` if it is empty or longer than [`MAX_PATTERN_BYTES`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !(1..=MAX_PATTERN_BYTES).contains(&text.len()) {
            return None;
        }
        let (mut literals, mut bytes) = (Vec::<(u8, Places)>::new(), text.bytes().peekable());
        let (mut stars, mut double_stars, mut end) = (Places::default(), Places::default(), 0);
        while let Some(byte) = bytes.next() {
            if byte == b'*' {
                let mut is_double = false;
                while bytes.next_if_eq(&b'*').is_some() {
                    is_double = true;
                }
                if is_double { &mut double_stars } else { &mut stars }.add(end);
            } else if let Some((_, places)) = literals.iter_mut().find(|(literal, _)| *literal == byte) {
                places.add(end);
            } else {
                let mut places = Places::default();
                places.add(end);
                literals.push((byte, places));
            }
            end += 1;
        }
        literals.sort_unstable_by_key(|(literal, _)| *literal);
        Some(Self { text: text.into(), literals, stars, double_stars, end })
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole text fits.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let any_star = self.stars.or(self.double_stars);
        // A star can stand for nothing. What follows a star is no star.
        let behind_stars = |places: Places| places.or(places.and(&any_star).next());
        let mut places = Places::default();
        places.add(0);
        places = behind_stars(places);
        for byte in text.bytes() {
            let literal = self.literals.binary_search_by_key(&byte, |(literal, _)| *literal).ok().map(|at| &self.literals[at].1);
            let moved = literal.map_or(Places::default(), |literal| places.and(literal).next());
            let stays = if byte == b'/' { &self.double_stars } else { &any_star };
            places = behind_stars(moved.or(places.and(stays)));
            if places == Places::default() {
                return false;
            }
        }
        places.has(self.end)
    }

    /// Its approximate heap memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.text.len() + self.literals.len() * size_of::<(u8, Places)>()
    }
}

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
        let whole = "x".repeat(MAX_PATTERN_BYTES);
        assert!(PathPattern::parse(&whole).expect("a pattern").fits(&whole));
        // The worst for those that go back, or that make a state of each set of places.
        for worst in ["*a".repeat(MAX_PATTERN_BYTES / 2), format!("**/*a{}", "/*".repeat(124))] {
            let (pattern, text) = (PathPattern::parse(&worst).expect("a pattern"), "/xa/y/za".repeat(512));
            assert!(!(0..100).any(|_| pattern.fits(&text)), "{worst}");
            assert!(pattern.weight() < 10_000);
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

        #[test]
        fn a_long_pattern_fits_as_defined(head in "[ab/é]{60,130}", rest in "[ab/*]{0,6}", text in "[ab/]{0,6}") {
            let (pattern, text) = (format!("{head}{rest}"), format!("{head}{text}"));
            prop_assert_eq!(PathPattern::parse(&pattern).expect("a pattern").fits(&text), fits(&pattern, &text));
        }
    }
}
