//! Tests of a shard with its store, log and checkpoint writer, driven as its actor drives it.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::{PARTITIONS, partition_of};
use headcount_domain::intake::event::{Details, SentIds};
use headcount_domain::queries::UniqueUsersQuery;
use headcount_domain::{Day, Event, Instant, KeyHasher, Position, ProjectId, Window};
use headcount_storage::external_ids::{ExternalIdsOptions, Freeze};
use headcount_storage::format::Incarnation;
use headcount_storage::log::{AppendEntry, Log, LogOptions, ReadLog};
use headcount_storage::store::Store;
use tempfile::TempDir;

mod broken;
mod faults;
mod floors;
mod sparse;

use super::checkpointer::Next;
use super::*;
use crate::checkpoint_writer::CheckpointWriter;
use crate::checkpoint_writer::{PartitionMeta, mark_key, position_key, read_meta};
use crate::dead_letters::DeadLetters;
use crate::erasures::Erasures;
use crate::event_codec::{Events, LogRecord};
use crate::faulty_store::FaultyStore;
use crate::history::{History, LoggedEvents, PartitionArchives, Past, SealedEvents};

/// A policy under which only tests start checkpoints.
const NEVER: CheckpointPolicy = CheckpointPolicy { events: u64::MAX, interval: Duration::from_secs(1 << 30) };
/// The time limit of each step.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shard with all partitions.
struct Rig<S = FaultyStore> {
    dir: TempDir,
    log: Log,
    store: S,
    memory: Arc<MemoryUsage>,
    shard: Shard,
}

impl Rig {
    fn new(policy: CheckpointPolicy, memory: usize) -> Self {
        Self::with(tempfile::tempdir().unwrap(), FaultyStore::default(), policy, memory)
    }

    /// Restarts the shard from the store and the log.
    fn restart(&mut self) {
        let (shard, memory) = open(&self.dir, self.log.reader(), &self.store, NEVER, 1 << 30);
        (self.shard, self.memory) = (shard, memory);
    }
}

impl<S: Store + Clone> Rig<S> {
    fn with(dir: TempDir, store: S, policy: CheckpointPolicy, memory: usize) -> Self {
        let (log, _) = Log::open(dir.path().join("log"), LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() }).unwrap();
        let (shard, memory) = open(&dir, log.reader(), &store, policy, memory);
        Self { dir, log, store, memory, shard }
    }

    /// Logs events of one project and applies them.
    fn send(&mut self, project: ProjectId, events: Vec<Event>) {
        self.record(project, LogRecord::Events(events.into_iter().map(Box::new).collect()));
    }

    /// Logs a record of one project and applies it. Returns its outcomes.
    fn record(&mut self, project: ProjectId, record: LogRecord) -> Vec<Outcome> {
        let (partition, payload) = (partition_of(project), record.encode().unwrap());
        let share = AppendEntry { partition, count: u32::try_from(record.count()).unwrap(), payload: &payload };
        let first = self.log.append(&[share]).unwrap();
        let (answer, answered) = channel();
        let reply = Box::new(move |outcomes| drop(answer.send(outcomes)));
        self.shard.enqueue(Work { partition, project, first, record, permits: Vec::new(), reply });
        while self.shard.advance() {}
        answered.try_recv().unwrap_or_default()
    }

    /// Handles checkpoints as the actor does, beginning with `next`, until there is nothing left to
    /// do.
    fn go_on(&mut self, mut next: Next) {
        let began = Stopwatch::now();
        while next != Next::Rest {
            assert!(began.elapsed() < PATIENCE, "checkpoints don't end");
            next = if next.is_step() {
                self.shard.step_checkpoint()
            } else {
                std::thread::sleep(Duration::from_millis(1));
                self.shard.hear_writer()
            };
        }
    }

    fn round(&mut self) {
        let next = self.shard.begin_checkpoints(true);
        self.go_on(next);
    }

    /// Handles the writer's reports until a condition holds.
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..6_000 {
            self.shard.hear_writer();
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not come");
    }

    fn meta(&self, project: ProjectId) -> PartitionMeta {
        read_meta(&self.store, &position_key(partition_of(project))).unwrap().unwrap_or_default()
    }

    fn progress(&self) -> &CheckpointProgress {
        &self.shard.pipeline.context.checkpoints
    }

    fn saved(&self, project: ProjectId) -> Position {
        self.meta(project).position
    }

    fn users(&mut self, project: ProjectId) -> u64 {
        let window = Window { start: Day(19_000), end: Day(19_001) };
        self.shard.answer(project, &UniqueUsersQuery { window }).unwrap().total
    }
}

