//! The journal of an import. It records the progress, so that an import resumes exactly, even after
//! `kill -9`.
//!
//! The directory `imports/` of the data directory has one file per import, which is replaced as a
//! whole. Its first line names the import, the second line has its progress. The [`FileIdentity`]
//! of the imported file finds the journal, so an import of a file that grew continues where the
//! last one stopped.
//!
//! - An import into the data directory records each part of the file with an [`ImportMark`]: the
//!   log has both or neither. The journal is written less often, and the log keeps the marks that
//!   the journal lacks. The next process that opens the directory to record events reads them
//!   first, see [`recover_progress`].
//! - Through a server, every event has an `external_id`, if necessary made of file and line. So a
//!   batch without a response can be sent again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use headcount_actors::{Engine, ImportMark};
use headcount_api::command::{Failure, since_epoch};
use headcount_domain::Fault;
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, write_atomically};
use serde::{Deserialize, Serialize};

use super::lines::Place;
use super::read_lines::{ImportedPart, ReadLines};
use super::source_file::{FileIdentity, SourceFile};

/// The directory of the journals in a data directory.
const DIRECTORY: &str = "imports";
/// The length limit of the first line, which contains a path.
const MAX_FIRST_LINE_BYTES: u64 = 64 << 10;
const VERSION: u32 = 1;
/// The number of parts after which the journal is written.
const PARTS: usize = 64;

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The import.
    Import {
        version: u32,
        file: PathBuf,
        /// Project, format and flags.
        how: String,
        /// The imported file.
        identity: FileIdentity,
        /// The prefix of the `external_id`s that this import assigns.
        prefix: String,
        /// The number of the import in marks.
        number: u64,
    },
    /// The progress.
    Reached(Reached),
}

/// The progress of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reached {
    /// Everything before this place was read.
    done: Place,
    /// Whether this place was the end of the file.
    finished: bool,
    /// Events before this offset may have been sent to a server.
    sent_until: u64,
    /// The position after which the log may have marks that the journal lacks, since an import into
    /// the data directory runs or was killed.
    log_after: Option<u64>,
    /// The lines that were recorded into the data directory.
    seen: ReadLines,
}

/// The reason why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The operating system failed.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a journal.
    #[error("{} is damaged, so the progress of the import is unknown; if you delete it, the import begins at the first line", path.display())]
    Damaged { path: PathBuf },
    /// The log could not be read when the data directory was opened.
    #[error("{} has no complete progress, and the event log could not be read; run the command again", path.display())]
    ProgressUnknown { path: PathBuf },
    /// The log can't be read.
    #[error("the progress of imports can't be read from the event log: {0}")]
    Log(Fault),
}

/// The journal of one import.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    import: Line,
    /// The prefix of the `external_id`s that this import assigns.
    pub(crate) prefix: String,
    number: u64,
    reached: Reached,
    /// The parts that the file lacks.
    unsaved: usize,
}

