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
/// The maximum size of the shown entries of an organization in bytes. It counts the newest entries
/// by their own size, so that every machine shows the same.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Files may be this large before entries beyond [`MAX_BYTES`] are removed.
const MAX_FILE_BYTES: u64 = MAX_BYTES as u64 / 4 * 5;
/// The number of entries read at once.
const WINDOW: u64 = 256;
/// The number of entries between two searches for old ones.
const EXPIRE_EVERY: u64 = 64;

/// An entry as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredEntry {
    version: u32,
    /// The position of its control record.
    pub(super) control: u64,
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
        Ok(stored.map_or(0, |(_, _, stored)| stored.control))
    }

    /// Appends all entries of one control record, or none. They are durable on return.
    pub(super) fn append(&mut self, control: u64, entries: &[AuditEntry]) -> Result<(), ControlError> {
        let stored = |entry: &AuditEntry| StoredEntry { version: VERSION, control, entry: entry.clone() };
        self.append_stored(&entries.iter().map(stored).collect::<Vec<_>>())
    }

    /// Appends all of these entries, or none. They are durable on return.
    pub(super) fn append_stored(&mut self, stored: &[StoredEntry]) -> Result<(), ControlError> {
        let payloads = stored.iter().map(serde_json::to_vec).collect::<Result<Vec<_>, _>>().map_err(ControlError::Unencodable)?;
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
        let mut first = self.log.reader().first_position();
        let horizon = horizon(now);
        self.visit(first, |position, _, stored| {
            first = position;
            if stored.entry.at < horizon { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.log.remove_before(first)?;
        if self.files()?.iter().map(|file| file.bytes).sum::<u64>() > MAX_FILE_BYTES {
            let oldest = self.visit_back(&mut |_| ControlFlow::Continue(()))?;
            self.log.remove_before(oldest)?;
        }
        Ok(())
    }

    /// Returns the entries that `query` selects, newest first; `None` if the entry to begin after
    /// doesn't exist.
    pub(super) fn page(&self, query: &AuditQuery, now: Instant) -> Result<Option<AuditPage>, ControlError> {
        let (horizon, mut has_begun) = (horizon(now), query.starting_after.is_none());
        let (mut entries, mut truncated) = (Vec::new(), false);
        self.visit_back(&mut |StoredEntry { entry, .. }| {
            if entry.at < horizon {
                return ControlFlow::Continue(());
            }
            if !has_begun {
                has_begun = query.starting_after.as_ref() == Some(&entry.id);
            } else if query.selects(&entry) {
                truncated = entries.len() == query.limit;
                if truncated {
                    return ControlFlow::Break(());
                }
                entries.push(entry);
            }
            ControlFlow::Continue(())
        })?;
        Ok(has_begun.then_some(AuditPage { entries, truncated }))
    }

    /// Passes the newest entries of [`MAX_BYTES`] to `visit`, newest first. Returns the position of
    /// the last one passed.
    pub(super) fn visit_back(&self, visit: &mut dyn FnMut(StoredEntry) -> ControlFlow<()>) -> Result<u64, ControlError> {
        let (first, mut next) = (self.log.reader().first_position().max(1), self.log.last_position());
        let (mut bytes, mut oldest) = (0, next + 1);
        while next >= first {
            let begin = next.saturating_sub(WINDOW - 1).max(first);
            for (position, length, stored) in self.read(begin, next)?.into_iter().rev() {
                bytes += length;
                if bytes > MAX_BYTES {
                    return Ok(oldest);
                }
                oldest = position;
                if visit(stored).is_break() {
                    return Ok(oldest);
                }
            }
            next = begin - 1;
        }
        Ok(oldest)
    }

    /// The files of the log.
    pub(super) fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        Ok(self.log.reader().hold().files()?.files)
    }

    /// Reads the entries between two positions, both included, each with its position and size.
    fn read(&self, from: u64, to: u64) -> Result<Vec<(u64, usize, StoredEntry)>, ControlError> {
        let mut found = Vec::new();
        self.visit(from, |position, length, stored| {
            if position > to {
                return ControlFlow::Break(());
            }
            found.push((position, length, stored));
            if position == to { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Passes the entries from a position on to `visit`.
    fn visit(&self, from: u64, mut visit: impl FnMut(u64, usize, StoredEntry) -> ControlFlow<()>) -> Result<(), ControlError> {
        let wanted = |partition| (partition == PARTITION).then_some(from.saturating_sub(1));
        let mut failure = None;
        self.log.reader().read(wanted, |record| match decode(record.payload, record.first) {
            Ok(stored) => visit(record.first, record.payload.len(), stored),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, ActorKind, AuditAction, AuditId, AuditTarget, TargetType};

    fn entry(number: i64) -> AuditEntry {
        let mut seed = number.unsigned_abs() + 1;
        // Text that hardly compresses.
        let random = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{seed:016x}")
        };
        AuditEntry {
            id: AuditId::random().unwrap(),
            at: Instant(number),
            actor: Actor::of(ActorKind::System),
            action: AuditAction::OrganizationUpdated,
            target: AuditTarget { kind: TargetType::Organization, id: String::new() },
            changes: std::collections::BTreeMap::new(),
            request_id: Some((0..24_576).map(random).collect()),
        }
    }

    /// Machines remove old entries at different times, and a machine may begin with the newest.
    #[test]
    fn every_machine_shows_the_same_newest_entries() {
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [mut all, mut expired, mut late] = dirs.each_ref().map(|dir| AuditFile::open(dir.path()).unwrap());
        for number in 0..150 {
            let entries = [entry(number)];
            all.append(number as u64 + 1, &entries).unwrap();
            expired.append(number as u64 + 1, &entries).unwrap();
            expired.expire(Instant(0)).unwrap();
            if number >= 40 {
                late.append(number as u64 + 1, &entries).unwrap();
            }
        }
        let shown = |file: &AuditFile| {
            let query = AuditQuery { limit: usize::MAX, ..AuditQuery::default() };
            file.page(&query, Instant(0)).unwrap().unwrap().entries
        };
        let newest = shown(&all);
        assert!((70..110).contains(&newest.len()), "{}", newest.len());
        assert!(shown(&expired) == newest && shown(&late) == newest);
        let bytes = |file: &AuditFile| file.files().unwrap().iter().map(|file| file.bytes).sum::<u64>();
        assert!(bytes(&expired) <= MAX_FILE_BYTES && bytes(&all) > MAX_FILE_BYTES, "{} {}", bytes(&expired), bytes(&all));
    }
}
