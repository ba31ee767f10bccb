//! The journal of an import: how far it came, so that it resumes exactly, even after `kill -9`.
//!
//! The directory `imports/` of the data directory has one file per import. Each line is a JSON object, and is synced before the
//! batch that it announces is recorded. A journal is found by the [`FileIdentity`] of the imported file, so an import of a file
//! that grew continues where the last one stopped.
//!
//! - An import into the data directory is the only one that records events. Every batch is announced with its number of events,
//!   and the log's position tells which of the announced batches it holds. This adds nothing to the events. A server that starts
//!   afterwards resolves this first, see [`note_unfinished`].
//! - A server also records the events of others. There every event has an `external_id`, made of its file and line if it has
//!   none, so batches without a response are sent again.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headcount_actors::Engine;
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, sync_dir, write_atomically};
use serde::{Deserialize, Serialize};

use super::lines::Place;
use super::source_file::{FileIdentity, SourceFile};
use crate::cli::runtime::since_epoch;

/// The directory of the journals in a data directory.
const DIRECTORY: &str = "imports";
/// The length limit of the first line, which holds a path.
const MAX_FIRST_LINE_BYTES: u64 = 64 << 10;
/// The length at which a journal is restarted.
const MAX_BYTES: u64 = 1 << 20;

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line: what is imported.
    Import {
        version: u32,
        file: PathBuf,
        /// Project, format and flags; empty in version 1.
        #[serde(default)]
        how: String,
        /// The imported file. Version 1 has none, and is not found any more.
        #[serde(default)]
        identity: Option<FileIdentity>,
        /// The prefix of the `external_id`s that this import assigns.
        prefix: String,
    },
    /// A run of the command begins. `position` is the last one of the log, if the run records into the data directory.
    Session { position: Option<u64> },
    /// A batch of so many events, up to `end`, is about to be recorded.
    Batch { events: u64, end: Place },
    /// Everything up to `at` is recorded.
    Done { at: Place },
    /// The end of the file was reached. The file may grow later.
    Finished,
}

/// Where an earlier import stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resume {
    /// The place up to which everything is recorded.
    pub(crate) from: Place,
    /// Events before this offset may have been sent to a server already.
    pub(crate) sent_until: u64,
    /// Whether that is the end of the file at the time.
    pub(crate) finished: bool,
}

/// Why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The operating system failed.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a journal.
    #[error("{} is damaged: it does not tell how far the import came", path.display())]
    Damaged { path: PathBuf },
    /// The log has events that the journal did not announce.
    #[error("{} does not match the event log: other events were recorded since", path.display())]
    Unsettled { path: PathBuf },
}

/// The journal of one import.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    import: Line,
    prefix: String,
    state: JournalState,
    /// A run that has announced nothing yet, with its position.
    session: Option<Option<u64>>,
}

/// What the lines of a journal add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct JournalState {
    done: Option<Place>,
    sent_until: u64,
    finished: bool,
    /// The last position of the log when the last run began, if that recorded into the data directory.
    position: Option<u64>,
    /// The batches that it announced since, in order.
    announced: Vec<(u64, Place)>,
}

impl JournalState {
    fn apply(&mut self, line: &Line) {
        match *line {
            Line::Import { .. } => {}
            Line::Session { position } => {
                self.position = position;
                self.finished = false;
                self.announced.clear();
            }
            Line::Batch { events, end } => {
                if self.position.is_none() {
                    self.sent_until = self.sent_until.max(end.offset);
                }
                self.announced.push((events, end));
            }
            Line::Done { at } => {
                self.done = Some(at);
                self.announced.clear();
            }
            Line::Finished => self.finished = true,
        }
    }

    /// Returns whether only the log can tell how far the import came.
    fn is_open(&self) -> bool {
        self.position.is_some() && !self.announced.is_empty() && !self.finished
    }

    /// Returns how far the import came, from the last position of the log, or `None` if the log has unannounced events.
    fn reached(&self, log_position: u64) -> Option<Place> {
        let mut missing = log_position.checked_sub(self.position?)?;
        let mut done = self.done.unwrap_or(Place::START);
        for (events, end) in &self.announced {
            let Some(rest) = missing.checked_sub(*events) else { break };
            (missing, done) = (rest, *end);
        }
        // The log has a whole batch or nothing of it.
        (missing == 0).then_some(done)
    }
}