impl Journal {
    /// Creates the journal of an import.
    pub(crate) fn create(data_dir: &Path, source: &SourceFile) -> Result<Self, JournalError> {
        let dir = data_dir.join(DIRECTORY);
        let since = since_epoch().as_nanos();
        // Names sort by time, so the latest journal of a file wins.
        let path = dir.join(format!("{since:020}.ndjson"));
        let failed = |source| JournalError::Io { path: path.clone(), source };
        create_private_dir(&dir).map_err(failed)?;
        // A later import of the same file after a rewrite must not reuse ids.
        let prefix = format!("import:{}:{since:x}", source.name().map_err(failed)?);
        let number = u64::try_from(since).unwrap_or(u64::MAX);
        let (file, how, identity) = (source.file.clone(), source.how.clone(), source.identity.clone());
        let import = Line::Import { version: VERSION, file, how, identity, prefix: prefix.clone(), number };
        let reached = Reached { done: Place::START, finished: false, sent_until: 0, log_after: None, seen: ReadLines::default() };
        let mut journal = Journal { path, import, prefix, number, reached, unsaved: 0 };
        journal.save()?;
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
            Some(Line::Import { how, identity, .. }) => Ok(how == source.how && source.is_same_as(&identity)),
            None => Ok(false),
            Some(Line::Reached(_)) => Err(JournalError::Damaged { path: path.to_owned() }),
        }
    }

    /// Reads the first line. Returns `None` if it is incomplete: then nothing is known about the
    /// file.
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

    /// Finds a renamed file in the same directory that was imported under this name and has more
    /// lines.
    pub(crate) fn left_behind(data_dir: &Path, source: &SourceFile) -> Option<PathBuf> {
        let mut paths = Self::paths(data_dir).ok()?;
        paths.sort();
        let is_former = |path: &PathBuf| match Self::first_line(path) {
            Ok(Some(Line::Import { file, how, identity, .. })) => (file == source.file && how == source.how).then_some(identity),
            _ => None,
        };
        let (journal, identity) = paths.into_iter().rev().find_map(|path| Some((path.clone(), is_former(&path)?)))?;
        let done = Self::load(journal).ok()?.reached.done.offset;
        source.beside(&identity, done)
    }

    fn load(path: PathBuf) -> Result<Self, JournalError> {
        let text = std::fs::read(&path).map_err(|source| JournalError::Io { path: path.clone(), source })?;
        let lines: Result<Vec<Line>, _> =
            text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice).collect();
        match lines.as_deref() {
            Ok([import @ Line::Import { version: VERSION, prefix, number, .. }, Line::Reached(reached)]) => {
                let (prefix, number, import, reached) = (prefix.clone(), *number, import.clone(), reached.clone());
                Ok(Journal { path, import, prefix, number, reached, unsaved: 0 })
            }
            _ => Err(JournalError::Damaged { path }),
        }
    }

    /// Returns the place up to which everything was read.
    ///
    /// # Errors
    /// [`JournalError::ProgressUnknown`].
    pub(crate) fn progress(&self) -> Result<Place, JournalError> {
        match self.reached.log_after {
            None => Ok(self.reached.done),
            Some(_) => Err(JournalError::ProgressUnknown { path: self.path.clone() }),
        }
    }

    /// The offset before which events may have been sent to a server.
    pub(crate) fn sent_until(&self) -> u64 {
        self.reached.sent_until
    }

    /// The lines that were recorded into the data directory.
    pub(crate) fn seen(&self) -> &ReadLines {
        &self.reached.seen
    }

    /// Records that a batch up to `until` is about to be sent to a server.
    pub(crate) fn sending(&mut self, until: Place) -> Result<(), JournalError> {
        self.reached.sent_until = self.reached.sent_until.max(until.offset);
        self.reached.finished = false;
        self.save()
    }

    /// Notes that everything from the first place to the second one was read.
    pub(crate) fn read(&mut self, from: Place, until: Place) {
        // Offsets may differ: the end of a line may have been written after the line was read.
        if from.lines <= self.reached.done.lines && until.offset > self.reached.done.offset {
            self.reached.done = until;
        }
        self.unsaved += 1;
    }

    /// Records that parts are about to be recorded into the data directory, after this position of
    /// its log. Returns whether that is new.
    pub(crate) fn recording(&mut self, position: u64) -> Result<bool, JournalError> {
        let is_new = self.reached.log_after.is_none();
        if is_new {
            self.reached.log_after = Some(position);
            self.reached.finished = false;
            self.save()?;
        }
        Ok(is_new)
    }

    /// The mark of a part in the data directory.
    pub(crate) fn mark(&self, ImportedPart { from, until, refused }: &ImportedPart) -> ImportMark {
        let (from, until) = ((from.offset, from.lines), (until.offset, until.lines));
        ImportMark { import: self.number, from, until, refused: refused.clone() }
    }

    /// Notes a recorded part. The log has no later part up to `position`, unless the position is
    /// unknown.
    pub(crate) fn recorded(&mut self, part: &ImportedPart, position: Option<u64>) {
        self.reached.seen.add(part);
        self.read(part.from, part.until);
        if position.is_some() {
            self.reached.log_after = position;
        }
    }

    /// Whether it is time to write the notes.
    pub(crate) fn is_due(&self) -> bool {
        self.unsaved >= PARTS
    }

    /// Whether there are unwritten notes.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved > 0
    }

    /// The position after which the log must keep its marks.
    pub(crate) fn log_after(&self) -> Option<u64> {
        self.reached.log_after
    }

    /// Notes that the journal has all marks of the log.
    pub(crate) fn has_all_marks(&mut self) {
        self.unsaved += usize::from(self.reached.log_after.take().is_some());
    }

    /// Writes all notes, and whether the end of the file was reached.
    pub(crate) fn finish(&mut self, is_end: bool) -> Result<(), JournalError> {
        let is_known = self.reached.finished == is_end && self.unsaved == 0;
        self.reached.finished = is_end;
        if is_known { Ok(()) } else { self.save() }
    }

    /// Deletes the journal of an import without recorded or dropped events, so that the next import
    /// tries its lines again.
    pub(crate) fn forget(self) -> Result<(), JournalError> {
        std::fs::remove_file(&self.path).map_err(|source| JournalError::Io { path: self.path, source })
    }

    /// Writes all notes.
    pub(crate) fn save(&mut self) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = Vec::new();
        for line in [&self.import, &Line::Reached(self.reached.clone())] {
            serde_json::to_writer(&mut text, line).map_err(|error| failed(error.into()))?;
            text.push(b'\n');
        }
        write_atomically(&self.path, &text, PRIVATE_FILE).map_err(failed)?;
        self.unsaved = 0;
        Ok(())
    }

    /// Adds the log's marks of a killed import.
    fn add_marks(&mut self, engine: &Engine) -> Result<(), JournalError> {
        let Some(after) = self.reached.log_after else { return Ok(()) };
        for mark in engine.ingest.import_marks(self.number, after).map_err(JournalError::Log)? {
            let place = |(offset, lines)| Place { offset, lines };
            self.recorded(&ImportedPart { from: place(mark.from), until: place(mark.until), refused: mark.refused }, None);
        }
        self.has_all_marks();
        self.save()
    }
}

