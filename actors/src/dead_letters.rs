//! Dead letters: events that made a shard panic twice. They are set aside, so that a single event
//! can't stop a partition.
//!
//! Each is a JSON line in `dead-letters.ndjson`, synced before the shard continues without the
//! event. A start reads the file, so that a rebuild skips the same events. A torn last line (from a
//! crash while writing) is ignored: the event will panic again.
//!
//! The nodes of a cluster share the positions ([`SharedLetters`], ADR 18), and write the events
//! only to their own logs. A node's file has the positions that no checkpoint of this machine
//! reflects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_common::{SharedLetters, SharedLettersError, partition_of};
use headcount_domain::erasure::AfterErasure;
use headcount_domain::{Event, Position, ProjectId};
use headcount_storage::files::{self, PRIVATE_FILE};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The place of an event. Its position belongs to its partition.
#[derive(Serialize, Deserialize)]
struct LetterPlace {
    position: Position,
    partition: u16,
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
    partition: u16,
    reason: &'a str,
    event: &'a Event,
}

/// Positions of events, by partition.
type LetterPlaces = BTreeMap<u16, BTreeSet<Position>>;

/// The dead letters in memory.
#[derive(Debug, Default)]
struct Letters {
    /// The dead letters of this machine's partitions.
    places: LetterPlaces,
    /// In a cluster: those that no checkpoint of this machine reflects.
    known: LetterPlaces,
    /// In a cluster: those that wait to be recorded before they are set aside.
    waiting: LetterPlaces,
}

/// The dead letters.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    /// The path of the file; `None` if nothing can be added.
    path: Option<PathBuf>,
    shared: Option<Arc<dyn SharedLetters>>,
    letters: Mutex<Letters>,
    /// Their number. It is almost always 0, so most lookups take no lock.
    count: AtomicUsize,
}