impl Journal {
    /// Creates the journal of an import.
    pub(crate) fn create(data_dir: &Path, source: &SourceFile) -> Result<Self, JournalError> {
        let dir = data_dir.join(DIRECTORY);
        let since = since_epoch().as_nanos();
        // Names sort by time: the latest journal of a file counts.
        let path = dir.join(format!("{since:020}.ndjson"));
        let failed = |source| JournalError::Io { path: path.clone(), source };
        create_private_dir(&dir).map_err(failed)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(PRIVATE_FILE).open(&path).map_err(failed)?;
        // Another import of the same file must not reuse ids.
        let prefix = format!("import:{}:{since:x}", source.name().map_err(failed)?);
        let (file_name, how, identity) = (source.file.clone(), source.how.clone(), Some(source.identity.clone()));
        let import = Line::Import { version: 2, file: file_name, how, identity, prefix: prefix.clone() };
        let (state, session) = (JournalState::default(), None);
        let mut journal = Journal { path: path.clone(), file, bytes: 0, import: import.clone(), prefix, state, session };
        journal.write(&import)?;
        sync_dir(&dir).map_err(failed)?;
        Ok(journal)
    }

    /// Finds the latest journal of this import.
    pub(crate) fn find(data_dir: &Path, source: &SourceFile) -> Result<Option<Self>, JournalError> {
        let mut found = Self::paths(data_dir)?;
        found.sort();
        for path in found.into_iter().rev() {
            if Self::is_of(&path, source)? {
                return Self::load(path).map(Some);
            }
        }
        Ok(None)
    }

    /// Removes all journals of this import.
    pub(crate) fn forget(data_dir: &Path, source: &SourceFile) -> Result<(), JournalError> {
        for path in Self::paths(data_dir)? {
            // Ignore damaged journals: nothing is read from them.
            if Self::is_of(&path, source).unwrap_or(false) {
                std::fs::remove_file(&path).map_err(|source| JournalError::Io { path, source })?;
            }
        }
        Ok(())
    }

    fn paths(data_dir: &Path) -> Result<Vec<PathBuf>, JournalError> {
        let dir = data_dir.join(DIRECTORY);
        let failed = |source| JournalError::Io { path: dir.clone(), source };
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|it| it == "ndjson") {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// Returns whether the first line of a journal names this import.
    fn is_of(path: &Path, source: &SourceFile) -> Result<bool, JournalError> {
        match Self::first_line(path)? {
            Some(Line::Import { how, identity: Some(identity), .. }) => Ok(how == source.how && source.was(&identity)),
            Some(Line::Import { .. }) | None => Ok(false),
            Some(_) => Err(JournalError::Damaged { path: path.to_owned() }),
        }
    }

    /// Reads the first line. Returns `None` if it is incomplete: the run was killed before it recorded anything.
    fn first_line(path: &Path) -> Result<Option<Line>, JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        let mut first = Vec::new();
        let file = File::open(path).map_err(failed)?;
        BufReader::new(file).take(MAX_FIRST_LINE_BYTES).read_until(b'\n', &mut first).map_err(failed)?;
        if !first.ends_with(b"\n") {
            return Ok(None);
        }
        serde_json::from_slice(&first).map(Some).map_err(|_| JournalError::Damaged { path: path.to_owned() })
    }

    /// Finds a renamed file beside this one that was imported under this name, and has lines that were not imported.
    pub(crate) fn left_behind(data_dir: &Path, source: &SourceFile) -> Option<PathBuf> {
        let mut paths = Self::paths(data_dir).ok()?;
        paths.sort();
        let is_former = |path: &PathBuf| match Self::first_line(path) {
            Ok(Some(Line::Import { file, how, identity: Some(identity), .. })) => {
                (file == source.file && how == source.how).then_some(identity)
            }
            _ => None,
        };
        let (journal, identity) = paths.into_iter().rev().find_map(|path| Some((path.clone(), is_former(&path)?)))?;
        let done = Self::load(journal).ok()?.end().offset;
        source.beside(&identity, done)
    }

