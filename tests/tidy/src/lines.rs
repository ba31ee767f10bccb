//! Production lines: those of Rust that are neither blank nor comments, and not of tests, benches
//! or examples.

use std::collections::BTreeMap;

use crate::source::Source;

/// Whether an attribute keeps an item for tests.
fn is_for_tests(line: &str) -> bool {
    line.starts_with("#[cfg(") && line.contains("test") && !line.contains("not(")
}

/// Keeps an item for builds with the feature `cluster`.
const OF_CLUSTER: &str = "#[cfg(feature = \"cluster\")]";

/// Counts the production lines of a formatted file.
pub fn production_lines(text: &str) -> usize {
    lines_without(text, &is_for_tests)
}

/// Counts the production lines of a formatted file, without items that have such an attribute.
fn lines_without(text: &str, is_left_out: &dyn Fn(&str) -> bool) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if is_left_out(code) {
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

/// The production lines of a build without the feature `cluster`.
pub fn of_default_build(sources: &[Source]) -> usize {
    let mut left_out = vec!["cluster/src/".to_owned()];
    for Source { name, text } in sources {
        let folder = match name.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
            _ => name.trim_end_matches(".rs"),
        };
        let gated = text.lines().zip(text.lines().skip(1)).filter(|(attribute, _)| *attribute == OF_CLUSTER);
        let modules = gated.filter_map(|(_, item)| item.strip_suffix(';')?.rsplit_once("mod ").map(|(_, module)| module));
        left_out.extend(modules.flat_map(|module| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/")]));
    }
    let is_counted = |source: &&Source| !source.is_test() && !left_out.iter().any(|path| source.name.starts_with(path.as_str()));
    let lines = |source: &Source| lines_without(&source.text, &|line| is_for_tests(line) || line == OF_CLUSTER);
    sources.iter().filter(is_counted).map(lines).sum()
}
