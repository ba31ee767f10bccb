//! Detects bots: crawlers, monitors and previewers, by maintained lists of names and words, and by
//! the properties of their user agents.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::devices;
use super::lists::{BROWSERS, SYSTEMS};
use super::patterns::version_at;

/// The names of crawlers, monitors and previewers.
pub(super) static NAMES: LazyLock<Option<Words>> = LazyLock::new(|| {
    Words::read([include_str!("data/names.txt"), include_str!("data/own_bots.txt")].into_iter().flat_map(str::lines))
});

/// Names that are also parts of other words. They count only as whole words in this case.
static WHOLE_NAMES: LazyLock<Option<Words>> = LazyLock::new(|| Words::read(include_str!("data/more_names.txt").lines()));

/// Words of bots. No browser has them, but some devices and apps do: see [`of_device`].
static WORDS: LazyLock<Option<Words>> =
    LazyLock::new(|| Words::read(include_str!("data/words.txt").lines().chain(MORE_WORDS.iter().copied())));

/// HTTP programs and libraries, by the beginning of their agents.
static PROGRAMS: LazyLock<Option<Words>> = LazyLock::new(|| Words::read(include_str!("data/programs.txt").lines()));

/// Apps for feeds and podcasts with names that sound like bots.
static READERS: LazyLock<Option<Words>> = LazyLock::new(|| Words::read(include_str!("data/own_readers.txt").lines()));

/// Words that the list lacks, or has only as a pattern with look-around.
#[rustfmt::skip]
const MORE_WORDS: &[&str] = &[
    "bot", "scan", "slurp", "scrap", "indexer", "monitor", "uptime", "fetcher", "probe", "sitemap", "favicon", "imageproxy", "imgproxy",
    "lighthouse", "healthcheck", "health check", "health-check", "link check", "checklink", "rss", "theoldreader", "googlehc/", "visualping", "hyperping",
    "gomezagent", "ezooms", "daumoa", "mediapartners-google", "whatsapp/",
];

/// Words as parts of other words: a brand of phones, an app, and a company.
const OTHER_WORDS: &[(&str, &str)] = &[("bot", "cubot"), ("scan", "camscan"), ("bot", "abbott")];

/// A bot: its name and version, if the list of names has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bot<'a> {
    pub name: Option<&'static str>,
    pub version: Option<&'a str>,
}

impl Bot<'_> {
    const UNNAMED: Self = Self { name: None, version: None };
}

/// The bot of the agent, if any. Feed readers that fetch for many users are crawlers; apps in which
/// a person reads are not.
///
/// Automated browsers (`HeadlessChrome`, Playwright) are bots. HTTP clients (curl, python-requests,
/// no agent at all) are not, because servers send events with them. Phones and apps with names that
/// sound like bots are not, either.
pub(super) fn of(agent: &str) -> Option<Bot<'_>> {
    if is_made_up(agent) {
        return Some(Bot::UNNAMED);
    }
    if is_reader(agent) {
        return None;
    }
    if devices::is_handheld(agent) || devices::is_screen(agent) { of_device(agent) } else { of_other(agent) }
}

/// Whether the agent is an unfilled template, an injection attempt, or has a comment in the form of
/// Google's bots.
fn is_made_up(agent: &str) -> bool {
    let is_placeholder = || {
        let lower = agent.to_ascii_lowercase();
        ["useragent", "user agent", "user-agent", "user_agent"].into_iter().any(|text| lower.contains(text))
    };
    ["${", "{{", "<?", "(KHTML, like Gecko; "].into_iter().any(|text| agent.contains(text))
        || (!agent.contains("Mozilla/") && is_placeholder())
}

/// Whether the agent is an app in which a person reads. Its maker's servers use the same name, but
/// link to a page that explains them.
fn is_reader(agent: &str) -> bool {
    READERS.as_ref().is_some_and(|readers| readers.places(agent).next().is_some()) && !agent.contains("(+http")
}

/// HTTP programs are not bots, since servers send events with them.
pub(super) fn is_program(agent: &str) -> bool {
    // App Engine appends its name to the agent of every program that runs there.
    agent.eq_ignore_ascii_case("node")
        || PROGRAMS.as_ref().is_some_and(|programs| programs.begin(agent))
        || agent.contains("AppEngine-Google")
}

/// For a phone, a tablet or an app, whose names may contain any word. A bot on a device has its own
/// name beside the device, as a product (`AhrefsBot/7.0`) or in a comment with `compatible` or an
/// address.
fn of_device(agent: &str) -> Option<Bot<'_>> {
    // An app names its site, too.
    let is_browser = is_browser(agent);
    for part in beside_device(agent) {
        // The media player of WhatsApp sends `Device/…`; its link preview does not.
        if let Some(bot) = named(part, true).filter(|bot| bot.name != Some("WhatsApp")) {
            return Some(bot);
        }
        let says = |text| part.contains(text);
        if names_a_product(part) || (is_browser && ["http://", "https://"].into_iter().any(says)) {
            return Some(Bot::UNNAMED);
        }
    }
    None
}

