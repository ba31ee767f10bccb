//! Counts on one machine, in files, and counts of partitions that move.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::DocumentsError;
use headcount_common::local::{LocalValues, MemoryValues};
use headcount_storage::files::switch::{Plan, Switch};

use super::*;

const NOW: Instant = Instant(1_790_000_000_000);
const PROJECT: ProjectId = ProjectId(7);

fn today() -> Day {
    Timezone::UTC.day_of(NOW)
}

fn bots(bot: u64) -> DropCounts {
    DropCounts { bot, ..DropCounts::default() }
}

fn open(dir: &Path, now: Instant, known: Instant) -> CountsResult<IntakeCounts> {
    let values = LocalValues::of_partitions(dir).map_err(|error| DocumentsError::Unavailable(error.to_string()))?;
    let counts = IntakeCounts::new(Arc::new(values), false).unwrap();
    counts.take(0, 1, now, known).map(|()| counts)
}

fn of(counts: &IntakeCounts, days: u32) -> (u64, bool) {
    let (sum, approximate) = counts.of(PROJECT, Window::last_days(days, Timezone::UTC, NOW), Timezone::UTC).unwrap();
    (sum.bot, approximate)
}

/// Values in memory, some of whose writes get no answer.
#[derive(Debug)]
struct Values {
    memory: MemoryValues,
    is_silent: AtomicBool,
    max_bytes: usize,
}

impl SharedValues for Values {
    fn read(&self, key: &str) -> CountsResult<Option<(Vec<u8>, u64)>> {
        self.memory.read(key)
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> CountsResult<u64> {
        assert!(value.len() <= self.max_bytes, "{key} has {} bytes", value.len());
        let written = self.memory.write(key, value, revision);
        if self.is_silent.load(Ordering::SeqCst) { Err(DocumentsError::Undecided("no answer".to_owned())) } else { written }
    }

    fn remove(&self, key: &str) -> CountsResult<()> {
        self.memory.remove(key)
    }

    fn keys(&self, prefix: &str) -> CountsResult<Vec<String>> {
        self.memory.keys(prefix)
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

fn values(max_bytes: usize) -> Arc<Values> {
    Arc::new(Values { memory: MemoryValues::new(Duration::MAX), is_silent: AtomicBool::new(false), max_bytes })
}

/// The counts of a node.
fn node(values: &Arc<Values>) -> IntakeCounts {
    IntakeCounts::new(Arc::<Values>::clone(values), true).unwrap()
}

#[test]
fn counts_stay_after_an_end_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let counts = open(dir.path(), NOW, NOW).unwrap();
    counts.add(PROJECT, today(), &bots(3));
    counts.add(PROJECT, today().plus(-1), &bots(4));
    counts.add(ProjectId(8), today(), &bots(100));
    assert_eq!((of(&counts, 1), of(&counts, 2)), ((3, false), (7, false)));
    counts.flush(NOW, NOW).unwrap();
    counts.add(PROJECT, today(), &bots(1));
    assert_eq!(of(&counts, 2), (8, false));
    counts.close().unwrap();
    assert_eq!(of(&open(dir.path(), NOW, NOW).unwrap(), 2), (8, false));
}

#[test]
fn a_crash_is_reported_for_its_days_only() {
    let dir = tempfile::tempdir().unwrap();
    let earlier = NOW.plus_ms(-10 * MS_PER_DAY);
    let counts = open(dir.path(), earlier, earlier).unwrap();
    counts.add(PROJECT, Timezone::UTC.day_of(earlier), &bots(3));
    counts.flush(earlier, earlier).unwrap();
    drop(counts);
    let counts = open(dir.path(), earlier.plus_ms(1_000), earlier).unwrap();
    assert_eq!((of(&counts, 11), of(&counts, 10)), ((3, true), (0, false)));
    counts.close().unwrap();
    let counts = open(dir.path(), NOW, NOW).unwrap();
    assert_eq!((of(&counts, 11), of(&counts, 10)), ((3, true), (0, false)));
}

#[test]
fn a_damaged_day_is_removed_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let counts = open(dir.path(), NOW, NOW).unwrap();
    counts.add(PROJECT, today(), &bots(3));
    counts.flush(NOW, NOW).unwrap();
    let path = dir.path().join(format!("{}.json", today()));
    let text = std::fs::read_to_string(&path).unwrap().replace("\"bot\":3", "\"bot\":4");
    std::fs::write(&path, text).unwrap();
    assert_eq!((of(&counts, 1), path.exists()), ((0, true), false));
    counts.add(PROJECT, today(), &bots(2));
    counts.flush(NOW, NOW).unwrap();
    assert_eq!(of(&counts, 1), (2, true));
    std::fs::write(dir.path().join("running.json"), "{").unwrap();
    let counts = open(dir.path(), NOW, NOW).unwrap();
    let old = Window::last_days(1, Timezone::UTC, NOW.plus_ms(-360 * MS_PER_DAY));
    assert!(counts.of(PROJECT, old, Timezone::UTC).unwrap().1, "the time of the mark is unknown");
}

#[test]
fn gaps_and_days_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    for second in 0..300 {
        drop(open(dir.path(), NOW.plus_ms(second * 1_000), NOW).unwrap());
    }
    let counts = open(dir.path(), NOW, NOW).unwrap();
    assert_eq!(counts.read::<Vec<Gap>>(0, GAPS).unwrap().0.unwrap().len(), MAX_GAPS);
    assert!(of(&counts, 1).1);
    counts.add(PROJECT, today(), &bots(1));
    counts.close().unwrap();
    let later = NOW.plus_ms(400 * MS_PER_DAY);
    let days = |counts: &IntakeCounts| counts.days(0).unwrap().len();
    // A clock that is not believed removes nothing.
    assert_eq!(days(&open(dir.path(), later, NOW).unwrap()), 1);
    assert_eq!(days(&open(dir.path(), later, later).unwrap()), 0);
}

