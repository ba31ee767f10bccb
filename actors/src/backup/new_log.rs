//! The log of a backup whose events come from elsewhere. The events get positions in one order, and
//! segments go to the backup as soon as they are full.

use std::io::Read as _;
use std::path::Path;

use headcount_domain::Position;
use headcount_storage::backup::{BackupError, BackupTarget, BackupWriter};
use headcount_storage::files::File;
use headcount_storage::log::{AppendEntry, Log, LogError, LogFile, LogOptions};

use super::error::BackupFailure;

const LOG_DIR: &str = "log";
const FLOOR: &str = "log/floor";
/// The approximate number of bytes of events appended with one sync.
const TOGETHER_BYTES: usize = 1 << 20;

/// Events of one project, or a floor, that wait to be appended.
struct WaitingRecord {
    partition: u16,
    count: u32,
    payload: Vec<u8>,
}

/// The log of a backup.
pub(crate) struct NewLog {
    log: Log,
    waiting: Vec<WaitingRecord>,
    bytes: usize,
    next: Position,
}

impl NewLog {
    /// Creates the log in a directory that has none. Its events get positions from `first` on. Its
    /// first file goes to `writer` at once.
    ///
    /// # Errors
    /// Returns [`BackupFailure::Log`], and errors of writing.
    pub(crate) fn create<T: BackupTarget>(
        dir: &Path,
        first: Position,
        writer: &mut BackupWriter<'_, T>,
    ) -> Result<Self, BackupFailure> {
        let log = Log::create_at(dir.join(LOG_DIR), first, LogOptions { prepare_ahead: false, ..LogOptions::default() })?;
        // Written before anything is removed, since the backup has everything.
        let floor = dir.join(FLOOR);
        let bytes = File::open(&floor).and_then(|file| file.len()).map_err(BackupFailure::io("inspect", &floor))?;
        add(writer, &LogFile { path: floor, bytes })?;
        Ok(Self { next: log.last_position() + 1, log, waiting: Vec::new(), bytes: 0 })
    }

    /// Adds events of one project, or a floor. Returns the position of the first one.
    ///
    /// # Errors
    /// Returns a [`LogError`].
    pub(crate) fn add(&mut self, partition: u16, count: u32, payload: Vec<u8>) -> Result<Position, LogError> {
        let first = self.next;
        self.next += u64::from(count);
        self.bytes += payload.len();
        self.waiting.push(WaitingRecord { partition, count, payload });
        if self.bytes >= TOGETHER_BYTES {
            self.append()?;
        }
        Ok(first)
    }

    fn append(&mut self) -> Result<(), LogError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        let entries = waiting.iter().map(|WaitingRecord { partition, count, payload }| AppendEntry {
            partition: *partition,
            count: *count,
            payload,
        });
        self.log.append(&entries.collect::<Vec<_>>())?;
        Ok(())
    }

    /// Writes full segments to the backup, and removes them.
    ///
    /// # Errors
    /// Returns [`BackupFailure::Log`], and errors of writing.
    pub(crate) fn pass_on<T: BackupTarget>(&mut self, writer: &mut BackupWriter<'_, T>) -> Result<(), BackupFailure> {
        let ended = self.log.ended_segments()?;
        if ended.is_empty() {
            return Ok(());
        }
        ended.iter().try_for_each(|file| add(writer, file))?;
        self.log.remove_ended()?;
        Ok(())
    }

    /// Writes the rest to the backup. Returns the last position, or the one before the first if
    /// there are no events.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::pass_on`].
    pub(crate) fn finish<T: BackupTarget>(mut self, writer: &mut BackupWriter<'_, T>) -> Result<Position, BackupFailure> {
        self.append()?;
        self.pass_on(writer)?;
        let files = self.log.reader().hold().files()?;
        let is_segment = |file: &&LogFile| file.path.extension().is_some_and(|extension| extension == "seg");
        files.files.iter().filter(is_segment).try_for_each(|file| add(writer, file))?;
        Ok(files.last_position)
    }
}

fn add<T: BackupTarget>(writer: &mut BackupWriter<'_, T>, LogFile { path, bytes }: &LogFile) -> Result<(), BackupFailure> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let file = File::open(path).map_err(|source| BackupError::Io { doing: "open", path: path.clone(), source })?;
    writer.add(&format!("{LOG_DIR}/{name}"), *bytes, (&file).take(*bytes))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use headcount_storage::backup::{BackupFolder, BackupManifest};

    use super::*;

    const FIRST: Position = 5_000_000_001;

    /// A backup has many segments of events, while the directory has at most two.
    #[test]
    fn a_log_of_many_segments_takes_little_room() {
        let (staging, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut folder = BackupFolder::create(&place.path().join("backup"), None).unwrap();
        let mut writer = BackupWriter::new(&mut folder, BackupManifest::new("1", String::new(), Vec::new()));
        let mut log = NewLog::create(staging.path(), FIRST, &mut writer).unwrap();
        // Incompressible bytes.
        let payload = |number: u64| -> Vec<u8> {
            let word = |at: u64| {
                (at + 40_000 * number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            };
            (0..40_000).flat_map(|at| word(at).to_le_bytes()).collect()
        };
        let (mut next, mut most) = (FIRST, 0);
        for number in 0..200 {
            assert_eq!(log.add(3, 2, payload(number)).unwrap(), next);
            next += 2;
            most = most.max(log.log.ended_segments().unwrap().len());
            log.pass_on(&mut writer).unwrap();
        }
        assert_eq!((log.finish(&mut writer).unwrap(), most), (FIRST + 399, 1));
        let dir = place.path().join("backup/log");
        assert!(std::fs::read_dir(&dir).unwrap().count() > 4, "several segments");
        let (log, recovery) = Log::open(&dir, LogOptions { prepare_ahead: false, ..LogOptions::default() }).unwrap();
        assert_eq!((recovery.first_position, recovery.last_position), (FIRST, FIRST + 399));
        let mut found = Vec::new();
        let visit = |record: headcount_storage::log::Record<'_>| {
            assert_eq!(record.payload, payload(found.len() as u64));
            found.push(record.first);
            ControlFlow::Continue(())
        };
        log.reader().read(|_| Some(0), visit).unwrap();
        assert_eq!(found, (0..200).map(|number| FIRST + 2 * number).collect::<Vec<_>>());
    }
}
