//! Production lines: those of Rust that are neither blank nor comments, and not of tests, benches
//! or examples.

use std::collections::BTreeMap;

use crate::source::Source;

/// Whether an attribute keeps an item for tests.
fn is_for_tests(line: &str) -> bool {
    line.starts_with("#[cfg(") && line.contains("test") && !line.contains("not(")
}

/// Counts the production lines of a formatted file.
pub fn production_lines(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if is_for_tests(code) {
            skip_item(&mut lines, line.len() - code.len());
        } else if !code.is_empty() && !code.starts_with("//") {
            count += 1;
        }
    }
    count
}

/// Skips the item that begins at an indentation: it ends with its closing brace there, or with its
/// first line.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>, indentation: usize) {
    let is_at = |line: &str| line.len() - line.trim_start().len() == indentation;
    let mut lines = lines.skip_while(|line| line.trim_start().starts_with("#["));
    let Some(first) = lines.next().filter(|line| !line.ends_with(';') && !line.ends_with('}') && !line.ends_with(',')) else {
        return;
    };
    debug_assert!(is_at(first), "{first}");
    lines.find(|line| is_at(line) && line.trim_start().starts_with(['}', ')']));
}

/// The production lines of each crate, by its folder, the root's own as `.`.
pub fn by_crate(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut crates = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let folder = source.name.split_once("/src/").map_or(".", |(folder, _)| folder);
        *crates.entry(folder.to_owned()).or_insert(0) += production_lines(&source.text);
    }
    crates
}
