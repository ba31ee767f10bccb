//! The scalars of an event's metadata by path, and which paths become columns.
//!
//! A column holds at every row what [`MetadataPath::find`] finds there, so that a filter or a grouping may read the column in the place
//! of the metadata.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use headcount_domain::intake::fields::{MetadataPath, Scalar};
use headcount_domain::intake::submission::{MAX_METADATA_DEPTH, Text};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How many paths of a file may be columns.
pub const MAX_PATH_COLUMNS: usize = 64;
/// The longest path that may be a column: its name is in the footer once a row group.
pub const MAX_COLUMN_PATH_BYTES: usize = 128;
/// How many paths are counted at a time. Frequent ones come early; those that find no place are not columns.
const MAX_COUNTED_PATHS: usize = 4_096;
/// A path that fewer rows have is not worth a column: one in so many.
const RARE_ONE_IN: u64 = 100;

/// Calls `visit` with each path under which `json` has a scalar other than null, and the JSON text of the scalar: the shortest one, so that
/// equal scalars have equal texts. Paths that can't be columns are passed over.
pub fn visit_scalars(json: &str, mut visit: impl FnMut(&str, Cow<'_, str>)) {
    let Some(top) = entries(json) else { return };
    let mut path = String::new();
    for (key, value) in &top {
        path.clear();
        path.push_str(key);
        visit_value(value, &mut path, 1, &mut |path, text| {
            // The whole path as one key comes first, whatever it holds.
            let is_nested = path.len() > key.len();
            if !is_nested || !top.contains_key(path) {
                visit(path, text);
            }
        });
    }
}

/// Calls `visit` with the scalar `json` at `path`, or with those below if it is an object.
fn visit_value(json: &str, path: &mut String, depth: usize, visit: &mut dyn FnMut(&str, Cow<'_, str>)) {
    if path.len() > MAX_COLUMN_PATH_BYTES {
        return;
    }
    if !json.starts_with('{') {
        let text = Scalar::parse(json).and_then(|scalar| shortest(json, &scalar));
        if let Some(text) = text.filter(|_| !path.is_empty()) {
            visit(path, text);
        }
        return;
    }
    // A path is taken apart at every dot, so that nothing below a key with a dot is found.
    if depth >= MAX_METADATA_DEPTH || depth == 1 && path.contains('.') {
        return;
    }
    for (key, value) in entries(json).iter().flatten() {
        if !key.contains('.') {
            let end = path.len();
            path.push('.');
            path.push_str(key);
            visit_value(value, path, depth + 1, visit);
            path.truncate(end);
        }
    }
}

/// The shortest JSON text of a scalar; `None` for null.
fn shortest<'j>(json: &'j str, scalar: &Scalar<'_>) -> Option<Cow<'j, str>> {
    match scalar {
        Scalar::Null => None,
        Scalar::Bool(_) => Some(Cow::Borrowed(json)),
        Scalar::Number(number) => Some(Cow::Owned(number.to_string())),
        Scalar::Text(text) if text.len() + 2 == json.len() => Some(Cow::Borrowed(json)),
        Scalar::Text(text) => serde_json::to_string(text).ok().map(Cow::Owned),
    }
}

/// The entries of a JSON object, the last of each key; `None` if `json` is none.
fn entries(json: &str) -> Option<BTreeMap<Cow<'_, str>, &str>> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = BTreeMap<Cow<'de, str>, &'de str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some(Text(key)) = map.next_key()? {
                entries.insert(key, map.next_value::<&'de RawValue>()?.get());
            }
            Ok(entries)
        }
    }
    serde_json::Deserializer::from_str(json).deserialize_map(Entries).ok()
}

/// Counts in how many rows each path has a scalar.
#[derive(Debug, Default)]
pub struct PathCounts {
    rows: u64,
    counts: HashMap<Box<str>, u64>,
}

impl PathCounts {
    /// Counts the paths of one row.
    pub fn add(&mut self, metadata: &str) {
        self.rows += 1;
        visit_scalars(metadata, |path, _| self.add_times(path, 1));
    }

    /// Counts a path that so many of `rows` rows have.
    pub(crate) fn add_column(&mut self, path: &str, times: u64) {
        self.add_times(path, times);
    }

    /// Counts rows of which [`Self::add_column`] gives the paths.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    fn add_times(&mut self, path: &str, times: u64) {
        if let Some(count) = self.counts.get_mut(path) {
            *count += times;
        } else if self.counts.len() < MAX_COUNTED_PATHS {
            self.counts.insert(path.into(), times);
        }
    }

    /// The paths that become columns: the most frequent ones, since each saves the reading of as many texts as there are rows that have
    /// it; of equally frequent ones those that come first in byte order, so that the same rows make the same file. Two paths that
    /// differ in case only would be one column to SQL: the less frequent one stays out.
    #[must_use]
    pub fn columns(&self) -> Vec<MetadataPath> {
        let mut paths: Vec<_> = self.counts.iter().filter(|(_, count)| **count * RARE_ONE_IN >= self.rows).collect();
        paths.sort_unstable_by(|(path, count), (other, times)| times.cmp(count).then_with(|| path.cmp(other)));
        let mut seen = HashSet::new();
        let distinct = paths.into_iter().filter(|(path, _)| seen.insert(path.to_lowercase()));
        distinct.filter_map(|(path, _)| MetadataPath::parse(path).ok()).take(MAX_PATH_COLUMNS).collect()
    }
}

#[cfg(test)]
mod tests;
