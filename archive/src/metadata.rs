//! The scalars of an event's metadata by path, and the selection of paths that become columns.
//!
//! A column holds the scalar that [`MetadataPath::find`] finds in each row, so that filters and groupings can read the column instead of
//! the metadata.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use headcount_domain::intake::fields::{MetadataPath, Scalar};
use headcount_domain::intake::submission::{MAX_METADATA_DEPTH, Text};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The most paths that are columns of a file.
pub const MAX_PATH_COLUMNS: usize = 64;
/// The longest path that is a column. The footer repeats it for each row group.
pub const MAX_COLUMN_PATH_BYTES: usize = 128;
/// The most paths that are counted. Frequent paths occur early, so that they are among them.
const MAX_COUNTED_PATHS: usize = 4_096;
/// A path becomes a column only if at least one in so many rows has it.
const RARE_ONE_IN: u64 = 100;

/// Calls `visit` with each path at which `json` has a scalar other than null, and with the scalar's shortest JSON text. Equal scalars have
/// equal texts. Skips paths that can't be columns.
pub fn visit_scalars(json: &str, mut visit: impl FnMut(&str, Cow<'_, str>)) {
    let Some(top) = entries(json) else { return };
    let mut path = String::new();
    for (key, value) in &top {
        path.clear();
        path.push_str(key);
        visit_value(value, &mut path, 1, &mut |path, text| {
            // A key that equals the whole path takes precedence, even if its value is null.
            let is_nested = path.len() > key.len();
            if !is_nested || !top.contains_key(path) {
                visit(path, text);
            }
        });
    }
}

/// Visits the scalar `json` at `path`, or the scalars of the object `json` below `path`.
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
    // Filters split paths at every dot, so they find nothing below a key that contains one.
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

/// The entries of a JSON object, with the last value of each key; `None` if `json` is not an object.
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

/// Counts the rows that have a scalar at each path.
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

    /// Counts `times` rows that have `path`.
    pub(crate) fn add_column(&mut self, path: &str, times: u64) {
        self.add_times(path, times);
    }

    /// Counts rows whose paths are counted by [`Self::add_column`].
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

    /// Selects the paths that become columns: the most frequent ones, since a column saves the parsing of metadata in each row that has the
    /// path. Ties are broken by byte order, so that equal rows give equal files. Of paths that differ only in case, which SQL does not
    /// distinguish, only the most frequent one is selected.
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
