//! The identities for which conditions on people hold, in the order in which a pass meets
//! identities.

use std::io;

use headcount_domain::RecordKey;

use super::identities::{KEY, bytes, key_of};
use super::record_sort::SortedRecords;

/// The windows of a question in which conditions hold: a bit for each.
pub(super) type HeldWindows = u8;

/// The identities for which all conditions hold in a window, with these windows.
pub(super) struct People {
    /// The identities whose windows differ from `others`.
    sorted: SortedRecords,
    /// The windows of all other identities.
    others: HeldWindows,
    /// The first identity that was not passed yet.
    next: Option<([u8; KEY], HeldWindows)>,
}

impl People {
    /// Reads identities, each with its windows. All others have the windows `others`.
    pub(super) fn new(sorted: SortedRecords, others: HeldWindows) -> io::Result<Self> {
        let mut people = Self { sorted, others, next: None };
        people.advance()?;
        Ok(people)
    }

    /// Whether identities that are not listed are chosen in the first window.
    pub(super) fn are_others_chosen(&self) -> bool {
        self.others & 1 > 0
    }

    /// Returns the next listed identity with its windows, which differ from `others`.
    pub(super) fn next_listed(&mut self) -> io::Result<Option<(RecordKey, HeldWindows)>> {
        let next = self.next;
        self.advance()?;
        Ok(next.map(|(key, windows)| (key_of(&key), windows)))
    }

    /// Returns the windows in which all conditions hold for an identity. Call it in the order of
    /// identities.
    pub(super) fn windows_of(&mut self, identity: RecordKey) -> io::Result<HeldWindows> {
        let key = bytes(identity);
        while self.next.is_some_and(|(next, _)| next < key) {
            self.advance()?;
        }
        Ok(self.next.filter(|(next, _)| *next == key).map_or(self.others, |(_, windows)| windows))
    }

    fn advance(&mut self) -> io::Result<()> {
        let record = self.sorted.next()?.and_then(|record| record.split_first_chunk::<KEY>());
        self.next = record.map(|(key, rest)| (*key, rest.first().copied().unwrap_or_default()));
        Ok(())
    }
}