fn no_erasures() -> Arc<Erasures> {
    Arc::new(Erasures::none(KeyHasher::new([7; 16])))
}

fn past(dir: &TempDir, log: impl ReadLog + 'static) -> Arc<dyn History> {
    let sealed = Arc::new(SealedEvents::open(&dir.path().join("archive"), Arc::default()).unwrap());
    Arc::new(Past::new(Arc::new(PartitionArchives::new(sealed)), LoggedEvents::new(log), no_erasures()))
}

fn open<S: Store + Clone>(
    dir: &TempDir,
    log: impl ReadLog + 'static,
    store: &S,
    policy: CheckpointPolicy,
    memory: usize,
) -> (Shard, Arc<MemoryUsage>) {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let context = PartitionContext {
        deleted: Arc::default(),
        erasures: no_erasures(),
        feeds: Arc::default(),
        store: Arc::clone(&store),
        hasher: KeyHasher::new([7; 16]),
        versions: Arc::new(Versions::new()),
        floors: Arc::default(),
        index: (dir.path().join("state/fingerprints"), ExternalIdsOptions { incarnation: Incarnation::from_number(1) }),
        health: Arc::default(),
        limits: Arc::default(),
        progress: Arc::default(),
        checkpoints: Arc::default(),
        unchecked: Arc::default(),
        damage: Arc::default(),
        dead: Arc::new(DeadLetters::open(&dir.path().join("dead")).unwrap()),
    };
    let writer = CheckpointWriter::spawn(store).unwrap().0;
    let applier = Applier::new(Arc::clone(&context.dead), None);
    let numbers: Vec<u16> = (0..PARTITIONS).collect();
    let checkpoints = Checkpoints::new(writer, policy, Arc::clone(&context.checkpoints));
    let usage = Arc::<MemoryUsage>::default();
    let evictor = Evictor::new(memory, Arc::clone(&usage));
    (Shard::open(&numbers, context, past(dir, log), applier, checkpoints, evictor).unwrap(), usage)
}

/// Returns two projects in different partitions.
fn two() -> (ProjectId, ProjectId) {
    let other = (2..).map(ProjectId).find(|other| partition_of(*other) != partition_of(ProjectId(1))).unwrap();
    (ProjectId(1), other)
}

/// Creates an event of this user.
fn event(project: ProjectId, user: u64) -> Event {
    Event {
        project,
        time: Instant(1_641_600_000_000),
        received: Instant(1_641_600_000_000),
        day: Day(19_000),
        interactive: true,
        name: "order".into(),
        who: SentIds { user_id: Some(format!("user-{user}").into()), ..SentIds::default() },
        external_id: Some(format!("order-{user}").into()),
        money: None,
        company: None,
        company_domain: None,
        email_company: None,
        details: Details::default(),
    }
}

fn users(project: ProjectId, numbers: std::ops::Range<u64>) -> Vec<Event> {
    numbers.map(|number| event(project, number)).collect()
}

#[test]
fn a_checkpoint_does_not_count_before_its_external_ids_are_durable() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, other) = two();
    rig.send(project, users(project, 0..10));
    // The ids of an earlier checkpoint are still being written.
    let earlier = rig.shard.pipeline.partitions.get_mut(&partition_of(project)).unwrap().freeze_ids();
    assert!(matches!(earlier, Freeze::Write(_)));
    rig.send(project, users(project, 10..20));
    rig.send(other, users(other, 0..5));
    rig.round();
    assert_eq!(rig.saved(project), 0, "the ids of its events are nowhere on disk");
    assert_eq!(rig.saved(other), 25);
    drop(earlier);
    rig.round();
    assert_eq!(rig.saved(project), 20);
    rig.restart();
    assert_eq!((rig.shard.replayed, rig.users(project), rig.users(other)), (0, 20, 5));
    rig.send(project, users(project, 0..20));
    assert_eq!(rig.users(project), 20);
}

