//! How far an import came: what makes it resume exactly, also after kill -9.
//!
//! One file per import in `imports/` of the data directory, a JSON object a line, each synced before what it announces is done.
//! It is found by the [`Identity`] of the imported file, so that a file that grew goes on where it was left.
//!
//! - Into the engine itself nobody else records events meanwhile, so the log tells how many of ours are in it: every batch is
//!   announced with its number of events, and the announced batches that the log has since the session's first position
//!   are those that are done. It costs the events nothing. A server that starts afterwards settles this first ([`settle`]).
//! - Through a server others record too. There every event has an `external_id` (of its file and line if it has none), so
//!   that batches whose answer nobody saw are simply sent again.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headcount_actors::Engine;
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, sync_dir, write_atomically};
use serde::{Deserialize, Serialize};

use super::lines::Place;
use super::subject::{Identity, Subject};
use crate::cli::runtime::since_epoch;

/// The directory of journals in a data directory.
const DIRECTORY: &str = "imports";
/// How long a first line may be: it holds a path.
const MAX_FIRST_LINE_BYTES: u64 = 64 << 10;
/// From which length on a journal begins anew.
const MAX_BYTES: u64 = 1 << 20;

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first: what is imported.
    Import {
        version: u32,
        file: PathBuf,
        /// How it is read; empty in version 1.
        #[serde(default)]
        how: String,
        /// Which file it is. Version 1 has none, and is found no more.
        #[serde(default)]
        identity: Option<Identity>,
        /// Begins the `external_id`s that this import gives.
        prefix: String,
    },
    /// A run of the command begins. `position`: of the log's last event, if it records into the engine itself.
    Session { position: Option<u64> },
    /// A batch is about to be recorded: so many events, up to this place.
    Batch { events: u64, end: Place },
    /// Everything up to here is done.
    Done { at: Place },
    /// The end of the file was reached. More may come later.
    Finished,
}

/// Where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resume {
    /// From here.
    pub(crate) from: Place,
    /// Events before this offset may have been sent to a server already.
    pub(crate) sent_until: u64,
    /// The end was reached then.
    pub(crate) finished: bool,
}

/// Why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The operating system.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It holds something else.
    #[error("{} is damaged: it does not say how far the import came", path.display())]
    Damaged { path: PathBuf },
    /// The log has other events than those announced.
    #[error("{} does not fit the event log: other events were recorded since", path.display())]
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
    /// A run that has not announced anything yet.
    session: Option<Option<u64>>,
}

/// What the lines of a journal lead to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct JournalState {
    done: Option<Place>,
    sent_until: u64,
    finished: bool,
    /// The log's position when the last session began, if it went into the engine itself.
    position: Option<u64>,
    /// What it announced since, in order.
    announced: Vec<(u64, Place)>,
}

impl JournalState {
    fn follow(&mut self, line: &Line) {
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

    /// Whether only the log can tell how far it came.
    fn is_open(&self) -> bool {
        self.position.is_some() && !self.announced.is_empty() && !self.finished
    }

    /// How far it came, by the log's last position. `None`: the log holds what was not announced.
    fn settled(&self, log_position: u64) -> Option<Place> {
        let mut missing = log_position.checked_sub(self.position?)?;
        let mut done = self.done.unwrap_or(Place::START);
        for (events, end) in &self.announced {
            let Some(rest) = missing.checked_sub(*events) else { break };
            (missing, done) = (rest, *end);
        }
        // A batch is in the log as a whole or not at all.
        (missing == 0).then_some(done)
    }
}

impl Journal {
    /// Begins the journal of an import.
    pub(crate) fn create(data_dir: &Path, subject: &Subject) -> Result<Self, JournalError> {
        let dir = data_dir.join(DIRECTORY);
        let since = since_epoch().as_nanos();
        // In the order in which they began: of two of the same file the later one counts.
        let path = dir.join(format!("{since:020}.ndjson"));
        let failed = |source| JournalError::Io { path: path.clone(), source };
        create_private_dir(&dir).map_err(failed)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(PRIVATE_FILE).open(&path).map_err(failed)?;
        // Another import of the same file must not repeat the ids of the one before.
        let prefix = format!("import:{}:{since:x}", subject.name().map_err(failed)?);
        let (file_name, how, identity) = (subject.file.clone(), subject.how.clone(), Some(subject.identity.clone()));
        let import = Line::Import { version: 2, file: file_name, how, identity, prefix: prefix.clone() };
        let (state, session) = (JournalState::default(), None);
        let mut journal = Journal { path: path.clone(), file, bytes: 0, import: import.clone(), prefix, state, session };
        journal.write(&import)?;
        sync_dir(&dir).map_err(failed)?;
        Ok(journal)
    }

