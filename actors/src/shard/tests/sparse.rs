//! A log whose positions are neither dense nor common to all partitions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_common::partition_of;
use headcount_storage::log::{LogError, LogMark, Record, RecordVisitor, WantedAfter};
use headcount_storage::store::MemoryStore;
use parking_lot::Mutex;

use super::*;
use crate::history::{HistoryError, Wanted};

/// Positions of two records of a partition differ at least by this.
const STEP: Position = 1 << 13;

/// A record: the number of its events, and its bytes.
type Stored = (u32, Vec<u8>);

/// The records of each partition in memory, by the position of their first event.
#[derive(Debug, Clone, Default)]
struct SparseLog {
    partitions: Arc<Mutex<BTreeMap<u16, BTreeMap<Position, Stored>>>>,
    /// The position after the last removed event of each partition.
    floors: Arc<Mutex<BTreeMap<u16, Position>>>,
}

impl SparseLog {
    /// Appends events of one project. Returns the position of the first.
    fn append(&self, project: ProjectId, events: Vec<Event>) -> Position {
        let record = LogRecord::Events(events.into_iter().map(Box::new).collect());
        let mut partitions = self.partitions.lock();
        let records = partitions.entry(partition_of(project)).or_default();
        let floor = self.floors.lock().get(&partition_of(project)).copied().unwrap_or(1);
        let first = records.last_key_value().map_or(floor.next_multiple_of(STEP), |(first, _)| first + STEP);
        records.insert(first, (u32::try_from(record.count()).unwrap(), record.encode().unwrap()));
        first
    }

    /// Removes the records of a partition before a position.
    fn trim(&self, partition: u16, before: Position) {
        let mut partitions = self.partitions.lock();
        let records = partitions.entry(partition).or_default();
        let kept = records.split_off(&before);
        if let Some((first, (count, _))) = std::mem::replace(records, kept).pop_last() {
            self.floors.lock().insert(partition, first + Position::from(count));
        }
    }

    fn with<T>(&self, partition: u16, read: impl FnOnce(&BTreeMap<Position, Stored>) -> Option<T>) -> Option<T> {
        self.partitions.lock().get(&partition).and_then(read)
    }
}

impl ReadLog for SparseLog {
    fn first_position(&self, partition: u16) -> Position {
        self.floors.lock().get(&partition).copied().unwrap_or(0)
    }

    fn last_position(&self, partition: u16) -> Position {
        let last = |records: &BTreeMap<Position, Stored>| {
            records.last_key_value().map(|(first, (count, _))| first + u64::from(*count) - 1)
        };
        self.with(partition, last).unwrap_or(0)
    }

    fn events_after(&self, partition: u16, position: Position) -> u64 {
        let count =
            |records: &BTreeMap<Position, Stored>| Some(records.range(position..).map(|(_, (count, _))| u64::from(*count)).sum());
        self.with(partition, count).unwrap_or(0)
    }

    fn mark(&self, _: u16, position: Position) -> Option<LogMark> {
        Some(LogMark { position, digest: u128::from(position), resumed: 0 })
    }