#[test]
fn a_stuck_partition_leaves_the_others_their_checkpoints_and_memory() {
    const MEMORY: usize = 1 << 20;
    let mut rig = Rig::new(NEVER, MEMORY);
    let (stuck, other) = two();
    rig.store.change(partition_of(stuck), |faults| faults.no_begin = true);
    rig.send(stuck, users(stuck, 0..100));
    rig.round();
    rig.until(|rig| rig.progress().failing() == 1);
    assert!(rig.progress().accepts(partition_of(stuck)), "it has a share of the memory");
    let mut sent = 100;
    while rig.progress().accepts(partition_of(stuck)) {
        rig.send(stuck, users(stuck, sent..sent + 100));
        rig.shard.evict_if_needed();
        sent += 100;
        assert!(sent < 20_000, "{:?}", rig.memory);
    }
    assert!(sent > 200 && rig.memory.resident() < MEMORY, "{sent}: {:?}", rig.memory);
    // About ten times the size of the memory.
    for batch in 0..30 {
        rig.send(other, users(other, batch * 500..(batch + 1) * 500));
        rig.shard.evict_if_needed();
        assert!(!rig.shard.has_queued() || rig.shard.is_backpressured());
        if rig.shard.checkpoint_due() {
            rig.round();
            rig.shard.evict_if_needed();
        }
        while rig.shard.advance() {}
        assert!(!rig.shard.has_queued(), "nothing waits for the stuck one");
        assert!(rig.memory.resident() < MEMORY * 2, "{batch}: {:?}", rig.memory);
        assert!(rig.progress().accepts(partition_of(other)));
    }
    assert_eq!((rig.saved(stuck), rig.users(other)), (0, 15_000));
    assert_eq!((rig.progress().failing(), rig.progress().full()), (1, 1));
    rig.store.change(partition_of(stuck), |faults| faults.no_begin = false);
    rig.until(|rig| rig.progress().failing() == 0);
    assert!(rig.progress().accepts(partition_of(stuck)));
    rig.round();
    rig.restart();
    assert_eq!((rig.shard.replayed, rig.users(stuck), rig.users(other)), (0, sent, 15_000));
}

#[test]
fn a_stop_tries_each_partition_once() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (stuck, other) = two();
    rig.store.change(partition_of(stuck), |faults| faults.no_begin = true);
    rig.send(stuck, users(stuck, 0..10));
    rig.round();
    rig.send(stuck, users(stuck, 10..20));
    rig.send(other, users(other, 0..10));
    let before = rig.store.change(partition_of(stuck), |faults| faults.begun);
    rig.until(|rig| {
        let next = rig.shard.drain();
        rig.go_on(next);
        next == Next::Rest
    });
    let tries = rig.store.change(partition_of(stuck), |faults| faults.begun) - before;
    // One attempt at the stop, and perhaps one that was due.
    assert!((1..=2).contains(&tries), "{tries}");
    assert_eq!((rig.saved(stuck), rig.saved(other)), (0, 30));
}

#[test]
fn external_ids_are_counted_once_however_often_they_are_written() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let project = ProjectId(1);
    let partition = partition_of(project);
    rig.store.change(partition, |faults| faults.failing_commits = 1);
    rig.send(project, users(project, 0..50));
    rig.round();
    rig.until(|rig| rig.saved(project) == 50);
    assert_eq!(rig.meta(project).external_ids, 50);
    // A checkpoint is lost after its ids were written. The ids are not written again.
    rig.send(project, users(project, 40..60));
    rig.store.change(partition, |faults| faults.no_begin = true);
    rig.round();
    rig.store.change(partition, |faults| faults.no_begin = false);
    rig.restart();
    rig.send(project, users(project, 55..70));
    rig.round();
    assert_eq!(rig.meta(project).external_ids, 70);
    rig.restart();
    assert_eq!((rig.shard.replayed, rig.users(project)), (0, 70));
    let runs = std::fs::read_dir(rig.dir.path().join("state/fingerprints").join(partition.to_string())).unwrap();
    let runs = runs.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "run")).count();
    assert!(runs <= 3, "{runs} runs");
}