    /// The latest journal of this import, if there is one.
    pub(crate) fn find(data_dir: &Path, subject: &Subject) -> Result<Option<Self>, JournalError> {
        let mut found = Self::paths(data_dir);
        found.sort();
        for path in found.into_iter().rev() {
            if Self::is_of(&path, subject)? {
                return Self::load(path).map(Some);
            }
        }
        Ok(None)
    }

    /// Removes all journals of this import.
    pub(crate) fn forget(data_dir: &Path, subject: &Subject) -> Result<(), JournalError> {
        for path in Self::paths(data_dir) {
            // What is damaged is no obstacle here: nothing is to be read from it.
            if Self::is_of(&path, subject).unwrap_or(false) {
                std::fs::remove_file(&path).map_err(|source| JournalError::Io { path, source })?;
            }
        }
        Ok(())
    }

    fn paths(data_dir: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(data_dir.join(DIRECTORY)) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|it| it == "ndjson")).collect()
    }

    /// Whether a journal is of this import, by its first line.
    fn is_of(path: &Path, subject: &Subject) -> Result<bool, JournalError> {
        match Self::first_line(path)? {
            Some(Line::Import { how, identity: Some(identity), .. }) => Ok(how == subject.how && subject.was(&identity)),
            Some(Line::Import { .. }) | None => Ok(false),
            Some(_) => Err(JournalError::Damaged { path: path.to_owned() }),
        }
    }

    /// `None`: it was cut short while it was made, and nothing was recorded by it.
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

    /// A file beside this one that had its name when it was imported last, and has lines that were not imported.
    pub(crate) fn left_behind(data_dir: &Path, subject: &Subject) -> Option<PathBuf> {
        let mut paths = Self::paths(data_dir);
        paths.sort();
        let is_former = |path: &PathBuf| match Self::first_line(path) {
            Ok(Some(Line::Import { file, how, identity: Some(identity), .. })) => {
                (file == subject.file && how == subject.how).then_some(identity)
            }
            _ => None,
        };
        let (journal, identity) = paths.into_iter().rev().find_map(|path| Some((path.clone(), is_former(&path)?)))?;
        let done = Self::load(journal).ok()?.end().offset;
        subject.beside(&identity, done)
    }

    fn load(path: PathBuf) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let text = std::fs::read(&path).map_err(failed)?;
        // A torn last line announced something that was not begun.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Result<Vec<Line>, _> = lines.map(serde_json::from_slice).collect();
        let lines = lines.map_err(|_| JournalError::Damaged { path: path.clone() })?;
        let Some(import @ Line::Import { version: 1 | 2, prefix, .. }) = lines.first() else {
            return Err(JournalError::Damaged { path });
        };
        let mut state = JournalState::default();
        lines.iter().for_each(|line| state.follow(line));
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let bytes = u64::try_from(whole).unwrap_or(0);
        file.set_len(bytes).map_err(failed)?;
        let (import, prefix) = (import.clone(), prefix.clone());
        Ok(Journal { path: path.clone(), file, bytes, import, prefix, state, session: None })
    }

    /// What the `external_id`s that this import gives begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where to go on. `log_position`: the log's last, when nobody else has recorded events since the last session.
    pub(crate) fn resume(&mut self, log_position: Option<u64>) -> Result<Resume, JournalError> {
        if self.state.is_open() {
            let at = log_position.and_then(|position| self.state.settled(position));
            let at = at.ok_or_else(|| JournalError::Unsettled { path: self.path.clone() })?;
            self.write(&Line::Done { at })?;
        }
        let JournalState { done, sent_until, finished, .. } = &self.state;
        Ok(Resume { from: done.unwrap_or(Place::START), sent_until: *sent_until, finished: *finished })
    }

    /// A run begins; `position` as in [`Line::Session`]. It is written down with its first batch.
    pub(crate) fn begin(&mut self, position: Option<u64>) -> Result<(), JournalError> {
        self.session = Some(position);
        Ok(())
    }

    /// A batch is about to be recorded.
    pub(crate) fn announce(&mut self, events: u64, end: Place) -> Result<(), JournalError> {
        if let Some(position) = self.session.take() {
            self.write(&Line::Session { position })?;
        }
        self.write(&Line::Batch { events, end })
    }

    /// Everything up to `at` is done.
    pub(crate) fn done(&mut self, at: Place) -> Result<(), JournalError> {
        self.write(&Line::Done { at })
    }

    /// All that was announced is done, up to the end of the file if `is_end`.
    pub(crate) fn finish(&mut self, is_end: bool) -> Result<(), JournalError> {
        if let Some((_, at)) = self.state.announced.last().copied() {
            self.write(&Line::Done { at })?;
        }
        if is_end && !self.state.finished { self.write(&Line::Finished) } else { Ok(()) }
    }

    /// Whether it has become so long that it should begin anew.
    pub(crate) fn is_long(&self) -> bool {
        // It must not forget what may have been sent already.
        let is_beyond = self.end().offset >= self.state.sent_until;
        self.bytes > MAX_BYTES && is_beyond
    }

    /// The end of all that is done or announced.
    fn end(&self) -> Place {
        self.state.announced.last().map(|(_, end)| *end).or(self.state.done).unwrap_or(Place::START)
    }

    /// Begins anew, with nothing but how far it came. All that was announced must be done; a new session must begin.
    pub(crate) fn shorten(&mut self) -> Result<(), JournalError> {
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
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.bytes += u64::try_from(text.len()).unwrap_or(0);
        self.state.follow(line);
        Ok(())
    }
}

