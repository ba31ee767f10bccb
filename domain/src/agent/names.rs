//! The maintained list of names of crawlers, monitors and previewers.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// One name per line; `#` starts a comment. A leading `^` anchors the name to the start of the agent, a trailing `$` to
/// its end.
const LIST: &str = include_str!("data/names.txt");

/// Names up to this length must match whole words and the case of the list: `Yeti` matches, but neither `FEVER` nor the
/// `Sogou` of `SogouMobileBrowser`.
const SHORT_NAME_BYTES: usize = 6;

/// A name, and the position that it must have in an agent.
#[derive(Debug, Clone, Copy)]
struct Name {
    text: &'static str,
    at_start: bool,
    at_end: bool,
}

struct Names {
    finder: AhoCorasick,
    /// The names, by pattern index of the finder.
    names: Vec<Name>,
}

/// Never `None` in practice: the list is compiled in, and a test builds it.
static NAMES: LazyLock<Option<Names>> = LazyLock::new(|| {
    let names: Vec<Name> = LIST.lines().filter(|line| !line.starts_with('#')).map(name).collect();
    let texts = names.iter().map(|name| name.text);
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(texts).ok()?;
    Some(Names { finder, names })
});

/// Parses a line of the list.
fn name(line: &'static str) -> Name {
    let (at_start, text) = line.strip_prefix('^').map_or((false, line), |text| (true, text));
    let (at_end, text) = text.strip_suffix('$').map_or((false, text), |text| (true, text));
    Name { text, at_start, at_end }
}

/// Whether the agent contains one of the names.
pub(super) fn has_name(user_agent: &str) -> bool {
    let Some(names) = NAMES.as_ref() else {
        return false;
    };
    let agent = user_agent.as_bytes();
    names.finder.find_overlapping_iter(agent).any(|found| {
        let name = names.names[found.pattern()];
        let is_whole = || is_edge(agent, found.start()) && is_edge(agent, found.end());
        let is_same = || agent.get(found.range()) == Some(name.text.as_bytes());
        (!name.at_start || found.start() == 0)
            && (!name.at_end || found.end() == agent.len())
            && (name.text.len() > SHORT_NAME_BYTES || (is_same() && is_whole()))
    })
}

/// Whether a word boundary lies at this index.
fn is_edge(agent: &[u8], at: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let before = at.checked_sub(1).and_then(|before| agent.get(before));
    !is_letter(before) || !is_letter(agent.get(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_whole() {
        let names = NAMES.as_ref().unwrap();
        assert!(names.names.len() > 1_400, "{}", names.names.len());
        assert!(names.names.iter().all(|name| name.text.len() >= 3));
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
            assert_eq!(has_name(user_agent), expected, "{user_agent}");
        }
    }
}