    fn is_in_order(&self) -> bool {
        false
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError> {
        let partitions = self.partitions.lock().clone();
        for (partition, records) in partitions {
            let Some(after) = wanted(partition) else { continue };
            for (first, (count, payload)) in records {
                let record = Record { partition, first, count, payload: &payload };
                if first + u64::from(count) - 1 > after && visit(record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

struct Sparse {
    dir: TempDir,
    log: SparseLog,
    store: MemoryStore,
}

impl Sparse {
    fn open(&self, policy: CheckpointPolicy) -> Shard {
        open(&self.dir, self.log.clone(), &self.store, policy, 1 << 30).0
    }

    fn saved(&self, project: ProjectId) -> Position {
        read_meta::<PartitionMeta>(&self.store, &position_key(partition_of(project))).unwrap().unwrap_or_default().position
    }
}

fn count(shard: &mut Shard, project: ProjectId) -> u64 {
    let window = Window { start: Day(19_000), end: Day(19_001) };
    shard.answer(project, &UniqueUsersQuery { window }).unwrap().total
}

#[test]
fn a_shard_replays_checkpoints_and_resumes_where_positions_have_gaps() {
    let (one, other) = two();
    let sparse = Sparse { dir: tempfile::tempdir().unwrap(), log: SparseLog::default(), store: MemoryStore::default() };
    for from in [0, 5, 10] {
        sparse.log.append(one, users(one, from..from + 8));
    }
    let of_other = sparse.log.append(other, users(other, 0..3));
    assert!(of_other < sparse.log.last_position(partition_of(one)), "positions of two partitions say nothing of each other");

    let mut shard = sparse.open(NEVER);
    assert_eq!((shard.replayed, count(&mut shard, one), count(&mut shard, other)), (27, 18, 3));
    shard.write_checkpoints().unwrap();
    for project in [one, other] {
        assert_eq!(sparse.saved(project), sparse.log.last_position(partition_of(project)));
    }

    // Each partition may lose the events in its own checkpoint. The rest is replayed, and events
    // that came twice don't count twice.
    sparse.log.trim(partition_of(one), 4 * STEP);
    let unsaved = sparse.log.append(one, users(one, 15..20));
    let mut shard = sparse.open(NEVER);
    assert_eq!((shard.replayed, count(&mut shard, one), count(&mut shard, other)), (5, 20, 3));

    // Events in no checkpoint may not be removed.
    sparse.log.append(one, users(one, 20..21));
    sparse.log.trim(partition_of(one), unsaved + 1);
    let history = past(&sparse.dir, sparse.log.clone());
    let saved = sparse.saved(one);
    let read = |project| history.read(&[Wanted::partition(partition_of(project), saved)], &mut |_| ControlFlow::Continue(()));
    assert!(matches!(read(one), Err(HistoryError::Missing { from, to }) if from == saved + 1 && to == unsaved + 4));
    read(other).unwrap();
}

#[test]
fn a_checkpoint_is_due_after_a_number_of_events_whatever_their_positions() {
    let (one, _) = two();
    let sparse = Sparse { dir: tempfile::tempdir().unwrap(), log: SparseLog::default(), store: MemoryStore::default() };
    let mut shard = sparse.open(CheckpointPolicy { events: 20, ..NEVER });
    let mut send = |numbers: std::ops::Range<u64>| {
        let events = users(one, numbers);
        let first = sparse.log.append(one, events.clone());
        let record = LogRecord::Events(events.into_iter().map(Box::new).collect());
        let work = Work { partition: partition_of(one), project: one, first, record, permits: Vec::new(), reply: Box::new(drop) };
        shard.enqueue(work);
        while shard.advance() {}
        shard.begin_checkpoints(false)
    };
    assert_eq!(send(0..10), Next::Rest);
    assert_eq!(send(10..19), Next::Rest);
    assert_eq!(send(19..20), Next::Freeze(partition_of(one)));
}

/// A checkpoint may have more events of one project than of another. So a mark at the position of
/// the checkpoint would not cover the events after it.
#[test]
fn a_checkpoint_has_the_mark_of_the_last_position_that_it_reflects() {
    let slow = ProjectId(1);
    let quick = (2..).map(ProjectId).find(|other| partition_of(*other) == partition_of(slow)).unwrap();
    let sparse = Sparse { dir: tempfile::tempdir().unwrap(), log: SparseLog::default(), store: MemoryStore::default() };
    let mut shard = sparse.open(NEVER);
    // Enough to take longer than one turn on any machine.
    let works = 3_000;
    let of_slow = (0..works).map(|number| (slow, number..number + 1));
    for (project, numbers) in of_slow.chain([(quick, 0..2)]) {
        let events = users(project, numbers);
        let (first, record) =
            (sparse.log.append(project, events.clone()), LogRecord::Events(events.into_iter().map(Box::new).collect()));
        shard.enqueue(Work { partition: partition_of(slow), project, first, record, permits: Vec::new(), reply: Box::new(drop) });
    }
    // They take turns.
    while count(&mut shard, quick) < 2 {
        shard.pipeline.apply_next(Stopwatch::now()).unwrap();
    }
    assert!(count(&mut shard, slow) < works);
    let mut next = shard.begin_checkpoints(true);
    while next != Next::Rest {
        next = if next.is_step() { shard.step_checkpoint() } else { shard.hear_writer() };
    }
    let highest = sparse.log.last_position(partition_of(slow));
    let mark: Option<LogMark> = read_meta(&sparse.store, &mark_key(partition_of(slow))).unwrap();
    assert!(sparse.saved(slow) < 50 * STEP && highest > 50 * STEP);
    assert_eq!(mark.map(|mark| mark.position), Some(highest));
}

#[test]
fn what_one_partition_has_too_many_of_hides_nothing_of_another() {
    let (one, other) = two();
    for (few, all) in [(one, other), (other, one)] {
        let log = SparseLog::default();
        for (project, records) in [(few, 6), (all, 4)] {
            for number in 0..records {
                log.append(project, users(project, number..number + 1));
            }
        }
        let history = LoggedEvents::new(log.clone());
        let (few, all) = (partition_of(few), partition_of(all));
        let wanted = [(few, STEP), (all, log.last_position(all))];
        let wanted = wanted.map(|(partition, until)| Wanted { until, ..Wanted::partition(partition, 0) });
        let mut events = BTreeMap::<u16, usize>::new();
        let mut visit = |piece: crate::history::HistoryPiece| {
            *events.entry(piece.partition).or_default() += piece.events.len();
            ControlFlow::Continue(())
        };
        history.read(&wanted, &mut visit).unwrap();
        assert_eq!(events, BTreeMap::from([(few, 1), (all, 4)]));
    }
}
