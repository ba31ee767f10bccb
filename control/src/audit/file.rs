//! The audit log of one organization. Each entry has the position of its control record.

use std::ops::ControlFlow;
use std::path::Path;

use headcount_common::ControlError;
use headcount_domain::Instant;
use headcount_storage::log::{AppendEntry, Log, LogFile, LogOptions};
use serde::{Deserialize, Serialize};

use crate::audit_entry::{AuditEntry, AuditPage, AuditQuery};

const PARTITION: u16 = 0;
const VERSION: u32 = 1;
const DAY_MS: i64 = 86_400_000;
/// How long entries are kept.
const KEPT_DAYS: i64 = 400;
const SEGMENT_BYTES: u64 = 256 * 1024;
/// The maximum size of an organization's entries in bytes. Beyond it, the oldest quarter is
/// removed.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The number of entries read at once.
const WINDOW: u64 = 256;
/// The number of entries between two searches for old ones.
const EXPIRE_EVERY: u64 = 64;

/// An entry as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredEntry {
    version: u32,
    /// The position of its control record.
    control: u64,
    entry: AuditEntry,
}

/// The audit log of an organization, open for one operation.
#[derive(Debug)]
pub(super) struct AuditFile {
    log: Log,
}

impl AuditFile {
    /// Opens the log in `dir`, or creates one there.
    pub(super) fn open(dir: &Path) -> Result<Self, ControlError> {
        let options = LogOptions { segment_bytes: SEGMENT_BYTES, prepare_ahead: false, ..LogOptions::default() };
        // Entries that are cut off here are still in the control log.
        Ok(Self { log: Log::open(dir, options)?.0 })
    }

    /// The position of the last control record whose entries it has; 0 if it has none.
    pub(super) fn reflects(&self) -> Result<u64, ControlError> {
        let last = self.log.last_position();
        let stored = self.read(last, last)?.pop();
        Ok(stored.map_or(0, |stored| stored.control))
    }

    /// Appends all entries of one control record, or none. They are durable on return.
    pub(super) fn append(&mut self, control: u64, entries: &[AuditEntry]) -> Result<(), ControlError> {
        let encode = |entry: &AuditEntry| serde_json::to_vec(&StoredEntry { version: VERSION, control, entry: entry.clone() });
        let payloads: Vec<Vec<u8>> = entries.iter().map(encode).collect::<Result<_, _>>().map_err(ControlError::Unencodable)?;
        let of = |payload| AppendEntry { partition: PARTITION, count: 1, payload };
        let entries: Vec<AppendEntry<'_>> = payloads.iter().map(|payload| of(payload.as_slice())).collect();
        self.log.append(&entries)?;
        Ok(())
    }

    /// Whether it is time for [`Self::expire`].
    pub(super) fn has_grown(&self, added: usize) -> bool {
        let last = self.log.last_position();
        last / EXPIRE_EVERY != last.saturating_sub(added as u64) / EXPIRE_EVERY
    }

    /// Removes entries that are too old, in whole segments.
    pub(super) fn expire(&mut self, now: Instant) -> Result<(), ControlError> {
        let (mut first, last) = (self.log.reader().first_position(), self.log.last_position());
        let horizon = horizon(now);
        self.visit(first, |position, stored| {
            first = position;
            if stored.entry.at < horizon { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.log.remove_before(first)?;
        let bytes: u64 = self.files()?.iter().map(|file| file.bytes).sum();
        if bytes > MAX_BYTES {
            let first = self.log.reader().first_position();
            self.log.remove_before(first + last.saturating_sub(first) / 4)?;
        }
        Ok(())
    }

    /// Returns the entries that `query` selects, newest first; `None` if the entry to begin after
    /// doesn't exist.
    pub(super) fn page(&self, query: &AuditQuery, now: Instant) -> Result<Option<AuditPage>, ControlError> {
        let horizon = horizon(now);
        let first = self.log.reader().first_position();
        let mut next = self.log.last_position();
        let mut has_begun = query.starting_after.is_none();
        let mut entries = Vec::new();
        while next >= first {
            let begin = next.saturating_sub(WINDOW - 1).max(first);
            for StoredEntry { entry, .. } in self.read(begin, next)?.into_iter().rev() {
                if entry.at < horizon {
                    continue;
                }
                if !has_begun {
                    has_begun = query.starting_after.as_ref() == Some(&entry.id);
                } else if query.selects(&entry) {
                    if entries.len() == query.limit {
                        return Ok(Some(AuditPage { entries, truncated: true }));
                    }
                    entries.push(entry);
                }
            }
            next = begin.saturating_sub(1);
            if begin == 0 {
                break;
            }
        }
        Ok(has_begun.then_some(AuditPage { entries, truncated: false }))
    }

    /// The files of the log.
    pub(super) fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        Ok(self.log.reader().hold().files()?.files)
    }

    /// Reads the entries between two positions, both included.
    fn read(&self, from: u64, to: u64) -> Result<Vec<StoredEntry>, ControlError> {
        let mut found = Vec::new();
        self.visit(from, |position, stored| {
            if position > to {
                return ControlFlow::Break(());
            }
            found.push(stored);
            if position == to { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Passes the entries from a position on to `visit`.
    fn visit(&self, from: u64, mut visit: impl FnMut(u64, StoredEntry) -> ControlFlow<()>) -> Result<(), ControlError> {
        let wanted = |partition| (partition == PARTITION).then_some(from.saturating_sub(1));
        let mut failure = None;
        self.log.reader().read(wanted, |record| match decode(record.payload, record.first) {
            Ok(stored) => visit(record.first, stored),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// The time before which entries are too old.
fn horizon(now: Instant) -> Instant {
    now.plus_ms(-KEPT_DAYS * DAY_MS)
}

fn decode(payload: &[u8], position: u64) -> Result<StoredEntry, ControlError> {
    let bad = |message: String| ControlError::BadRecord { position, message: format!("audit log: {message}") };
    let stored: StoredEntry = serde_json::from_slice(payload).map_err(|error| bad(error.to_string()))?;
    if stored.version != VERSION {
        return Err(ControlError::UnsupportedRecord { position, found: stored.version, supported: VERSION });
    }
    Ok(stored)
}
