//! Every operation on files fails once, one at a time: nothing is lost or doubled, the store goes
//! on by itself, and a crash at that moment leaves exactly one of the two states.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::files::switch::{Errno, Plan, Switch};
use crate::keyspace::PartitionId;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

const PARTITION: PartitionId = PartitionId(3);
const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };
const ONCE: Plan = Plan { at: 0, failures: 1, errno: Errno::Io, done: false };

/// The ways in which an operation fails.
const WAYS: [Plan; 5] = [
    Plan { errno: Errno::NoSpace, ..ONCE },
    ONCE,
    Plan { errno: Errno::NoSpace, failures: u64::MAX, ..ONCE },
    Plan { failures: u64::MAX, ..ONCE },
    Plan { done: true, ..ONCE },
];

fn key(space: u8, number: u32) -> Vec<u8> {
    [&PARTITION.prefix()[..], &[space], &number.to_be_bytes()].concat()
}

/// Some values in sled, one of them a long one, and some records.
fn changes(round: u32) -> Changes {
    let value = |number: u32, len: usize| Some([&round.to_be_bytes()[..], &vec![number as u8; len]].concat());
    let mut changes = vec![(key(1, 0), value(0, 4)), (key(4, 1), value(1, 7_000)), (key(4, 2 + round % 2), None)];
    changes.extend((0..20).map(|number| (key(3, number * round % 97), value(number, 300))));
    changes.push((key(3, 100 + round), value(1, 1)));
    changes.push((key(3, 99 + round), None));
    changes
}

fn apply(pairs: &mut Pairs, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => pairs.insert(key.clone(), value.clone()),
            None => pairs.remove(key),
        };
    }
}

fn contents(store: &DiskStore) -> Result<Pairs, StoreError> {
    let mut pairs = Pairs::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        pairs.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(&PARTITION.prefix(), visit)?;
    Ok(pairs)
}

fn commit(store: &DiskStore, changes: &Changes) -> Result<(), StoreError> {
    let mut checkpoint = store.begin(PARTITION)?;
    for (key, value) in changes {
        match value {
            Some(value) => checkpoint.put(key, value)?,
            None => checkpoint.delete(key)?,
        }
    }
    checkpoint.commit()
}

