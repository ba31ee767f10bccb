//! Events that made a shard panic twice. They are set aside, so that one event can't stop a partition.
//!
//! Each is a JSON line in `dead-letters.ndjson`, synced before the shard goes on without the event. The file is read at
//! start, so that a rebuild skips the same events. A torn last line (a crash while writing) is ignored: the event will
//! panic again.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_domain::erasure::AfterErasure;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use headcount_storage::files::{self, PRIVATE_FILE};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Line {
    position: Position,
}

#[derive(Deserialize)]
struct ProjectLine {
    event: EventProject,
}

#[derive(Deserialize)]
struct EventProject {
    project: ProjectId,
}

#[derive(Deserialize)]
struct OwnedLine {
    position: Position,
    reason: String,
    event: Event,
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
    /// `None`: nothing can be added.
    path: Option<PathBuf>,
    positions: Mutex<BTreeSet<Position>>,
    /// Length of `positions`: almost always 0, so that most look-ups take no lock.
    count: AtomicUsize,
}

impl DeadLetters {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let text = files::read_if_there(path)?.unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        let positions = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()).map(|line| line.position);
        let positions: BTreeSet<Position> = positions.collect();
        let count = AtomicUsize::new(positions.len());
        Ok(Self { path: Some(path.to_owned()), positions: Mutex::new(positions), count })
    }

    /// Returns the same events, to which none can be added.
    pub(crate) fn read_only(&self) -> Self {
        let positions = self.positions.lock().clone();
        let count = AtomicUsize::new(positions.len());
        Self { path: None, positions: Mutex::new(positions), count }
    }

    pub(crate) fn contains(&self, position: Position) -> bool {
        self.count() > 0 && self.positions.lock().contains(&position)
    }

    /// The positions of a range that were set aside.
    pub(crate) fn within(&self, positions: RangeInclusive<Position>) -> Vec<Position> {
        if self.count() == 0 { Vec::new() } else { self.positions.lock().range(positions).copied().collect() }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Removes the events of a deleted project from the file. Lines that can't be read stay.
    pub(crate) fn remove(&self, project: ProjectId) -> io::Result<()> {
        let _no_line_is_added = self.positions.lock();
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        let Some(text) = files::read_if_there(path)? else { return Ok(()) };
        let is_its = |line: &&[u8]| serde_json::from_slice::<ProjectLine>(line).is_ok_and(|line| line.event.project == project);
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let kept: Vec<&[u8]> = lines.iter().copied().filter(|line| !is_its(line)).collect();
        if kept.len() < lines.len() {
            // Their positions stay known until the next start: nobody asks for them.
            files::write_atomically(path, &kept.join(&b'\n'), PRIVATE_FILE)?;
        }
        Ok(())
    }

    /// Removes events of a project from the file that `erase` says are gone, and writes others as it leaves them. Lines that can't be read stay.
    pub(crate) fn erase(&self, project: ProjectId, erase: &dyn Fn(Position, &mut Event) -> AfterErasure) -> io::Result<()> {
        let _no_line_is_added = self.positions.lock();
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        let Some(text) = files::read_if_there(path)? else { return Ok(()) };
        let (mut kept, mut is_changed) = (Vec::new(), false);
        for line in text.split(|byte| *byte == b'\n') {
            let parsed = serde_json::from_slice::<OwnedLine>(line).ok().filter(|line| line.event.project == project);
            let Some(OwnedLine { position, reason, mut event }) = parsed else {
                kept.push(line.to_vec());
                continue;
            };
            match erase(position, &mut event) {
                AfterErasure::Unchanged => kept.push(line.to_vec()),
                AfterErasure::WithoutId => {
                    is_changed = true;
                    kept.push(serde_json::to_vec(&FullLine { position, reason: &reason, event: &event })?);
                }
                // The position must stay known: the log is sealed without the event, and nobody asks for it afterwards.
                AfterErasure::Gone(_) => is_changed = true,
            }
        }
        if is_changed { files::write_atomically(path, &kept.join(&b'\n'), PRIVATE_FILE) } else { Ok(()) }
    }

    /// Sets an event aside, for good.
    pub(crate) fn add(&self, position: Position, reason: &str, event: &Event) -> io::Result<()> {
        let path = self.path.as_deref().ok_or_else(|| io::Error::other("events are only read"))?;
        let mut line = serde_json::to_vec(&FullLine { position, reason, event })?;
        line.push(b'\n');
        let mut positions = self.positions.lock();
        let mut file = open_private(path)?;
        file.write_all(b"\n")?;
        file.write_all(&line)?;
        file.sync_all()?;
        positions.insert(position);
        self.count.store(positions.len(), Ordering::Release);
        Ok(())
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
