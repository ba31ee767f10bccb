//! Events that made a shard panic twice: set aside, so that one of them can't keep everybody from their numbers.
//!
//! One JSON line each in `dead-letters.ndjson`, synced before the shard goes on without the event. The file is read at
//! start, so that a rebuild passes over the same events. A torn last line (a crash while writing) is ignored: the event
//! will panic again.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Line {
    position: Position,
}

#[derive(Serialize)]
struct FullLine<'a> {
    position: Position,
    reason: &'a str,
    event: &'a Event,
}

/// The events that were set aside.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    path: PathBuf,
    positions: Mutex<BTreeSet<Position>>,
}

impl DeadLetters {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let lines = text.split(|byte| *byte == b'\n');
        let positions = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()).map(|line| line.position);
        Ok(Self { path: path.to_owned(), positions: Mutex::new(positions.collect()) })
    }

    pub(crate) fn contains(&self, position: Position) -> bool {
        self.lock().contains(&position)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Sets an event aside, for good.
    pub(crate) fn add(&self, position: Position, reason: &str, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&FullLine { position, reason, event })?;
        line.push(b'\n');
        let mut positions = self.lock();
        let mut file = open_private(&self.path)?;
        file.write_all(b"\n")?;
        file.write_all(&line)?;
        file.sync_all()?;
        positions.insert(position);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<Position>> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