#[test]
fn a_partition_that_changed_little_waits_longer() {
    let interval = Duration::from_secs(10);
    let mut rig = Rig::new(CheckpointPolicy { events: 1_000, interval }, 1 << 30);
    let (slow, busy) = two();
    let timed_round = |rig: &mut Rig| {
        rig.shard.evict_if_needed();
        rig.shard.checkpoints.checkpointer.round_began = Stopwatch::now().checked_sub(interval).unwrap();
        let next = rig.shard.begin_checkpoints(false);
        rig.go_on(next);
    };
    rig.send(slow, users(slow, 0..3));
    timed_round(&mut rig);
    assert_eq!(rig.saved(slow), 0, "three events are read again in no time");
    rig.send(busy, users(busy, 0..97));
    timed_round(&mut rig);
    assert_eq!((rig.saved(slow), rig.saved(busy)), (3, 0), "but not with a hundred others behind them");
    rig.send(slow, users(slow, 3..4));
    rig.send(busy, users(busy, 97..999));
    let next = rig.shard.begin_checkpoints(false);
    rig.go_on(next);
    assert_eq!((rig.saved(slow), rig.saved(busy)), (101, 1_003), "so many are not even waited for");
    // A single event counts as few, however old the last checkpoint is.
    rig.send(busy, users(busy, 0..999));
    rig.send(slow, users(slow, 4..5));
    rig.shard.evict_if_needed();
    let next = rig.shard.begin_checkpoints(true);
    assert!(next.is_step());
    rig.go_on(next);
    rig.send(slow, users(slow, 5..6));
    assert_eq!(rig.shard.begin_checkpoints(false), Next::Rest);
}

#[test]
fn a_partition_that_changed_little_does_not_wait_for_ever() {
    let mut rig = Rig::new(CheckpointPolicy { events: 1_000, interval: Duration::from_millis(1) }, 1 << 30);
    let project = ProjectId(1);
    rig.send(project, users(project, 0..1));
    rig.shard.evict_if_needed();
    let began = Stopwatch::now();
    let mut next = Next::Rest;
    while next == Next::Rest {
        assert!(began.elapsed() < PATIENCE, "it waits for ever");
        next = rig.shard.begin_checkpoints(false);
    }
    rig.go_on(next);
    assert_eq!(rig.saved(project), 1);
    assert_eq!(rig.progress().longest_unsaved(), None);
}

#[test]
fn a_start_waits_for_checkpoints_before_it_runs_out_of_memory() {
    const MEMORY: usize = 1 << 20;
    let mut rig = Rig::new(NEVER, 1 << 30);
    let project = ProjectId(1);
    for batch in 0..16 {
        rig.send(project, users(project, batch * 500..(batch + 1) * 500));
    }
    rig.shard.evict_if_needed();
    assert!(rig.memory.resident() > 3 * MEMORY, "{} bytes are too few", rig.memory.resident());
    rig.store.change(partition_of(project), |faults| faults.failing_commits = 1);
    let (shard, memory) = open(&rig.dir, rig.log.reader(), &rig.store, NEVER, MEMORY);
    (rig.shard, rig.memory) = (shard, memory);
    assert!(rig.memory.resident() <= MEMORY, "an idle shard keeps what it opened with: {:?}", rig.memory);
    assert_eq!((rig.shard.replayed, rig.users(project)), (8_000, 8_000));
}

#[test]
fn checkpoints_are_urgent_while_somebody_waits_for_them() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, _) = two();
    rig.send(project, users(project, 0..10));
    let next = rig.shard.begin_checkpoints(true);
    assert!(next.is_step() && !rig.shard.is_urgent(), "nobody waits");
    rig.go_on(next);
    rig.send(project, users(project, 10..20));
    rig.shard.want_checkpoints();
    assert!(rig.shard.is_urgent());
    rig.round();
    assert!(!rig.shard.is_urgent(), "it is there");
    rig.send(project, users(project, 20..30));
    let next = rig.shard.drain();
    assert!(next.is_step() && rig.shard.is_urgent(), "a stop waits for it");
    rig.go_on(next);
    assert_eq!(rig.saved(project), 30);
}
