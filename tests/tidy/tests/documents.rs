//! Habits of the documents: links lead somewhere, decisions are numbered and short, and what a
//! newcomer reads first stays short.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use headcount_tidy::source::{Source, files};

const RECORDS: &str = "docs/adr/";
const MAX_RECORD_WORDS: usize = 450;
/// What a newcomer reads first, and the words that it may have.
const MAX_WORDS: [(&str, usize); 3] = [("README.md", 900), ("docs/ARCHITECTURE.md", 1_800), ("docs/CLUSTER.md", 2_500)];
/// Their references are those of former commits.
const OF_BEFORE: [&str; 2] = ["CHANGELOG.md", "docs/adr/README.md"];

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns the text of each decision record by its file name.
fn records() -> BTreeMap<String, String> {
    let files = files(&[".md"]).into_iter();
    files
        .filter_map(|Source { name, text }| Some((name.strip_prefix(RECORDS)?.to_owned(), text)))
        .filter(|(name, _)| name != "README.md")
        .collect()
}

/// Returns the lines of a document that are not in blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns the anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        prose(text).filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let anchor = |heading: &str| {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

/// Returns what the links of a document lead to, but for addresses.
fn links(text: &str) -> Vec<&str> {
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.filter(|link| !link.contains(':') && !link.contains(char::is_whitespace)).collect()
}

/// Returns the path of a link from the document `from`.
fn resolved(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    if !path.is_empty() {
        parts.pop();
    }
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[test]
fn links_between_documents_hold() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let documents: BTreeMap<_, _> = files(&[".md"]).into_iter().map(|source| (source.name, source.text)).collect();
    let mut broken = Vec::new();
    for (name, text) in &documents {
        for link in links(text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = resolved(name, path);
            let holds = match documents.get(&target) {
                Some(text) => anchor.is_empty() || anchors(text).contains(anchor),
                None => root.join(&target).exists(),
            };
            if !holds {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn decisions_are_numbered_without_holes_have_a_status_and_are_short() {
    let records = records();
    let index = include_str!("../../../docs/adr/README.md");
    for (number, (name, text)) in (1..).zip(&records) {
        assert!(name.starts_with(&format!("{number:04}-")), "{name} is decision {number}");
        assert!(text.starts_with(&format!("# {number}. ")), "{name} has another number in its heading");
        let status =
            text.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or_else(|| panic!("{name} has no status"));
        assert!(status == "accepted" || status.starts_with("superseded by "), "{name}: {status}");
        assert!(words(text) <= MAX_RECORD_WORDS, "{name} has {} words", words(text));
        assert!(index.contains(&format!("({name})")), "docs/adr/README.md does not list {name}");
    }
}

#[test]
fn references_name_decisions_that_there_are() {
    let last = records().len();
    let mut wrong = Vec::new();
    for Source { name, text } in files(&[".md", ".rs", ".py", ".sh", ".js"]) {
        if OF_BEFORE.contains(&name.as_str()) {
            continue;
        }
        for rest in text.split("ADR ").skip(1) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            if digits.parse().is_ok_and(|number: usize| number == 0 || number > last) {
                wrong.push(format!("{name}: ADR {digits}"));
            }
        }
    }
    assert!(wrong.is_empty(), "no such decisions:\n{}", wrong.join("\n"));
}

#[test]
fn what_a_newcomer_reads_first_stays_short() {
    for Source { name, text } in files(&[".md"]) {
        if let Some((_, most)) = MAX_WORDS.iter().find(|(listed, _)| *listed == name) {
            assert!(words(&text) <= *most, "{name} has {} words, of {most}", words(&text));
        }
    }
}
