//! How far an import came: what makes it resume exactly, also after kill -9.
//!
//! One file per import in `imports/` of the data directory, a JSON object a line, each synced before what it announces is done.
//!
//! - Into the engine itself nobody else records events meanwhile, so the log tells how many of ours are in it: every batch is
//!   announced with its number of events, and the announced batches that the log has since the session's first position
//!   are those that are done. It costs the events nothing. A server that starts afterwards settles this first ([`settle`]).
//! - Through a server others record too. There every event has an `external_id` (of its file and line if it has none), so
//!   that batches whose answer nobody saw are simply sent again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headcount_actors::Engine;
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, sync_dir};
use serde::{Deserialize, Serialize};

use super::lines::Place;

/// The directory of journals in a data directory.
const DIRECTORY: &str = "imports";

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first: what is imported.
    Import {
        version: u32,
        file: PathBuf,
        /// Begins the `external_id`s that this import gives.
        prefix: String,
    },
    /// A run of the command begins. `position`: of the log's last event, if it records into the engine itself.
    Session { position: Option<u64> },
    /// A batch is about to be recorded: so many events, up to this place.
    Batch { events: u64, end: Place },
    /// Everything up to here is done.
    Done { at: Place },
    /// All of it is done.
    Finished,
}

/// Where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resume {
    /// From here.
    pub(crate) from: Place,
    /// Events before this offset may have been sent to a server already.
    pub(crate) sent_until: u64,
    /// There is nothing left.
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
    prefix: String,
    story: Story,
}

/// What the lines of a journal lead to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Story {
    done: Option<Place>,
    sent_until: u64,
    finished: bool,
    /// The log's position when the last session began, if it went into the engine itself.
    position: Option<u64>,
    /// What it announced since, in order.
    announced: Vec<(u64, Place)>,
}

impl Story {
    fn follow(&mut self, line: &Line) {
        match *line {
            Line::Import { .. } => {}
            Line::Session { position } => {
                self.position = position;
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
    /// Opens the journal of the import named `key`, or begins one.
    pub(crate) fn open(data_dir: &Path, key: &str, file: &Path, afresh: bool) -> Result<Self, JournalError> {
        let dir = data_dir.join(DIRECTORY);
        let path = dir.join(format!("{key}.ndjson"));
        let failed = |source| JournalError::Io { path: path.clone(), source };
        create_private_dir(&dir).map_err(failed)?;
        if afresh
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(failed(error));
        }
        if path.exists() {
            return Self::load(path);
        }
        let opened = OpenOptions::new().append(true).create(true).mode(PRIVATE_FILE).open(&path).map_err(failed)?;
        // Another import of the same file must not repeat the ids of the one before.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let prefix = format!("import:{key}:{since:x}");
        let mut journal = Journal { path: path.clone(), file: opened, prefix: prefix.clone(), story: Story::default() };
        journal.write(&Line::Import { version: 1, file: file.to_owned(), prefix })?;
        sync_dir(&dir).map_err(failed)?;
        Ok(journal)
    }

    fn load(path: PathBuf) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let text = std::fs::read(&path).map_err(failed)?;
        // A torn last line announced something that was not begun.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Result<Vec<Line>, _> = lines.map(serde_json::from_slice).collect();
        let lines = lines.map_err(|_| JournalError::Damaged { path: path.clone() })?;
        let Some(Line::Import { version: 1, prefix, .. }) = lines.first() else {
            return Err(JournalError::Damaged { path });
        };
        let mut story = Story::default();
        lines.iter().for_each(|line| story.follow(line));
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        file.set_len(u64::try_from(whole).unwrap_or(0)).map_err(failed)?;
        Ok(Journal { path: path.clone(), file, prefix: prefix.clone(), story })
    }

    /// What the `external_id`s that this import gives begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where to go on. `log_position`: the log's last, when nobody else has recorded events since the last session.
    pub(crate) fn resume(&mut self, log_position: Option<u64>) -> Result<Resume, JournalError> {
        if self.story.is_open() {
            let at = log_position.and_then(|position| self.story.settled(position));
            let at = at.ok_or_else(|| JournalError::Unsettled { path: self.path.clone() })?;
            self.write(&Line::Done { at })?;
        }
        let Story { done, sent_until, finished, .. } = &self.story;
        Ok(Resume { from: done.unwrap_or(Place::START), sent_until: *sent_until, finished: *finished })
    }

    /// A run begins; `position` as in [`Line::Session`].
    pub(crate) fn begin(&mut self, position: Option<u64>) -> Result<(), JournalError> {
        self.write(&Line::Session { position })
    }

    /// A batch is about to be recorded.
    pub(crate) fn announce(&mut self, events: u64, end: Place) -> Result<(), JournalError> {
        self.write(&Line::Batch { events, end })
    }

    /// Everything up to `at` is done.
    pub(crate) fn done(&mut self, at: Place) -> Result<(), JournalError> {
        self.write(&Line::Done { at })
    }

    /// All of it is done.
    pub(crate) fn finish(&mut self) -> Result<(), JournalError> {
        self.write(&Line::Finished)
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.story.follow(line);
        Ok(())
    }
}

/// Settles how far interrupted imports came, before anybody else records events.
pub(crate) fn settle(engine: &Engine) {
    let Ok(entries) = std::fs::read_dir(engine.data_dir().join(DIRECTORY)) else { return };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "ndjson"));
    for path in paths {
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

    fn journal(dir: &Path) -> Journal {
        Journal::open(dir, "key", Path::new("file"), false).unwrap()
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
        again.finish().unwrap();
        assert!(journal(dir.path()).resume(None).unwrap().finished);
        let afresh = Journal::open(dir.path(), "key", Path::new("file"), true).unwrap().resume(None).unwrap();
        assert_eq!(afresh, Resume { from: Place::START, sent_until: 0, finished: false });
    }

    #[test]
    fn what_is_no_journal_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = journal(dir.path()).path;
        for text in ["", "{}\n", "\"finished\"\n", "nonsense\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::open(dir.path(), "key", Path::new("file"), false).is_err(), "{text:?}");
        }
    }
}
