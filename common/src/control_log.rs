//! The log of control records: an interface, and its implementation on this machine's disk.

use std::ops::ControlFlow;
use std::path::Path;

use headcount_storage::log::{AppendEntry, Log, LogFile, LogOptions};

use crate::control_error::ControlError;
use crate::program_version::is_next;

const PARTITION: u16 = 0;
/// The approximate number of bytes of records synced together.
const TOGETHER_BYTES: usize = 1 << 20;

/// The version of records, and of snapshots of their state.
const RECORD_VERSION: u32 = 1;

/// Returns the latest version of records that this program reads and writes.
pub fn latest_record_version() -> u32 {
    if is_next() { RECORD_VERSION + 1 } else { RECORD_VERSION }
}

/// Control records in a total order, one per position. Positions begin at 1 and have no gaps.
///
/// Several processes may write to the same log, each through its own `ControlLog`. Its functions
/// block the calling thread.
pub trait ControlLog: std::fmt::Debug + Send {
    /// The position of the oldest kept record.
    fn first_position(&self) -> u64;

    /// The position of the last known record, or the one before the first if there is none. After a
    /// conflict, it is at least the position of the record that caused the conflict.
    fn last_position(&self) -> u64;

    /// The version of new records and of snapshots. This is the latest version, unless an older
    /// program reads the log.
    fn record_version(&self) -> u32 {
        latest_record_version()
    }

    /// Whether other machines write to the log, and remove records from it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Passes the pieces of the newest intact snapshot that machines have shared to `take`, if
    /// there is one.
    ///
    /// # Errors
    /// Returns a [`ControlError`], and the errors of `take`.
    fn read_shared_snapshot(&self, _take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>) -> Result<(), ControlError> {
        Ok(())
    }

    /// Finds out which records other writers have appended, and updates [`Self::last_position`].
    ///
    /// # Errors
    /// Returns [`ControlError::Log`] if the log can't be read.
    fn refresh(&mut self) -> Result<(), ControlError>;

    /// Appends a record, which must get the position `expected`. Durable on return. After an error
    /// nothing was recorded, except after [`ControlError::Undecided`]: then the record may have
    /// been recorded, and may still be, but only at `expected`. Once any record has that position,
    /// the outcome is known. The log stays usable.
    ///
    /// # Errors
    /// Returns [`ControlError::Conflict`] if another position is next, because `expected` comes
    /// from an outdated state. This record never causes it, or the change would be made twice.
    /// [`ControlError::Undecided`], or [`ControlError::Log`].
    fn append_at(&mut self, expected: u64, record: &[u8]) -> Result<(), ControlError>;

    /// Passes the records after `position` to `visit` in order, each with its position, at least up
    /// to [`Self::last_position`]. A shared log has the next record, or returns an error.
    ///
    /// # Errors
    /// Returns [`ControlError::Log`] if they can't be read, or differ from the recorded ones.
    fn read_after(&self, position: u64, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), ControlError>;

    /// Removes records before `position` where that is cheap, in whole segments. A shared log keeps
    /// them, because other machines may need them.
    ///
    /// # Errors
    /// Returns [`ControlError::Log`] if they can't be removed.
    fn remove_before(&mut self, position: u64) -> Result<(), ControlError>;

    /// The files of the records on this machine, for a backup; none if the records are elsewhere.
    ///
    /// # Errors
    /// Returns a [`ControlError`] if they can't be listed.
    fn files(&self) -> Result<Vec<LogFile>, ControlError>;
}

/// The control log in a local directory.
#[derive(Debug)]
pub struct LocalControlLog {
    log: Log,
}

impl LocalControlLog {
    /// Opens the log in `dir`, or creates one there.
    pub fn open(dir: &Path, segment_bytes: u64) -> Result<Self, ControlError> {
        let options = LogOptions { segment_bytes, prepare_ahead: false, ..LogOptions::default() };
        let (log, recovery) = Log::open(dir, options)?;
        if recovery.cut_bytes > 0 {
            tracing::warn!(cut_bytes = recovery.cut_bytes, "cut an unfinished record off the control log");
        }
        Ok(Self { log })
    }

    /// Appends records, many with one sync. After an error, the first ones may have been recorded.
    pub fn append_all(&mut self, records: &[Vec<u8>]) -> Result<(), ControlError> {
        let mut rest = records;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |record: &&Vec<u8>| {
                let is_first = bytes == 0;
                bytes += record.len();
                is_first || bytes <= TOGETHER_BYTES
            };
            let (together, later) = rest.split_at(rest.iter().take_while(fits).count());
            let entries = together.iter().map(|record| AppendEntry { partition: PARTITION, count: 1, payload: record });
            self.log.append(&entries.collect::<Vec<_>>())?;
            rest = later;
        }
        Ok(())
    }
}

impl ControlLog for LocalControlLog {
    fn first_position(&self) -> u64 {
        self.log.reader().first_position()
    }

    fn last_position(&self) -> u64 {
        self.log.last_position()
    }

    /// This process is the only writer.
    fn refresh(&mut self) -> Result<(), ControlError> {
        Ok(())
    }

    fn append_at(&mut self, expected: u64, record: &[u8]) -> Result<(), ControlError> {
        let next = self.last_position() + 1;
        if expected != next {
            return Err(ControlError::Conflict { expected, next });
        }
        self.log.append(&[AppendEntry { partition: PARTITION, count: 1, payload: record }])?;
        Ok(())
    }

    fn read_after(&self, position: u64, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), ControlError> {
        let wanted = |partition| (partition == PARTITION).then_some(position);
        Ok(self.log.reader().read(wanted, |record| visit(record.first, record.payload))?)
    }

    fn remove_before(&mut self, position: u64) -> Result<(), ControlError> {
        self.log.remove_before(position)?;
        Ok(())
    }

    fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        Ok(self.log.reader().hold().files()?.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_another_writer_preceded_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LocalControlLog::open(dir.path(), 1 << 16).unwrap();
        log.append_at(1, b"first").unwrap();
        for outdated in [0, 1, 3] {
            let error = log.append_at(outdated, b"other").unwrap_err();
            assert!(matches!(error, ControlError::Conflict { expected, next: 2 } if expected == outdated), "{error}");
        }
        log.append_at(2, b"second").unwrap();
        let mut records = Vec::new();
        let mut visit = |position, record: &[u8]| {
            records.push((position, record.to_vec()));
            ControlFlow::Continue(())
        };
        log.read_after(1, &mut visit).unwrap();
        assert_eq!(records, [(2, b"second".to_vec())]);
    }
}
