//! The scalars of an event's metadata by path, and the selection of paths that become columns.
//!
//! A column has the scalar that [`MetadataPath::find`] finds in each row, so filters and groupings
//! can read the column instead of the metadata.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use headcount_domain::intake::fields::{MetadataPath, Scalar};
use headcount_domain::intake::submission::{MAX_METADATA_DEPTH, Text};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The maximum number of paths that become columns of a file.
pub const MAX_PATH_COLUMNS: usize = 64;
/// The maximum length of a path that becomes a column. The footer repeats it for each row group.
pub const MAX_COLUMN_PATH_BYTES: usize = 128;
/// The maximum number of counted paths. Frequent paths occur early, so they are counted.
const MAX_COUNTED_PATHS: usize = 4_096;
/// A path becomes a column only if at least one in this many rows has it.
const RARE_ONE_IN: u64 = 100;

/// Calls `visit` with each path of a scalar other than null in `json`, and the scalar's shortest
/// JSON text. Equal scalars have equal texts. Skips paths that can't be columns.
pub fn visit_scalars(json: &str, mut visit: impl FnMut(&str, Cow<'_, str>)) {
    let Some(top) = Entries::parse(json) else { return };
    let mut path = String::new();
    for (key, value) in &top.0 {
        path.clear();
        path.push_str(key);
        visit_value(value, &mut path, 1, &mut |path, text| {
            // A key that equals the whole path takes precedence, even if its value is null.
            let is_nested = path.len() > key.len();
            if !is_nested || !top.has(path) {
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
        let text = match is_shortest(json) {
            true => Some(Cow::Borrowed(json)),
            false => Scalar::parse(json).and_then(|scalar| shortest(json, &scalar)),
        };
        if let Some(text) = text.filter(|_| !path.is_empty()) {
            visit(path, text);
        }
        return;
    }
    // Filters split paths at every dot, so they find nothing below a key with a dot.
    if depth >= MAX_METADATA_DEPTH || depth == 1 && path.contains('.') {
        return;
    }
    let Some(entries) = Entries::parse(json) else { return };
    for (key, value) in &entries.0 {
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

/// Whether the JSON text of a value is certainly the shortest text of a scalar other than null: a
/// text without escapes, or a plain number without redundant zeros. Most values are, and need not
/// be parsed.
fn is_shortest(json: &str) -> bool {
    /// Longer numbers are written with an exponent.
    const MAX_WHOLE_DIGITS: usize = 21;
    if json.starts_with('"') {
        return !json.contains('\\');
    }
    let digits = json.strip_prefix('-').unwrap_or(json);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(whole)
        && whole.len() <= MAX_WHOLE_DIGITS
        && !whole.starts_with('0')
        && fraction.is_none_or(|fraction| is_number(fraction) && !fraction.ends_with('0'))
}

/// The entries of a JSON object, each key once, with its last value. If there are more than
/// [`FEW_ENTRIES`], they are sorted by key.
struct Entries<'j>(Vec<(Cow<'j, str>, &'j str)>);

/// The number of entries up to which comparing all keys is cheaper than sorting them.
const FEW_ENTRIES: usize = 16;

impl<'j> Entries<'j> {
    /// `None` if `json` is not an object.
    fn parse(json: &'j str) -> Option<Self> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(Text(key)) = map.next_key()? {
                    entries.push((key, map.next_value::<&'de RawValue>()?.get()));
                }
                Ok(entries)
            }
        }
        let mut entries = serde_json::Deserializer::from_str(json).deserialize_map(Object).ok()?;
        if entries.len() > FEW_ENTRIES {
            entries.reverse();
            // The sort is stable, so the last value of a key remains.
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            entries.dedup_by(|(left, _), (right, _)| left == right);
        } else {
            let mut at = 0;
            while let Some(((key, _), later)) = entries.get(at..).and_then(<[_]>::split_first) {
                match later.iter().any(|(later, _)| later == key) {
                    true => drop(entries.remove(at)),
                    false => at += 1,
                }
            }
        }
        Some(Self(entries))
    }

    fn has(&self, key: &str) -> bool {
        match self.0.len() > FEW_ENTRIES {
            true => self.0.binary_search_by(|(known, _)| known.as_ref().cmp(key)).is_ok(),
            false => self.0.iter().any(|(known, _)| known == key),
        }
    }
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

    /// Selects the paths that become columns: the most frequent ones, since a column saves parsing
    /// the metadata of each row with the path. Ties are broken by byte order, so that equal rows
    /// give equal files. SQL ignores case, so of paths that differ only in case, only the most
    /// frequent one is selected.
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
