//! Patterns over user agents, tried in the order of their lists. A pattern is compiled when an
//! agent first contains its required text. Most patterns are never compiled, and hostile agents
//! can't cause more than all of them.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex, RegexBuilder};

/// The size limit of a compiled pattern's cache.
const CACHE_BYTES: usize = 64 << 10;

/// A line of a list: the pattern, the name of its match (by default its first group), and a version
/// (by default its second group).
#[derive(Debug)]
struct Pattern {
    source: &'static str,
    name: &'static str,
    version: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

/// The result of the first matching pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub name: String,
    pub version: Option<&'a str>,
}

/// Lists of patterns, as `update.py` describes them.
#[derive(Debug)]
pub(super) struct Patterns {
    patterns: Vec<Pattern>,
    /// Finds the required texts of patterns, in any case.
    finder: AhoCorasick,
    /// The pattern that requires a text, by the text's index.
    owners: Vec<usize>,
    /// The patterns without a required text.
    always: Vec<usize>,
    /// Replacements of names that are taken from agents.
    renamed: HashMap<&'static str, &'static str>,
}

impl Patterns {
    /// Reads the lists. Never `None` in practice: they are compiled in, and a test reads them.
    pub(super) fn read(lists: &[&'static str]) -> Option<Self> {
        let (mut patterns, mut texts, mut owners, mut always) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut renamed = HashMap::new();
        for line in lists.iter().flat_map(|list| list.lines()).filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let (needed, source) = (columns.next()?, columns.next()?);
            if let Some(name) = needed.strip_prefix('=') {
                renamed.insert(name, source);
                continue;
            }
            match needed {
                "" => always.push(patterns.len()),
                _ => needed.split('|').for_each(|text| {
                    texts.push(text);
                    owners.push(patterns.len());
                }),
            }
            let (name, version) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
            patterns.push(Pattern { source, name, version, compiled: OnceLock::new() });
        }
        let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(texts).ok()?;
        Some(Self { patterns, finder, owners, always, renamed })
    }

    /// Returns the result of the first pattern that matches the agent.
    pub(super) fn first<'a>(&self, agent: &'a str) -> Option<Found<'a>> {
        self.candidates(agent).into_iter().find_map(|index| {
            let pattern = self.patterns.get(index)?;
            let captures = pattern.regex()?.captures(agent)?;
            Some(self.found(pattern, agent, &captures))
        })
    }

    /// Whether a pattern matches the agent.
    pub(super) fn any(&self, agent: &str) -> bool {
        let matches = |index: usize| self.patterns[index].regex().is_some_and(|regex| regex.is_match(agent));
        self.candidates(agent).into_iter().any(matches)
    }

    /// The patterns whose required texts are in the agent, in order.
    fn candidates(&self, agent: &str) -> Vec<usize> {
        let found = self.finder.find_overlapping_iter(agent).map(|text| self.owners[text.pattern()]);
        let mut candidates: Vec<usize> = found.chain(self.always.iter().copied()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    fn found<'a>(&self, pattern: &Pattern, agent: &'a str, captures: &Captures<'a>) -> Found<'a> {
        let group = |index| captures.get(index).map_or("", |group| group.as_str());
        let taken = group(1);
        let name = match pattern.name {
            "" => (*self.renamed.get(taken).unwrap_or(&taken)).to_owned(),
            name => name.replace("$1", taken),
        };
        let version = match pattern.version {
            "" => captures.get(2).map(|group| version_at(agent, group.start())).filter(|version| !version.is_empty()),
            // A version that uap-core states is a number; it is not in the agent.
            _ => None,
        };
        Found { name, version }
    }
}

impl Pattern {
    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(self.source).dfa_size_limit(CACHE_BYTES).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// The full version that begins at a byte of the agent. Patterns match at most three numbers of it.
pub(super) fn version_at(agent: &str, start: usize) -> &str {
    let rest = agent.get(start..).unwrap_or_default();
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
    rest[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::super::lists::{
        BROWSER_LISTS, OLD_TABLET_LISTS, PHONE_LISTS, SCREEN_LISTS, SERIES_LISTS, SYSTEM_LISTS, TABLET_WORD_LISTS,
    };
    use super::*;

    #[test]
    fn every_pattern_compiles_and_needs_what_it_matches() {
        let all = [BROWSER_LISTS, SYSTEM_LISTS, PHONE_LISTS, OLD_TABLET_LISTS, SCREEN_LISTS, SERIES_LISTS, TABLET_WORD_LISTS];
        for lists in all {
            let patterns = Patterns::read(lists).unwrap();
            assert!(patterns.always.len() < 20, "{}", patterns.always.len());
            for pattern in &patterns.patterns {
                assert!(pattern.regex().is_some(), "{}", pattern.source);
            }
        }
    }

    #[test]
    fn versions_are_whole() {
        assert_eq!(version_at("Edg/124.0.2478.51 x", 4), "124.0.2478.51");
        assert_eq!(version_at("Firefox/27.", 8), "27");
        assert_eq!(version_at("Line/é", 5), "");
    }
}