/// Each operation fails once: no count is lost or counted twice, and a proper end is no gap.
#[test]
fn every_operation_may_fail() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), NOW, NOW).unwrap().close().unwrap();
    let mut failed = 0;
    for nth in 1..200 {
        let switch = Switch::arm(dir.path(), Plan { at: nth, ..Plan::default() });
        let (mut opened, mut tries) = (open(dir.path(), NOW, NOW), 1);
        while opened.is_err() {
            (opened, tries) = (open(dir.path(), NOW, NOW), tries + 1);
        }
        let counts = opened.unwrap();
        counts.add(PROJECT, today(), &bots(1));
        while counts.flush(NOW, NOW).is_err() {}
        let window = Window::last_days(1, Timezone::UTC, NOW);
        let read = std::iter::repeat_with(|| counts.of(PROJECT, window, Timezone::UTC)).find_map(Result::ok);
        assert_eq!(read.unwrap().0.bot, nth);
        while counts.close().is_err() {}
        let done = switch.failed().is_empty();
        drop(switch);
        let counts = open(dir.path(), NOW, NOW).unwrap();
        failed += u64::from(!done);
        // A start that failed may have left its mark.
        assert_eq!(of(&counts, 1), (nth, of(&counts, 1).1 && tries > 1), "after failure {nth}");
        counts.close().unwrap();
        counts.values.remove(GAPS).unwrap();
        if done {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn counts_follow_a_partition() {
    let (values, partition) = (values(1 << 20), partition_of(PROJECT));
    let [first, next] = [node(&values), node(&values)];
    first.take(partition, 1, NOW, NOW).unwrap();
    first.add(PROJECT, today(), &bots(3));
    first.give(partition).unwrap();
    next.take(partition, 2, NOW, NOW).unwrap();
    next.add(PROJECT, today(), &bots(4));
    assert_eq!(of(&next, 1), (7, false));
    // What a request counts when the partition is gone is added, not lost.
    first.add(PROJECT, today(), &bots(5));
    first.flush(NOW, NOW).unwrap();
    next.flush(NOW, NOW).unwrap();
    assert_eq!((of(&next, 1), of(&first, 1)), ((12, false), (12, false)));
    assert_eq!(next.days(next.scope_of(partition)).unwrap().len(), 1);
}

#[test]
fn a_takeover_after_a_kill_is_reported_for_its_days_only() {
    let (values, partition) = (values(1 << 20), partition_of(PROJECT));
    let killed_at = NOW.plus_ms(-2 * MS_PER_DAY);
    let [first, next, last] = [node(&values), node(&values), node(&values)];
    first.take(partition, 1, killed_at, killed_at).unwrap();
    first.add(PROJECT, Timezone::UTC.day_of(killed_at), &bots(3));
    first.flush(killed_at, killed_at).unwrap();
    first.add(PROJECT, Timezone::UTC.day_of(killed_at), &bots(1));
    next.take(partition, 2, killed_at.plus_ms(15_000), killed_at).unwrap();
    assert_eq!((of(&next, 3), of(&next, 2)), ((3, true), (0, false)));
    // The former owner was only halted. It adds its last counts, and leaves the mark of the next.
    first.give(partition).unwrap();
    assert_eq!((of(&next, 3), of(&next, 2)), ((4, true), (0, false)));
    drop(next);
    last.take(partition, 3, NOW, NOW).unwrap();
    assert_eq!(of(&last, 1), (0, true), "the second owner died, too");
    first.take(partition, 2, NOW, NOW).unwrap();
    first.give(partition).unwrap();
    let mark = last.read::<OwnerMark>(last.scope_of(partition), MARK).unwrap().0.unwrap();
    assert_eq!((mark.epoch, mark.at), (3, Some(NOW)), "an owner of an epoch that is over changes nothing");
}

/// The addition is made once, whether or not others add to the day before its outcome is known.
#[test]
fn an_addition_without_an_answer_counts_once() {
    let (values, partition) = (values(1 << 20), partition_of(PROJECT));
    let [first, next] = [node(&values), node(&values)];
    first.take(partition, 1, NOW, NOW).unwrap();
    first.add(PROJECT, today(), &bots(3));
    values.is_silent.store(true, Ordering::SeqCst);
    assert!(first.flush(NOW, NOW).is_err());
    values.is_silent.store(false, Ordering::SeqCst);
    first.add(PROJECT, today(), &bots(1));
    assert_eq!(of(&first, 1), (4, false));
    for _ in 0..20 {
        next.add(PROJECT, today(), &bots(1));
        next.flush(NOW, NOW).unwrap();
    }
    first.give(partition).unwrap();
    assert_eq!((of(&first, 1), of(&next, 1)), ((24, false), (24, false)));
}

#[test]
fn an_owner_that_could_not_write_its_mark_says_so_until_it_has() {
    let (values, partition) = (values(1 << 20), partition_of(PROJECT));
    let counts = node(&values);
    values.is_silent.store(true, Ordering::SeqCst);
    assert!(counts.take(partition, 1, NOW, NOW).is_err());
    assert!(of(&counts, 1).1);
    values.is_silent.store(false, Ordering::SeqCst);
    counts.flush(NOW, NOW).unwrap();
    assert_eq!(of(&counts, 1), (0, false), "its own mark is no gap");
}

#[test]
fn a_day_without_room_keeps_the_projects_that_it_has() {
    let values = values(250);
    let counts = node(&values);
    let other = (8..).map(ProjectId).find(|other| partition_of(*other) == partition_of(PROJECT)).unwrap();
    counts.add(PROJECT, today(), &bots(1));
    counts.flush(NOW, NOW).unwrap();
    assert_eq!(of(&counts, 1), (1, false));
    for _ in 0..2 {
        counts.add(PROJECT, today(), &bots(1));
        counts.add(other, today(), &bots(1));
        counts.flush(NOW, NOW).unwrap();
    }
    assert_eq!(of(&counts, 1), (3, true));
    assert_eq!(counts.of(other, Window::last_days(1, Timezone::UTC, NOW), Timezone::UTC).unwrap(), (DropCounts::default(), true));
}