/// Tries again for a while, as those do who use a store. Whatever fails is the fault of the disk.
fn eventually<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> T {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error @ StoreError::Io { .. }) if began.elapsed() < Duration::from_secs(20) => {
                tracing::debug!(%error, "again");
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A directory in memory, where there is one: thousands of syncs take their time on a disk.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A store that merges only on request.
fn open(dir: &Path) -> DiskStore {
    let mut store = DiskStore::open(dir, OPTIONS).unwrap();
    store.stop_merging();
    store
}

/// What a process that ended now would leave.
fn after_a_crash(dir: &Path) -> Pairs {
    let copy = scratch();
    copy_dir(dir, &copy.path().join("store"));
    contents(&open(&copy.path().join("store"))).unwrap()
}

/// Fails each operation of `work` in each way, until none is left. Returns how many operations
/// there were.
fn fail_each(prepare: u32, work: impl Fn(&DiskStore) -> Result<(), StoreError>) -> u64 {
    let place = scratch();
    let dir = place.path().join("store");
    let mut store = open(&dir);
    let switch = Switch::arm(&dir, Plan::default());
    let (mut expected, mut round, mut most) = (Pairs::new(), 1, 0);
    for way in WAYS {
        for at in 1.. {
            for _ in 0..prepare {
                eventually(|| commit(&store, &changes(round)));
                apply(&mut expected, &changes(round));
                round += 1;
            }
            let changes = changes(round);
            let mut after = expected.clone();
            apply(&mut after, &changes);
            let failed_before = switch.failed().len();
            switch.rearm(Plan { at, ..way });
            let outcome = work(&store).and_then(|()| commit(&store, &changes));
            let failed = switch.failed()[failed_before..].first().cloned();
            switch.clear();
            let what = format!("{way:?} at {at}: {failed:?}, {outcome:?}");
            assert!(outcome.is_ok() || failed.is_some() && matches!(outcome, Err(StoreError::Io { .. })), "{what}");
            let is_allowed = |found: &Pairs| *found == after || outcome.is_err() && *found == expected;
            if failed.is_some() {
                assert!(is_allowed(&after_a_crash(&dir)), "after a crash, {what}");
            }
            // Of a commit that failed, recovery decides whether it counts, for ever.
            let shown = eventually(|| contents(&store));
            assert!(is_allowed(&shown), "{what}");
            eventually(|| store.recover(PARTITION));
            assert!(eventually(|| contents(&store)) == shown, "recovered, {what}");
            assert!(after_a_crash(&dir) == shown, "recovered, after a crash, {what}");
            eventually(|| commit(&store, &changes));
            assert!(eventually(|| contents(&store)) == after, "again, {what}");
            (expected, round, most) = (after, round + 1, most.max(at));
            if at % 5 == 0 {
                drop(store);
                store = open(&dir);
                assert!(contents(&store).unwrap() == expected, "reopened, {what}");
            }
            if failed.is_none() {
                break;
            }
        }
    }
    store.verify().unwrap();
    store.tables().assert_no_file_is_left_over();
    drop(store);
    let store = open(&dir);
    assert!(contents(&store).unwrap() == expected);
    most
}

#[test]
fn a_checkpoint_survives_each_failure() {
    let operations = fail_each(0, |_| Ok(()));
    assert!(operations > 10, "{operations}");
}

#[test]
fn a_merge_survives_each_failure() {
    // A merge that failed is one that was not made.
    let operations = fail_each(3, |store| store.tables().merge_now(PARTITION).or(Ok(())));
    assert!(operations > 30, "{operations}");
}

/// A failure closes sled for all partitions. Each one's commits are written again until they
/// succeed, and none is lost.
#[test]
fn partitions_that_commit_at_once_survive_each_others_failures() {
    let place = scratch();
    let store = open(&place.path().join("store"));
    let switch = Switch::arm(place.path(), Plan::default());
    let of = |partition: u16, space: u8| [&partition.to_be_bytes()[..], &[space, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]].concat();
    let write = |partition: u16, round: u8| {
        let mut checkpoint = store.begin(PartitionId(partition))?;
        [2, 3].iter().try_for_each(|space| checkpoint.put(&of(partition, *space), &[round; 100]))?;
        checkpoint.commit()
    };
    for round in 1..60 {
        switch.rearm(Plan { at: u64::from(round) % 30, failures: 1 + u64::from(round) % 3, ..ONCE });
        std::thread::scope(|scope| {
            for partition in 0..2 {
                scope.spawn(move || eventually(|| write(partition, round)));
            }
        });
        switch.clear();
        for (partition, space) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            let found = eventually(|| store.get(&of(partition, space)));
            assert_eq!(found, Some(vec![round; 100]), "partition {partition}, space {space}");
        }
    }
    assert!(switch.failed().len() > 20, "{}", switch.failed().len());
    store.verify().unwrap();
}

#[test]
fn a_read_that_failed_can_be_repeated() {
    let place = scratch();
    let store = open(&place.path().join("store"));
    let mut expected = Pairs::new();
    for round in 0..6 {
        commit(&store, &changes(round)).unwrap();
        apply(&mut expected, &changes(round));
    }
    let switch = Switch::arm(place.path(), Plan::default());
    for errno in [Errno::Io, Errno::TooManyFiles] {
        for at in 1.. {
            let failed_before = switch.failed().len();
            switch.rearm(Plan { at, errno, ..ONCE });
            let found = contents(&store);
            assert!(found.as_ref().map_or_else(|error| !error.is_damage(), |found| *found == expected), "{found:?}");
            for (key, value) in expected.iter().step_by(7) {
                let found = store.get(key);
                let sound = found.as_ref().map_or_else(|error| !error.is_damage(), |found| found.as_ref() == Some(value));
                assert!(sound, "{found:?}");
            }
            switch.clear();
            assert!(eventually(|| contents(&store)) == expected);
            if switch.failed().len() == failed_before {
                break;
            }
        }
    }
    drop(store);
    assert!(contents(&open(&place.path().join("store"))).unwrap() == expected);
}