/// Determines the progress of killed imports from their marks in the log. The log keeps the marks
/// until then.
///
/// # Errors
/// The journals can't be listed.
pub fn recover_progress(engine: &Engine) -> Result<(), Failure> {
    let begun = |path: &PathBuf| !matches!(Journal::first_line(path), Ok(None));
    let mut all_known = true;
    for path in Journal::paths(engine.data_dir())?.into_iter().filter(begun) {
        let known = Journal::load(path).and_then(|mut journal| journal.add_marks(engine).map(|()| journal.reached));
        match known {
            Ok(Reached { finished: true, .. }) => {}
            Ok(Reached { done, .. }) => {
                tracing::info!(lines = done.lines, "an import is unfinished; repeat the command to continue");
            }
            Err(error) => {
                all_known &= matches!(error, JournalError::Damaged { .. });
                tracing::warn!(%error, "an import can't be resumed");
            }
        }
    }
    if all_known {
        engine.ingest.keep_for_imports(None);
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
    }

    #[test]
    fn it_goes_on_after_what_was_read_without_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = journal(dir.path());
        assert!(first.recording(100).unwrap() && !first.recording(105).unwrap());
        let part = |from, until| ImportedPart { from: place(from), until: place(until), refused: Vec::new() };
        first.recorded(&part(0, 50), Some(105));
        first.recorded(&part(80, 120), None);
        assert_eq!((first.log_after(), first.is_unsaved()), (Some(105), true));
        first.save().unwrap();
        let mut later = journal(dir.path());
        assert!(matches!(later.progress(), Err(JournalError::ProgressUnknown { .. })), "nobody read the log");
        later.has_all_marks();
        assert_eq!(later.progress().unwrap(), place(50));
        assert!(later.seen().has(49, 5) && !later.seen().has(50, 6) && later.seen().has(80, 9));
        later.recorded(&part(50, 130), None);
        later.finish(true).unwrap();
        let finished = journal(dir.path());
        assert_eq!((finished.progress().unwrap(), finished.reached.finished), (place(130), true));
    }

    #[test]
    fn through_a_server_the_last_answer_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = journal(dir.path());
        first.sending(place(50)).unwrap();
        first.read(Place::START, place(50));
        first.sending(place(100)).unwrap();
        let prefix = first.prefix.to_owned();
        drop(first);
        let later = journal(dir.path());
        assert_eq!((later.progress().unwrap(), later.sent_until(), &*later.prefix), (place(50), 100, &*prefix));
        assert!(!later.seen().reaches_beyond(0));
    }

    #[test]
    fn what_is_no_journal_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = journal(dir.path()).path;
        for text in ["{}\n", "\"finished\"\n", "nonsense\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::find(dir.path(), &source(dir.path())).is_err(), "{text:?}");
        }
        std::fs::write(&path, "{\"import\":{\"ver").unwrap();
        assert!(Journal::find(dir.path(), &source(dir.path())).unwrap().is_none());
    }
}
