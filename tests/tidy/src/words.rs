//! Words and names that the glossary replaces.

use std::collections::BTreeSet;

use crate::source::Source;

/// The section of the glossary that lists them.
const SECTION: &str = "## Replaced words and names";

/// What must not come back.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Words, in lower case: in prose, and as a part of names.
    pub words: BTreeSet<String>,
    /// Names of items, fields and variables.
    pub names: BTreeSet<String>,
}

impl Replaced {
    /// Reads the tables of the glossary's section: words, and names in backticks, in their first
    /// column.
    ///
    /// # Panics
    /// The glossary has no such section.
    #[must_use]
    pub fn read(glossary: &str) -> Self {
        let (_, section) = glossary.split_once(SECTION).expect("the glossary lists what it replaces");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
        let mut replaced = Self::default();
        for entry in rows.flat_map(|(first, _)| first.split(", ")).filter(|entry| !matches!(*entry, "word" | "name")) {
            match entry.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
                Some(name) => replaced.names.insert(name.to_owned()),
                None => replaced.words.insert(entry.to_owned()),
            };
        }
        replaced
    }

    /// Returns the replaced words and names in a line of a file.
    #[must_use]
    pub fn found_in(&self, line: &str) -> Vec<&str> {
        let of_line = |entries: &BTreeSet<String>, parts: BTreeSet<String>| -> Vec<String> {
            entries.intersection(&parts).cloned().collect()
        };
        let identifiers = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let names = of_line(&self.names, identifiers.clone().map(str::to_owned).collect());
        let words = of_line(&self.words, identifiers.flat_map(parts).collect());
        let all = self.words.iter().chain(&self.names).map(String::as_str);
        all.filter(|entry| words.iter().chain(&names).any(|found| found == entry)).collect()
    }
}

/// The words of an identifier, in lower case: those of `CompanyLink` are `company` and `link`, as
/// are those of `company_link`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut before = ' ';
    for letter in identifier.chars() {
        let begins = before == ' ' || (letter.is_uppercase() && !before.is_uppercase());
        match letter {
            '_' => before = ' ',
            letter => {
                if begins {
                    parts.push(String::new());
                }
                parts.last_mut().unwrap().extend(letter.to_lowercase());
                before = letter;
            }
        }
    }
    parts
}

/// Where `sources` hold replaced words and names: file, line number and entry. The section that
/// lists them is passed over.
#[must_use]
pub fn found(sources: &[Source], replaced: &Replaced) -> Vec<String> {
    let mut found = Vec::new();
    for Source { name, text } in sources {
        let text = text.split(SECTION).next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            // The name of a file that isn't ours.
            let line = line.replace("swagger-ui-bundle", "");
            let entries = replaced.found_in(&line);
            found.extend(entries.iter().map(|entry| format!("{name}:{}: {entry}", number + 1)));
        }
    }
    found
}
