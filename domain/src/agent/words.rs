//! Lists of words: names of crawlers, words of bots, and programs that speak HTTP.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// Names up to this length must match whole words and the case of the list: `Yeti` matches, but
/// neither `FEVER` nor the `Sogou` of `SogouMobileBrowser`.
const SHORT_NAME_BYTES: usize = 6;

/// A word, and the place in an agent where it counts.
#[derive(Debug, Clone, Copy)]
struct Word {
    text: &'static str,
    at_start: bool,
    at_end: bool,
    /// Whether no letter or digit may follow.
    ends_word: bool,
}

/// A list of words, found in any case.
#[derive(Debug)]
pub(super) struct Words {
    finder: AhoCorasick,
    /// By the index of the finder.
    words: Vec<Word>,
}

impl Words {
    /// Reads a list. A leading `^` means that the agent must begin with the word, a trailing `$`
    /// that it must end with it, and a trailing `\b` that the word must end there. Never `None` in
    /// practice, since the lists are compiled in.
    pub(super) fn read(lines: impl Iterator<Item = &'static str>) -> Option<Self> {
        let words: Vec<Word> = lines.filter(|line| !line.starts_with('#')).map(word).collect();
        let texts = words.iter().map(|word| word.text);
        let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(texts).ok()?;
        Some(Self { finder, words })
    }

    /// The places of the words in the agent.
    pub(super) fn places<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = (&'static str, Range<usize>)> + 'a {
        self.finder.find_overlapping_iter(agent).filter_map(|found| {
            let word = self.words[found.pattern()];
            let follows = agent.as_bytes().get(found.end());
            let fits = (!word.at_start || found.start() == 0)
                && (!word.at_end || found.end() == agent.len())
                && !(word.ends_word && follows.is_some_and(u8::is_ascii_alphanumeric));
            fits.then_some((word.text, found.range()))
        })
    }

    /// The first name of the list in the agent. Short names, and with `strictly` all names, must be
    /// whole words in the case of the list.
    pub(super) fn name(&self, agent: &str, strictly: bool) -> Option<(&'static str, Range<usize>)> {
        self.places(agent).find(|(name, at)| {
            let is_whole = || is_edge(agent.as_bytes(), at.start) && is_edge(agent.as_bytes(), at.end);
            let is_same = || agent.get(at.clone()) == Some(name);
            (name.len() > SHORT_NAME_BYTES && !strictly) || (is_same() && is_whole())
        })
    }

    /// Whether the agent begins with one of the words.
    pub(super) fn begin(&self, agent: &str) -> bool {
        self.places(agent).any(|(_, at)| at.start == 0)
    }
}

fn word(line: &'static str) -> Word {
    let (at_start, text) = line.strip_prefix('^').map_or((false, line), |text| (true, text));
    let (at_end, text) = text.strip_suffix('$').map_or((false, text), |text| (true, text));
    let (ends_word, text) = text.strip_suffix("\\b").map_or((false, text), |text| (true, text));
    Word { text, at_start, at_end, ends_word }
}

/// Whether a word boundary lies at this index.
fn is_edge(agent: &[u8], at: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let before = at.checked_sub(1).and_then(|before| agent.get(before));
    !is_letter(before) || !is_letter(agent.get(at))
}

#[cfg(test)]
mod tests {
    use super::super::bots::NAMES;
    use super::*;

    #[test]
    fn the_list_is_read_whole() {
        let names = NAMES.as_ref().unwrap();
        assert!(names.words.len() > 1_400, "{}", names.words.len());
        assert!(names.words.iter().all(|name| name.text.len() >= 3));
    }

    #[test]
    fn names_are_where_the_list_wants_them() {
        for (user_agent, expected) in [
            ("LCC (+x)", true),
            ("An LCC ", false),
            ("Mozilla/5.0 (compatible; Yeti/1.1)", true),
            ("Mozilla/5.0 (compatible; YetiPhone)", false),
            ("x SSL Labs", true),
            ("SSL Labs x", false),
            ("Lipperhey SEO Service", true),
            ("Mozilla/5.0 (Linux; Android 5.1; FEVER Build/LMY47D)", false),
            ("", false),
        ] {
            assert_eq!(NAMES.as_ref().unwrap().name(user_agent, false).is_some(), expected, "{user_agent}");
        }
    }

    #[test]
    fn words_end_where_the_list_wants_it() {
        let words = Words::read(["monitor\\b"].into_iter()).unwrap();
        assert!(words.places("A Monitor/1").next().is_some());
        assert!(words.places("Monitoring").next().is_none());
    }
}