fn is_browser(agent: &str) -> bool {
    agent.starts_with("Mozilla/") || agent.starts_with("Opera/")
}

/// The parts of an agent outside of the first comment, which describes the device. Of the comment,
/// only the part after `compatible` or the address.
fn beside_device(agent: &str) -> [&str; 3] {
    let Some(start) = agent.find('(') else { return [agent, "", ""] };
    let mut depth = 0_usize;
    let end = agent.bytes().enumerate().skip(start).find(|(_, byte)| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let end = end.map_or(agent.len(), |(end, _)| end + 1);
    let comment = &agent[start..end];
    let at =
        ["compatible;", "http://", "https://", "DuplexWeb-", "Storebot-"].into_iter().filter_map(|text| comment.find(text)).min();
    [&agent[..start], at.map_or("", |at| &comment[at..]), &agent[end..]]
}

/// Whether the text has a product whose name ends like the name of a bot.
fn names_a_product(text: &str) -> bool {
    let names = |word: &str| {
        let end = word.find('/').unwrap_or(word.len());
        let name = word[..end].to_ascii_lowercase();
        let is_product = end < word.len() || text.contains("compatible;");
        let ends = |part: &str| ["bot", "bots", "spider", "crawler"].into_iter().any(|bot| part.ends_with(bot));
        is_product && !name.starts_with("cubot") && name.split('-').any(ends)
    };
    text.split([' ', ';', '(', ')', ',']).any(names)
}

fn of_other(agent: &str) -> Option<Bot<'_>> {
    if let Some(bot) = named(agent, false) {
        return Some(bot);
    }
    let is_bot = has_word(agent) || (!is_program(agent) && (names_a_page(agent) || names_a_mailbox(agent) || is_nameless(agent)));
    is_bot.then_some(Bot::UNNAMED)
}

fn named(agent: &str, strictly: bool) -> Option<Bot<'_>> {
    let found = NAMES.as_ref()?.name(agent, strictly);
    let (name, at) = found.or_else(|| WHOLE_NAMES.as_ref()?.name(agent, true))?;
    let name = name.trim_end_matches('/');
    let version = version_at(agent, (at.start + name.len() + 1).min(agent.len()));
    Some(Bot { name: Some(name.trim()), version: Some(version).filter(|version| !version.is_empty()) })
}

fn has_word(agent: &str) -> bool {
    let Some(words) = WORDS.as_ref() else { return false };
    // What old versions of Internet Explorer list are the add-ons of a computer.
    let is_browser = is_browser(agent);
    let is_explorer = is_browser && (agent.contains("MSIE ") || agent.contains("Trident/"));
    words.places(agent).any(|(word, at)| {
        let is_other = OTHER_WORDS.iter().filter(|(part, _)| *part == word).any(|(part, whole)| {
            let start = at.start.checked_sub(whole.find(part).unwrap_or_default());
            let found = start.and_then(|start| agent.as_bytes().get(start..start + whole.len()));
            found.is_some_and(|found| found.eq_ignore_ascii_case(whole.as_bytes()))
        });
        let is_end = || !agent.as_bytes().get(at.end).is_some_and(u8::is_ascii_alphabetic);
        let is_general = || is_end() && ["bot", "crawler", "spider", "slurp"].contains(&word);
        // A browser's `rss` is a part of something else, such as the build of a system.
        let is_part = is_browser && word == "rss" && agent.as_bytes().get(at.end).is_some_and(u8::is_ascii_alphanumeric);
        !is_other && !is_part && (!is_explorer || is_general())
    })
}

/// Whether the agent links to a page about itself, as bots do: `+http://…`. Old extensions of
/// Internet Explorer link without the plus.
fn names_a_page(agent: &str) -> bool {
    let mut addresses = agent.match_indices("http").filter(|(at, _)| {
        let rest = &agent.as_bytes()[*at..];
        rest.starts_with(b"http://") || rest.starts_with(b"https://")
    });
    let is_explorer = agent.contains("MSIE");
    addresses.any(|(at, _)| !is_explorer || agent[..at].trim_end().ends_with('+'))
}

/// Whether the agent has a contact address, as isbot detects it: `name@host.`
fn names_a_mailbox(agent: &str) -> bool {
    agent.split('@').skip(1).any(|rest| {
        let host = rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '-').unwrap_or(rest.len());
        host > 1 && rest.starts_with(|first: char| first.is_ascii_alphabetic()) && rest[host..].starts_with('.')
    })
}

/// Whether the agent claims to be a browser, but names neither the browser nor a system.
fn is_nameless(agent: &str) -> bool {
    const SHORTEST: usize = "Mozilla/5.0 (x)".len();
    let knows =
        |patterns: &LazyLock<Option<super::patterns::Patterns>>| patterns.as_ref().is_some_and(|patterns| patterns.any(agent));
    agent.starts_with("Mozilla/") && agent.len() >= SHORTEST && !agent.contains("X11") && !knows(&SYSTEMS) && !knows(&BROWSERS)
}

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
    fn places<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = (&'static str, Range<usize>)> + 'a {
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
