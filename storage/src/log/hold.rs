//! Holds: the files of a log at one moment, which must not be removed.

use std::path::PathBuf;
use std::sync::Arc;

use super::cursor::{Cursor, Step};
use super::error::{Damage, LogError};
use super::segment::{SegmentHeader, segment_path};
use super::shared::LogState;
use super::{Position, floor};
use crate::files::File;

/// Keeps segments from being removed until it is dropped. The trimmer's next call removes segments
/// that it had to keep.
#[derive(Debug)]
pub struct LogHold {
    shared: Arc<LogState>,
    first: Position,
}

/// The files with a log up to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// Position of the last event in them.
    pub last_position: Position,
    /// The file that records where the log begins, and the segments in order.
    pub files: Vec<LogFile>,
}

/// A file of a log. Its first `bytes` never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The file.
    pub path: PathBuf,
    /// How many of its bytes belong to the log up to the position of [`LogFiles`].
    pub bytes: u64,
}

impl LogHold {
    pub(super) fn new(shared: &Arc<LogState>) -> Self {
        Self { first: shared.hold(), shared: Arc::clone(shared) }
    }

    pub(super) fn after(shared: &Arc<LogState>, position: Position) -> Self {
        Self { first: shared.hold_after(position), shared: Arc::clone(shared) }
    }

    /// Returns the files with the current durable part of the log. Truncated to their `bytes`, they
    /// form a complete log; side indexes are not included.
    ///
    /// Reads the last segment, since only its contents show where its last durable block ends.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if the last segment is not intact; [`LogError::Io`].
    pub fn files(&self) -> Result<LogFiles, LogError> {
        let (durable, headers) = self.shared.durable_segments();
        let dir = &self.shared.dir;
        let mut files = Vec::new();
        if floor::read(dir)?.is_some() {
            files.push(LogFile { path: floor::path(dir), bytes: floor::LEN as u64 });
        }
        // The segment of the next event is included even if it is empty, since all others may have
        // been removed.
        let headers: Vec<SegmentHeader> = headers.into_iter().filter(|header| header.first <= durable + 1).collect();
        let (last, sealed) =
            headers.split_last().ok_or(LogError::Damaged { segment: durable + 1, offset: 0, reason: Damage::Missing })?;
        for header in sealed {
            let path = segment_path(dir, header.first);
            let bytes = File::open(&path).and_then(|file| file.len()).map_err(|error| LogError::io("inspect", &path, error))?;
            files.push(LogFile { path, bytes });
        }
        files.push(LogFile { path: segment_path(dir, last.first), bytes: self.end_of(last, durable)? });
        Ok(LogFiles { last_position: durable, files })
    }

    /// Returns the offset at which the block of the position `durable` ends.
    fn end_of(&self, header: &SegmentHeader, durable: Position) -> Result<u64, LogError> {
        let (mut cursor, found) = Cursor::open(&self.shared.dir, header.first)?;
        if found != *header {
            return Err(cursor.damaged(Damage::WrongHeader));
        }
        while cursor.next <= durable {
            let offset = cursor.offset;
            let damaged = |reason| LogError::Damaged { segment: header.first, offset, reason };
            match cursor.step()? {
                Step::Block(_) => {}
                Step::End => return Err(damaged(Damage::EndsEarly)),
                Step::Bad(reason) => return Err(damaged(reason)),
            }
        }
        Ok(cursor.offset)
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        self.shared.release(self.first);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;

    use super::*;
    use crate::log::{AppendEntry, Log, LogOptions};

    const EVENTS: u64 = 9;

    fn open(dir: &Path) -> Log {
        Log::open(dir, LogOptions { segment_bytes: 0, prepare_ahead: false, repair: false }).unwrap().0
    }

    /// Appends an event. Three fill a segment.
    fn append(log: &mut Log, number: u64) {
        let payload: Vec<u8> =
            (0..1_100_u64).map(|at| ((at + 1_100 * number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        log.append(&[AppendEntry { partition: 1, count: 1, payload: &payload }]).unwrap();
    }

    fn positions(log: &Log) -> Vec<Position> {
        let mut found = Vec::new();
        let visit = |record: crate::log::Record<'_>| {
            found.push(record.first);
            ControlFlow::Continue(())
        };
        log.reader().read(|_| Some(0), visit).unwrap();
        found
    }

    fn copy(files: &LogFiles, to: &Path) {
        for LogFile { path, bytes } in &files.files {
            let whole = std::fs::read(path).unwrap();
            std::fs::write(to.join(path.file_name().unwrap()), &whole[..usize::try_from(*bytes).unwrap()]).unwrap();
        }
    }

    #[test]
    fn the_files_of_each_moment_are_a_log_that_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        for number in 0..=EVENTS {
            if number > 0 {
                append(&mut log, number);
            }
            let held = log.reader().hold().files().unwrap();
            assert_eq!(held.last_position, number);
            let place = tempfile::tempdir().unwrap();
            copy(&held, place.path());
            let mut copied = open(place.path());
            copied.reader().verify_all().unwrap();
            assert_eq!(positions(&copied), (1..=number).collect::<Vec<_>>());
            append(&mut copied, 99);
            assert_eq!(copied.last_position(), number + 1);
        }
    }

    #[test]
    fn nothing_is_removed_while_it_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        (1..=4).for_each(|number| append(&mut log, number));
        let (early, held) = (log.reader().hold(), log.reader().hold());
        drop(early);
        (5..=EVENTS).for_each(|number| append(&mut log, number));
        let trimmer = log.trimmer();
        assert_eq!(trimmer.remove_before(8).unwrap().segments, 0);
        let files = held.files().unwrap();
        drop(held);
        let removed = trimmer.remove_before(8).unwrap();
        assert!(removed.segments > 0 && removed.first_position > 1, "{removed:?}");
        let later = log.reader().hold().files().unwrap();
        assert!(later.files.len() < files.files.len());
        let place = tempfile::tempdir().unwrap();
        copy(&later, place.path());
        assert_eq!(positions(&open(place.path())), (removed.first_position..=EVENTS).collect::<Vec<_>>());
    }

    #[test]
    fn what_follows_a_position_is_kept_and_what_comes_before_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        (1..=EVENTS).for_each(|number| append(&mut log, number));
        let (trimmer, early) = (log.trimmer(), log.reader().hold_after(4));
        let first = trimmer.remove_before(EVENTS).unwrap().first_position;
        assert!(first > 1 && first <= 5, "{first}");
        let later = log.reader().hold_after(6);
        drop(early);
        let first = trimmer.remove_before(EVENTS).unwrap().first_position;
        assert!(first > 4 && first <= 7, "{first}");
        drop(later);
        assert_eq!(positions(&log), (first..=EVENTS).collect::<Vec<_>>());
    }

    #[test]
    fn a_last_segment_that_was_cut_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        (1..=EVENTS).for_each(|number| append(&mut log, number));
        let last = log.reader().hold().files().unwrap().files.pop().unwrap();
        std::fs::OpenOptions::new().write(true).open(&last.path).unwrap().set_len(last.bytes - 8).unwrap();
        let refused = log.reader().hold().files().unwrap_err();
        assert!(matches!(refused, LogError::Damaged { .. }), "{refused}");
    }
}