impl DeadLetters {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let places = read(path)?;
        let count = AtomicUsize::new(places.values().map(BTreeSet::len).sum());
        let letters = Letters { places, ..Letters::default() };
        Ok(Self { path: Some(path.to_owned()), shared: None, letters: Mutex::new(letters), count })
    }

    /// Opens the dead letters of a node, which knows none before [`Self::adopt`].
    pub(crate) fn open_shared(path: &Path, shared: Arc<dyn SharedLetters>) -> io::Result<Self> {
        let letters = Letters { known: read(path)?, ..Letters::default() };
        let count = AtomicUsize::new(0);
        Ok(Self { path: Some(path.to_owned()), shared: Some(shared), letters: Mutex::new(letters), count })
    }

    /// Returns the same dead letters, without the ability to add any.
    pub(crate) fn read_only(&self) -> Self {
        let places = self.letters.lock().places.clone();
        let count = AtomicUsize::new(places.values().map(BTreeSet::len).sum());
        Self { path: None, shared: None, letters: Mutex::new(Letters { places, ..Letters::default() }), count }
    }

    pub(crate) fn contains(&self, partition: u16, position: Position) -> bool {
        self.count() > 0 && self.letters.lock().places.get(&partition).is_some_and(|places| places.contains(&position))
    }

    /// The dead letters within a range of positions.
    pub(crate) fn within(&self, partition: u16, positions: RangeInclusive<Position>) -> Vec<Position> {
        if self.count() == 0 {
            return Vec::new();
        }
        let letters = self.letters.lock();
        letters.places.get(&partition).into_iter().flat_map(|places| places.range(positions.clone())).copied().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn count_of(&self, partition: u16) -> usize {
        if self.count() == 0 { 0 } else { self.letters.lock().places.get(&partition).map_or(0, BTreeSet::len) }
    }

    fn change(&self, change: impl FnOnce(&mut Letters)) {
        let mut letters = self.letters.lock();
        change(&mut letters);
        self.count.store(letters.places.values().map(BTreeSet::len).sum(), Ordering::Release);
    }

    /// Sets the dead letters of a partition that is taken over.
    pub(crate) fn adopt(&self, partition: u16, positions: BTreeSet<Position>) {
        self.change(|letters| {
            letters.waiting.remove(&partition);
            letters.places.insert(partition, positions);
        });
    }

    /// Forgets a partition that another machine takes over.
    pub(crate) fn give_up(&self, partition: u16) {
        self.change(|letters| {
            letters.waiting.remove(&partition);
            letters.places.remove(&partition);
        });
    }

    /// The first dead letter of a partition, perhaps of another machine, that a checkpoint of this
    /// machine may reflect.
    pub(crate) fn first_unknown(&self, partition: u16) -> Option<Position> {
        self.shared.as_ref()?;
        let letters = self.letters.lock();
        let known = letters.known.get(&partition);
        letters.places.get(&partition)?.iter().find(|position| known.is_none_or(|known| !known.contains(position))).copied()
    }

    /// Records that no checkpoint reflects the dead letters of a partition: no checkpoint of this
    /// process or, if `durable`, of any later one.
    pub(crate) fn note_known(&self, partition: u16, durable: bool) -> io::Result<()> {
        if self.first_unknown(partition).is_none() {
            return Ok(());
        }
        let mut letters = self.letters.lock();
        let Letters { places, known, .. } = &mut *letters;
        let known = known.entry(partition).or_default();
        let new: Vec<Position> = places.get(&partition).into_iter().flatten().filter(|at| !known.contains(at)).copied().collect();
        if durable {
            let place = |position: &Position| serde_json::to_vec(&LetterPlace { position: *position, partition });
            let lines = new.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            self.append(&lines)?;
        }
        known.extend(new);
        Ok(())
    }

    /// Removes the events of a deleted project from the file. Unreadable lines stay.
    pub(crate) fn remove(&self, project: ProjectId) -> io::Result<()> {
        let _no_line_is_added = self.letters.lock();
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        let Some(text) = files::read_if_there(path)? else { return Ok(()) };
        let is_its = |line: &&[u8]| serde_json::from_slice::<ProjectLine>(line).is_ok_and(|line| line.event.project == project);
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let kept: Vec<&[u8]> = lines.iter().copied().filter(|line| !is_its(line)).collect();
        if kept.len() < lines.len() {
            // Their positions stay known until the next start, since nothing asks for them.
            files::write_atomically(path, &kept.join(&b'\n'), PRIVATE_FILE)?;
        }
        Ok(())
    }

    /// Applies `erase` to the events of a project in the file: removes events that are gone, and
    /// rewrites the changed ones. Unreadable lines stay.
    pub(crate) fn erase(&self, project: ProjectId, erase: &dyn Fn(Position, &mut Event) -> AfterErasure) -> io::Result<()> {
        let _no_line_is_added = self.letters.lock();
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
                    let line = FullLine { position, partition: partition_of(project), reason: &reason, event: &event };
                    kept.push(serde_json::to_vec(&line)?);
                }
                // The position must stay known: the log is sealed without the event, and nothing
                // asks for it afterwards.
                AfterErasure::Gone(_) => is_changed = true,
            }
        }
        if is_changed { files::write_atomically(path, &kept.join(&b'\n'), PRIVATE_FILE) } else { Ok(()) }
    }

    /// Sets an event aside, permanently. A node does so when it [records](Self::record_waiting) it.
    pub(crate) fn add(&self, (partition, position): (u16, Position), reason: &str, event: &Event) -> io::Result<()> {
        if self.shared.is_some() {
            self.letters.lock().waiting.entry(partition).or_default().insert(position);
            return Ok(());
        }
        let line = serde_json::to_vec(&FullLine { position, partition, reason, event })?;
        let mut letters = self.letters.lock();
        self.append(&[line])?;
        letters.places.entry(partition).or_default().insert(position);
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Records the waiting dead letters of a partition for all nodes, before its state continues
    /// without them. Blocks.
    ///
    /// # Errors
    /// Returns a [`SharedLettersError`]: they are not set aside.
    pub(crate) fn record_waiting(&self, partition: u16) -> Result<(), SharedLettersError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let Some(waiting) = self.letters.lock().waiting.get(&partition).cloned() else { return Ok(()) };
        shared.set_aside(partition, &waiting)?;
        self.change(|letters| {
            // The partition may have been given up meanwhile.
            if letters.waiting.get(&partition) == Some(&waiting) {
                letters.waiting.remove(&partition);
                letters.places.entry(partition).or_default().extend(waiting);
            }
        });
        Ok(())
    }

    fn append(&self, lines: &[Vec<u8>]) -> io::Result<()> {
        let path = self.path.as_deref().ok_or_else(|| io::Error::other("events are only read"))?;
        let mut file = open_private(path)?;
        // Ends a torn line.
        let mut text = vec![b'\n'];
        lines.iter().for_each(|line| text.extend([line, &b"\n"[..]].concat()));
        file.write_all(&text)?;
        file.sync_all()
    }
}

fn read(path: &Path) -> io::Result<LetterPlaces> {
    let text = files::read_if_there(path)?.unwrap_or_default();
    let mut places = LetterPlaces::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(LetterPlace { position, partition }) = serde_json::from_slice(line) else { continue };
        places.entry(partition).or_default().insert(position);
    }
    Ok(places)
}

fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_by_partition_and_one_that_was_cut_short_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dead-letters.ndjson");
        let text = concat!(
            "\n{\"position\":7,\"partition\":2,\"reason\":\"panicked twice\",\"event\":{\"project\":1,\"name\":\"a\"}}\n",
            "\n{\"position\":7,\"partition\":3,\"reason\":\"panicked twice\",\"event\":{\"project\":1}}\n",
            "\n{\"position\":9,\"part"
        );
        std::fs::write(&path, text).unwrap();
        let dead = DeadLetters::open(&path).unwrap();
        assert_eq!(dead.count(), 2);
        let has = |partition| (dead.contains(partition, 7), dead.count_of(partition), dead.within(partition, 1..=9));
        assert_eq!(has(2), (true, 1, vec![7]));
        assert_eq!(has(3), (true, 1, vec![7]));
        assert_eq!(has(4), (false, 0, Vec::new()));
        assert!(!dead.contains(3, 9));
    }
}