    fn load(path: PathBuf) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let text = std::fs::read(&path).map_err(failed)?;
        // Ignore a torn last line: what it announces was not begun.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Result<Vec<Line>, _> = lines.map(serde_json::from_slice).collect();
        let lines = lines.map_err(|_| JournalError::Damaged { path: path.clone() })?;
        let Some(import @ Line::Import { version: 1 | 2, prefix, .. }) = lines.first() else {
            return Err(JournalError::Damaged { path });
        };
        let mut state = JournalState::default();
        lines.iter().for_each(|line| state.apply(line));
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let bytes = u64::try_from(whole).unwrap_or(0);
        file.set_len(bytes).map_err(failed)?;
        let (import, prefix) = (import.clone(), prefix.clone());
        Ok(Journal { path: path.clone(), file, bytes, import, prefix, state, session: None })
    }

    /// The prefix of the `external_id`s that this import assigns.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns where to continue. `log_position` is the last position of the log, if nobody else has recorded events since.
    pub(crate) fn resume(&mut self, log_position: Option<u64>) -> Result<Resume, JournalError> {
        if self.state.is_open() {
            let at = log_position.and_then(|position| self.state.reached(position));
            let at = at.ok_or_else(|| JournalError::Unsettled { path: self.path.clone() })?;
            self.write(&Line::Done { at })?;
        }
        let JournalState { done, sent_until, finished, .. } = &self.state;
        Ok(Resume { from: done.unwrap_or(Place::START), sent_until: *sent_until, finished: *finished })
    }

    /// Begins a run, with the position of [`Line::Session`]. The line is written with the first batch.
    pub(crate) fn begin(&mut self, position: Option<u64>) {
        self.session = Some(position);
    }

    /// Writes that a batch is about to be recorded.
    pub(crate) fn announce(&mut self, events: u64, end: Place) -> Result<(), JournalError> {
        if let Some(position) = self.session.take() {
            self.write(&Line::Session { position })?;
        }
        self.write(&Line::Batch { events, end })
    }

    /// Writes that everything up to `at` is recorded.
    pub(crate) fn done(&mut self, at: Place) -> Result<(), JournalError> {
        self.write(&Line::Done { at })
    }

    /// Writes that all announced batches are recorded, and whether the end of the file was reached.
    pub(crate) fn finish(&mut self, is_end: bool) -> Result<(), JournalError> {
        if let Some((_, at)) = self.state.announced.last().copied() {
            self.write(&Line::Done { at })?;
        }
        if is_end && !self.state.finished { self.write(&Line::Finished) } else { Ok(()) }
    }

    /// Returns whether the journal is long enough to be restarted.
    pub(crate) fn is_long(&self) -> bool {
        // A restart must not forget what may have been sent already.
        let is_beyond = self.end().offset >= self.state.sent_until;
        self.bytes > MAX_BYTES && is_beyond
    }

    /// The end of everything that is recorded or announced.
    fn end(&self) -> Place {
        self.state.announced.last().map(|(_, end)| *end).or(self.state.done).unwrap_or(Place::START)
    }

    /// Replaces the journal with a short one and begins a new run. All announced batches must be recorded.
    pub(crate) fn restart(&mut self, position: Option<u64>) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let at = self.end();
        let mut text = Vec::new();
        for line in [&self.import, &Line::Done { at }] {
            serde_json::to_writer(&mut text, line).map_err(|error| failed(error.into()))?;
            text.push(b'\n');
        }
        write_atomically(&self.path, &text, PRIVATE_FILE).map_err(failed)?;
        self.file = OpenOptions::new().append(true).open(&self.path).map_err(failed)?;
        self.bytes = u64::try_from(text.len()).unwrap_or(0);
        self.state = JournalState { done: Some(at), ..JournalState::default() };
        self.begin(position);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.bytes += u64::try_from(text.len()).unwrap_or(0);
        self.state.apply(line);
        Ok(())
    }
}