/// Settles how far interrupted imports came, before anybody else records events.
pub(crate) fn settle(engine: &Engine) {
    // Those that were cut short while they were made have nothing to settle.
    let begun = |path: &PathBuf| !matches!(Journal::first_line(path), Ok(None));
    for path in Journal::paths(engine.data_dir()).into_iter().filter(begun) {
        let settled = Journal::load(path).and_then(|mut journal| journal.resume(Some(engine.vitals().log_position)));
        match settled {
            Ok(Resume { finished: true, .. }) => {}
            Ok(Resume { from, .. }) => {
                tracing::info!(lines = from.lines, "an import is unfinished; the same command goes on with it")
            }
            Err(error) => tracing::warn!(%error, "an import can't be resumed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> Place {
        Place { offset, lines: offset / 10 }
    }

    fn subject(dir: &Path) -> Subject {
        let file = dir.join("file");
        std::fs::write(&file, "the content").unwrap();
        Subject::of(&file, "how".into()).unwrap()
    }

    fn journal(dir: &Path) -> Journal {
        let subject = subject(dir);
        Journal::find(dir, &subject).unwrap().unwrap_or_else(|| Journal::create(dir, &subject).unwrap())
    }

    #[test]
    fn the_log_says_how_far_it_came() {
        for (log_position, expected) in
            [(100, Some(0)), (105, Some(50)), (108, Some(90)), (115, Some(120)), (107, None), (99, None), (116, None)]
        {
            let dir = tempfile::tempdir().unwrap();
            let mut first = journal(dir.path());
            first.begin(Some(100)).unwrap();
            for (events, end) in [(5, 50), (3, 80), (0, 90), (7, 120)] {
                first.announce(events, place(end)).unwrap();
            }
            drop(first);
            let resumed = journal(dir.path()).resume(Some(log_position)).ok();
            assert_eq!(resumed.map(|resume| resume.from.offset), expected, "{log_position}");
            if expected.is_some() {
                // Settled once and for all: what is recorded later does not count.
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
        first.begin(None).unwrap();
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
        first.begin(None).unwrap();
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
        Journal::forget(dir.path(), &subject(dir.path())).unwrap();
        let afresh = journal(dir.path()).resume(None).unwrap();
        assert_eq!(afresh, Resume { from: Place::START, sent_until: 0, finished: false });
    }

    #[test]
    fn what_is_no_journal_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = journal(dir.path()).path;
        for text in ["{}\n", "\"finished\"\n", "nonsense\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::find(dir.path(), &subject(dir.path())).is_err(), "{text:?}");
        }
        // It was cut short while it was made.
        std::fs::write(&path, "{\"import\":{\"ver").unwrap();
        assert!(Journal::find(dir.path(), &subject(dir.path())).unwrap().is_none());
    }

    #[test]
    fn a_long_journal_begins_anew_and_says_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut long = journal(dir.path());
        long.begin(Some(100)).unwrap();
        for batch in 1..=30 {
            long.announce(1, place(batch * 10)).unwrap();
        }
        let before = std::fs::metadata(&long.path).unwrap().len();
        assert_eq!(before, long.bytes);
        long.shorten().unwrap();
        long.begin(Some(130)).unwrap();
        long.announce(5, place(400)).unwrap();
        let after = std::fs::metadata(&long.path).unwrap().len();
        assert!(after < before && after == long.bytes, "{before} {after}");
        let prefix = long.prefix().to_owned();
        drop(long);
        for (log_position, expected) in [(130, 300), (135, 400)] {
            let copy = tempfile::tempdir().unwrap();
            std::fs::create_dir(copy.path().join(DIRECTORY)).unwrap();
            let path = Journal::paths(dir.path()).remove(0);
            let copied = copy.path().join(DIRECTORY).join(path.file_name().unwrap());
            std::fs::copy(&path, &copied).unwrap();
            let mut resumed = Journal::load(copied).unwrap();
            assert_eq!(resumed.prefix(), prefix);
            assert_eq!(resumed.resume(Some(log_position)).unwrap().from, place(expected), "{log_position}");
        }
    }
}
