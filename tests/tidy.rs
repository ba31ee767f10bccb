//! Habits that a machine can check: the length of files and functions, and words that the tree must not hold.
//!
//! The lists of exceptions only shrink.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;

/// Files that are longer, each with its reason.
const LONG_FILES: &[&str] = &[];

/// Words that say that something is unfinished. Spelled in halves, so that this file doesn't hold them.
const UNFINISHED: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("unimple", "mented!"), ("to", "do!("), ("db", "g!(")];

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !matches!(name, "target" | ".git") {
                sources(&path, into);
            }
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

fn tree() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &mut files);
    assert!(files.len() > 100, "the tree was not found");
    let named =
        |path: PathBuf| (path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap());
    files.into_iter().map(named).collect()
}

/// The functions of a file: line, length, first words. By indentation, which rustfmt keeps.
fn functions(text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim_start();
        let bare = ["pub ", "pub(crate) ", "pub(super) ", "const ", "async "]
            .iter()
            .fold(trimmed, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let bare = bare.strip_prefix("async ").unwrap_or(bare);
        match &open {
            None if bare.starts_with("fn ") && !trimmed.ends_with(';') && !trimmed.ends_with('}') => {
                open = Some((number, indent, trimmed.to_owned()));
            }
            Some((start, at, name)) if indent == *at && trimmed.starts_with('}') => {
                found.push((*start + 1, number - start + 1, name.clone()));
                open = None;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn files_and_functions_fit() {
    let mut long = Vec::new();
    for (name, text) in tree() {
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES && !LONG_FILES.contains(&name.as_str()) {
            long.push(format!("{name}: {lines} lines"));
        }
        for (line, length, function) in functions(&text) {
            if length > MAX_FUNCTION_LINES {
                long.push(format!("{name}:{line}: {length} lines: {function}"));
            }
        }
    }
    assert!(long.is_empty(), "too long:\n{}", long.join("\n"));
}

#[test]
fn nothing_says_that_it_is_unfinished() {
    let mut found = Vec::new();
    for (name, text) in tree() {
        for (number, line) in text.lines().enumerate() {
            if UNFINISHED.iter().any(|(first, second)| line.contains(&format!("{first}{second}"))) {
                found.push(format!("{name}:{}: {line}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn imports_go_one_way() {
    for (folder, forbidden) in [
        (
            "domain/src",
            &["headcount_storage", "headcount_actors", "actix", "sled::", "tokio", "std::fs", "std::net", "SystemTime"][..],
        ),
        ("storage/src", &["headcount_domain", "headcount_actors", "actix"]),
        ("actors/src", &["actix_web"]),
        ("tests/model", &["headcount_domain", "headcount_storage", "headcount_actors"]),
        ("tests/histories", &["headcount_domain", "headcount_storage", "headcount_actors"]),
    ] {
        for (name, text) in tree().iter().filter(|(name, _)| name.starts_with(folder)) {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let wrong = code.filter(|line| forbidden.iter().any(|word| line.contains(word))).collect::<Vec<_>>();
            assert!(wrong.is_empty(), "{name} knows what it must not: {wrong:?}");
        }
    }
}

#[test]
fn the_measure_measures() {
    let short = "fn a() {\n    b();\n}\n";
    let long = format!("impl X {{\n    pub async fn a(\n        b: u8,\n    ) {{\n{}    }}\n}}\n", "        b();\n".repeat(80));
    assert_eq!(functions(short).iter().map(|f| f.1).collect::<Vec<_>>(), [3]);
    assert_eq!(functions(&long).iter().map(|f| f.1).collect::<Vec<_>>(), [84]);
}