/// Determines how far interrupted imports came, while no other events are recorded.
///
/// # Errors
/// The journals can't be listed.
pub(crate) fn note_unfinished(engine: &Engine) -> Result<(), JournalError> {
    // A journal without a first line recorded nothing.
    let begun = |path: &PathBuf| !matches!(Journal::first_line(path), Ok(None));
    for path in Journal::paths(engine.data_dir())?.into_iter().filter(begun) {
        let resumed = Journal::load(path).and_then(|mut journal| journal.resume(Some(engine.vitals().log_position)));
        match resumed {
            Ok(Resume { finished: true, .. }) => {}
            Ok(Resume { from, .. }) => {
                tracing::info!(lines = from.lines, "an import is unfinished; the same command continues it")
            }
            Err(error) => tracing::warn!(%error, "an import can't be resumed"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tables::Tables;
    use super::*;

    fn place(offset: u64) -> Place {
        Place { offset, lines: offset / 10 }
    }

    fn source(dir: &Path) -> SourceFile {
        let file = dir.join("file");
        std::fs::write(&file, "the content").unwrap();
        SourceFile::of(&file, "how".into(), Tables::Exports).unwrap()
    }

    fn journal(dir: &Path) -> Journal {
        let source = source(dir);
        Journal::find(dir, &source).unwrap().unwrap_or_else(|| Journal::create(dir, &source).unwrap())
    }

    #[test]
    fn a_directory_that_can_not_be_listed_is_not_taken_for_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let source = source(dir.path());
        assert!(Journal::find(dir.path(), &source).unwrap().is_none(), "nothing was imported");
        // A file in its place is an error for everybody; permissions are none for root.
        std::fs::write(dir.path().join(DIRECTORY), "").unwrap();
        assert!(matches!(Journal::find(dir.path(), &source), Err(JournalError::Io { .. })));
        assert!(matches!(Journal::forget(dir.path(), &source), Err(JournalError::Io { .. })));
    }

    #[test]
    fn the_log_says_how_far_it_came() {
        for (log_position, expected) in
            [(100, Some(0)), (105, Some(50)), (108, Some(90)), (115, Some(120)), (107, None), (99, None), (116, None)]
        {
            let dir = tempfile::tempdir().unwrap();
            let mut first = journal(dir.path());
            first.begin(Some(100));
            for (events, end) in [(5, 50), (3, 80), (0, 90), (7, 120)] {
                first.announce(events, place(end)).unwrap();
            }
            drop(first);
            let resumed = journal(dir.path()).resume(Some(log_position)).ok();
            assert_eq!(resumed.map(|resume| resume.from.offset), expected, "{log_position}");
            if expected.is_some() {
                // ClampedTime for good: later events don't count.
                let later = journal(dir.path()).resume(Some(log_position + 1000)).unwrap();
                assert_eq!(Some(later.from.offset), expected);
                assert_eq!(later.sent_until, 0);
            }
        }
    }

    #[test]
    fn through_a_server_the_last_answer_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = journal(dir.path());
        first.begin(None);
        first.announce(5, place(50)).unwrap();
        first.done(place(50)).unwrap();
        first.announce(5, place(100)).unwrap();
        drop(first);
        let resume = journal(dir.path()).resume(None).unwrap();
        assert_eq!(resume, Resume { from: place(50), sent_until: 100, finished: false });
    }

    #[test]
    fn a_torn_line_is_as_if_it_were_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = journal(dir.path());
        first.begin(None);
        first.done(place(50)).unwrap();
        let (path, prefix) = (first.path.clone(), first.prefix().to_owned());
        drop(first);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"batch\":{\"ev");
        std::fs::write(&path, text).unwrap();
        let mut again = journal(dir.path());
        assert_eq!(again.prefix(), prefix);
        assert_eq!(again.resume(None).unwrap().from, place(50));
        again.finish(true).unwrap();
        let finished = journal(dir.path()).resume(None).unwrap();
        assert_eq!((finished.from, finished.finished), (place(50), true));
        Journal::forget(dir.path(), &source(dir.path())).unwrap();
        let afresh = journal(dir.path()).resume(None).unwrap();
        assert_eq!(afresh, Resume { from: Place::START, sent_until: 0, finished: false });
    }

    #[test]
    fn what_is_no_journal_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = journal(dir.path()).path;
        for text in ["{}\n", "\"finished\"\n", "nonsense\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::find(dir.path(), &source(dir.path())).is_err(), "{text:?}");
        }
        // The process was killed while it created the journal.
        std::fs::write(&path, "{\"import\":{\"ver").unwrap();
        assert!(Journal::find(dir.path(), &source(dir.path())).unwrap().is_none());
    }

    #[test]
    fn a_long_journal_begins_anew_and_says_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut long = journal(dir.path());
        long.begin(Some(100));
        for batch in 1..=30 {
            long.announce(1, place(batch * 10)).unwrap();
        }
        let before = std::fs::metadata(&long.path).unwrap().len();
        assert_eq!(before, long.bytes);
        long.restart(Some(130)).unwrap();
        long.announce(5, place(400)).unwrap();
        let after = std::fs::metadata(&long.path).unwrap().len();
        assert!(after < before && after == long.bytes, "{before} {after}");
        let prefix = long.prefix().to_owned();
        drop(long);
        for (log_position, expected) in [(130, 300), (135, 400)] {
            let copy = tempfile::tempdir().unwrap();
            std::fs::create_dir(copy.path().join(DIRECTORY)).unwrap();
            let path = Journal::paths(dir.path()).unwrap().remove(0);
            let copied = copy.path().join(DIRECTORY).join(path.file_name().unwrap());
            std::fs::copy(&path, &copied).unwrap();
            let mut resumed = Journal::load(copied).unwrap();
            assert_eq!(resumed.prefix(), prefix);
            assert_eq!(resumed.resume(Some(log_position)).unwrap().from, place(expected), "{log_position}");
        }
    }
}
