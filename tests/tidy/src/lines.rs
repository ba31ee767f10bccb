//! Production lines: those of Rust that are neither blank nor comments, and not of tests, benches
//! or examples, nor compiled for tests only.

use std::collections::BTreeMap;

use crate::source::Source;

/// Whether an attribute keeps an item for tests: those of the crate, or those that inject faults.
fn is_for_tests(line: &str) -> bool {
    line.starts_with("#[cfg(") && (line.contains("test") || line.contains("\"fault-injection\"")) && !line.contains("not(")
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

/// The beginnings of the paths of the modules that have such an attribute.
fn gated_modules(sources: &[Source], is_gate: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut paths = Vec::new();
    for Source { name, text } in sources {
        let folder = match name.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
            _ => name.trim_end_matches(".rs"),
        };
        let gated = text.lines().zip(text.lines().skip(1)).filter(|(attribute, _)| is_gate(attribute));
        let modules = gated.filter_map(|(_, item)| item.strip_suffix(';')?.rsplit_once("mod ").map(|(_, module)| module));
        paths.extend(modules.flat_map(|module| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/")]));
    }
    paths
}

/// The sources that are not of tests, by name or by the attribute of their module.
fn production(sources: &[Source]) -> impl Iterator<Item = &Source> {
    let of_tests = gated_modules(sources, &is_for_tests);
    let is_counted = move |source: &&Source| !source.is_test() && !of_tests.iter().any(|path| source.name.starts_with(path));
    sources.iter().filter(is_counted)
}

/// The production lines of each crate, by its folder, the root's own as `.`.
pub fn by_crate(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut crates = BTreeMap::new();
    for source in production(sources) {
        let folder = source.name.split_once("/src/").map_or(".", |(folder, _)| folder);
        *crates.entry(folder.to_owned()).or_insert(0) += production_lines(&source.text);
    }
    crates
}

/// The production lines of a build without the feature `cluster`.
pub fn of_default_build(sources: &[Source]) -> usize {
    let mut left_out = gated_modules(sources, &|attribute| attribute == OF_CLUSTER);
    left_out.push("cluster/src/".to_owned());
    let is_counted = |source: &&Source| !left_out.iter().any(|path| source.name.starts_with(path));
    let lines = |source: &Source| lines_without(&source.text, &|line| is_for_tests(line) || line == OF_CLUSTER);
    production(sources).filter(is_counted).map(lines).sum()
}
