//! Counts of any number of companies or groups, in sorts on disk.

use std::io::{self, Write};

use headcount_actors::RecordSorter;
use serde::Serialize;

use super::collector::cut;
use super::parts::List;

/// Counts by key. A key has no byte 0.
pub(super) struct KeyCounts {
    counted: RecordSorter,
}

impl KeyCounts {
    pub(super) fn new(counted: RecordSorter) -> Self {
        Self { counted }
    }

    /// Counts a key, with something about it.
    pub(super) fn push(&mut self, key: &[u8], about: &[u8]) -> io::Result<()> {
        self.counted.push(&[key, &[0], about])
    }

    /// Passes each key with what was last in order of what was said about it, and its count, to
    /// `visit`.
    pub(super) fn finish(self, mut visit: impl FnMut(&[u8], &[u8], u64) -> io::Result<()>) -> io::Result<()> {
        let mut counted = self.counted.finish()?;
        let mut last: Option<(Vec<u8>, usize, u64)> = None;
        while let Some(record) = counted.next()? {
            let end = record.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
            let mut count = 1;
            if let Some((before, before_end, before_count)) = &last {
                if before[..*before_end] == record[..end] {
                    count += before_count;
                } else {
                    visit(&before[..*before_end], &before[before_end + 1..], *before_count)?;
                }
            }
            last = Some((record.to_vec(), end, count));
        }
        match last {
            Some((record, end, count)) => visit(&record[..end], &record[end + 1..], count),
            None => Ok(()),
        }
    }
}

/// Rows by their counts, descending; those of equal counts by name, and those of one name by key,
/// as in top lists.
pub(super) struct Ranking {
    rows: RecordSorter,
}

impl Ranking {
    pub(super) fn new(rows: RecordSorter) -> Self {
        Self { rows }
    }

    /// Adds a row. Nobody named it without a `name`.
    pub(super) fn push(&mut self, count: u64, name: Option<&str>, keys: &[&str], row: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_vec(row)?;
        let length = u32::try_from(json.len()).map_err(|_| cut())?;
        let name = name.or(keys.first().copied()).unwrap_or_default();
        let names = [&[name], keys].concat().join("\0");
        self.rows.push(&[&(u64::MAX - count).to_be_bytes(), names.as_bytes(), &[0], &json, &length.to_be_bytes()])
    }

    /// Writes the rows.
    pub(super) fn finish<W: Write + ?Sized>(self, list: &mut List<'_, W>) -> io::Result<()> {
        let mut rows = self.rows.finish()?;
        while let Some(record) = rows.next()? {
            let (head, length) = record.split_last_chunk().ok_or_else(cut)?;
            let begin = head.len().checked_sub(u32::from_be_bytes(*length) as usize).ok_or_else(cut)?;
            list.next()?.write_all(&head[begin..])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use headcount_actors::SpillDir;

    use super::*;

    #[test]
    fn keys_are_counted_and_ranked() {
        let dir = tempfile::tempdir().unwrap();
        let sorter = || RecordSorter::new(&SpillDir::new(dir.path()), 200);
        let mut tally = KeyCounts::new(sorter());
        for number in 0..300_u32 {
            let key = ["ann", "bob", "cy", "bob"][number as usize % 4];
            tally.push(key.as_bytes(), &number.to_be_bytes()).unwrap();
        }
        let mut ranking = Ranking::new(sorter());
        tally
            .finish(|key, about, count| {
                assert!(u32::from_be_bytes(about.try_into().unwrap()) >= 296, "the last");
                let key = std::str::from_utf8(key).unwrap();
                ranking.push(count, None, &[key], &(key, count))
            })
            .unwrap();
        ranking.push(75, Some("ab"), &["z"], &"of z").unwrap();
        ranking.push(75, Some("ab"), &["y", "b"], &"of y, b").unwrap();
        ranking.push(75, Some("ab"), &["y", "a"], &"of y, a").unwrap();
        let mut out = Vec::new();
        ranking.finish(&mut List::new(&mut out)).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n[\"bob\",150],\n\"of y, a\",\n\"of y, b\",\n\"of z\",\n[\"ann\",75],\n[\"cy\",75]"
        );
    }
}
