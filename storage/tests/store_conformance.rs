//! One suite over every store: what a checkpoint promises.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test: a failure is a failed test")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{
    Check, DiskStore, MAX_KEY_BYTES, MAX_PAIR_BYTES, MAX_VALUE_BYTES, MemoryStore, OpenCheckpoint, Store, StoreError,
    StoreOptions, Visit,
};

/// Something that a store can be opened from, again and again, with the same contents.
trait Place {
    fn open(&mut self) -> Arc<dyn Store>;

    /// The largest value.
    fn longest(&self) -> usize {
        MAX_VALUE_BYTES
    }
}

struct InMemory(MemoryStore);

impl Place for InMemory {
    fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };

struct OnDisk(tempfile::TempDir);

impl Place for OnDisk {
    fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(DiskStore::open(&self.0.path().join("store"), OPTIONS).unwrap())
    }
}

/// As [`OnDisk`], with all keys that leave room for it in one space.
struct InSpace(tempfile::TempDir, u8);

impl Place for InSpace {
    fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(Shifted(DiskStore::open(&self.0.path().join("store"), OPTIONS).unwrap(), self.1))
    }

    fn longest(&self) -> usize {
        if self.1 == CELLS { MAX_PAIR_BYTES } else { MAX_VALUE_BYTES }
    }
}

/// The space of parts of rollups, which lie in sled, and that of records, which lie in tables.
const CELLS: u8 = 2;
const RECORDS: u8 = 3;

struct Shifted(DiskStore, u8);

fn shift(key: &[u8], space: u8) -> Vec<u8> {
    match key.split_at_checked(2) {
        Some((partition, name)) if key.len() < MAX_KEY_BYTES => [partition, &[space], name].concat(),
        _ => key.to_vec(),
    }
}

impl Store for Shifted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(&shift(key, self.1))
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let prefix = if prefix.len() > 2 { shift(prefix, self.1) } else { prefix.to_vec() };
        self.0.scan(&prefix, &mut |key, value| match key.get(2) {
            Some(space) if *space == self.1 => visit(&[&key[..2], &key[3..]].concat(), value),
            _ => visit(key, value),
        })
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError> {
        Ok(Box::new(ShiftedCheckpoint(self.0.begin(partition)?, self.1)))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        self.0.recover(partition)
    }
}

struct ShiftedCheckpoint(Box<dyn OpenCheckpoint>, u8);

impl OpenCheckpoint for ShiftedCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.0.put(&shift(key, self.1), value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.0.delete(&shift(key, self.1))
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.0.commit()
    }
}

/// Makes a test per store of each function of the suite.
macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&mut super::InMemory(super::MemoryStore::new())); })*
        }
        mod disk {
            $(#[test] fn $name() { super::$name(&mut super::OnDisk(tempfile::tempdir().unwrap())); })*
        }
        mod disk_records {
            $(#[test] fn $name() { super::$name(&mut super::InSpace(tempfile::tempdir().unwrap(), super::RECORDS)); })*
        }
        mod disk_cells {
            $(#[test] fn $name() { super::$name(&mut super::InSpace(tempfile::tempdir().unwrap(), super::CELLS)); })*
        }
    };
}

suite!(
    a_commit_shows_all_of_it_and_stays,
    nothing_shows_before_the_commit,
    a_dropped_checkpoint_never_was,
    the_last_change_of_a_key_counts,
    to_recover_a_partition_changes_nothing_that_was_committed,
    deleting,
    a_scan_visits_a_prefix_in_order,
    a_scan_sees_one_state,
    long_values_come_and_go,
    partitions_are_independent,
    partitions_commit_in_parallel,
    readers_never_see_half_of_a_checkpoint,
    what_is_not_allowed_is_refused,
    random_checkpoints_equal_a_map,
    spaces_of_one_partition_are_scanned_in_order,
);

const PARTITION: PartitionId = PartitionId(3);

fn key(name: &str) -> Vec<u8> {
    [PARTITION.prefix().as_slice(), name.as_bytes()].concat()
}

fn put(store: &dyn Store, pairs: &[(&str, &[u8])]) {
    let mut checkpoint = store.begin(PARTITION).unwrap();
    for (name, value) in pairs {
        checkpoint.put(&key(name), value).unwrap();
    }
    checkpoint.commit().unwrap();
}

fn get(store: &dyn Store, name: &str) -> Option<Vec<u8>> {
    store.get(&key(name)).unwrap()
}

fn contents(store: &dyn Store, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    store.scan(prefix, visit).unwrap();
    found
}

fn names(store: &dyn Store, prefix: &str) -> Vec<String> {
    let name = |(key, _): (Vec<u8>, _)| String::from_utf8(key[2..].to_vec()).unwrap();
    contents(store, &key(prefix)).into_iter().map(name).collect()
}

fn a_commit_shows_all_of_it_and_stays(place: &mut dyn Place) {
    for round in 0..3_u8 {
        let store = place.open();
        if round > 0 {
            assert_eq!(get(&*store, "position"), Some(vec![round - 1]));
        }
        put(&*store, &[("a", b"1"), ("b", b""), ("position", &[round])]);
        drop(store);
        let store = place.open();
        assert_eq!(get(&*store, "a"), Some(b"1".to_vec()));
        assert_eq!(get(&*store, "b"), Some(vec![]));
        assert_eq!(get(&*store, "position"), Some(vec![round]));
        assert_eq!(get(&*store, "c"), None);
    }
}

fn nothing_shows_before_the_commit(place: &mut dyn Place) {
    let store = place.open();
    put(&*store, &[("a", b"old"), ("gone", b"old")]);
    let mut checkpoint = store.begin(PARTITION).unwrap();
    checkpoint.put(&key("a"), b"new").unwrap();
    checkpoint.put(&key("b"), b"new").unwrap();
    checkpoint.delete(&key("gone")).unwrap();
    assert_eq!(get(&*store, "a"), Some(b"old".to_vec()));
    assert_eq!(names(&*store, ""), ["a", "gone"]);
    checkpoint.commit().unwrap();
    assert_eq!(get(&*store, "a"), Some(b"new".to_vec()));
    assert_eq!(names(&*store, ""), ["a", "b"]);
}

fn a_dropped_checkpoint_never_was(place: &mut dyn Place) {
    let store = place.open();
    put(&*store, &[("a", b"old"), ("b", b"old")]);
    let mut checkpoint = store.begin(PARTITION).unwrap();
    checkpoint.put(&key("a"), b"dropped").unwrap();
    checkpoint.put(&key("c"), &vec![7; place.longest().min(1 << 20)]).unwrap();
    checkpoint.delete(&key("b")).unwrap();
    drop(checkpoint);
    assert_eq!(names(&*store, ""), ["a", "b"]);
    put(&*store, &[("d", b"new")]);
    drop(store);
    let store = place.open();
    assert_eq!(names(&*store, ""), ["a", "b", "d"]);
    assert_eq!(get(&*store, "a"), Some(b"old".to_vec()));
}

fn to_recover_a_partition_changes_nothing_that_was_committed(place: &mut dyn Place) {
    let store = place.open();
    let partition = PartitionId(0);
    store.recover(partition).unwrap();
    let committed = || contents(&*store, &[0, 0]);
    let mut checkpoint = store.begin(partition).unwrap();
    checkpoint.put(&[0, 0, 7], b"one").unwrap();
    checkpoint.commit().unwrap();
    let before = committed();
    let mut given_up = store.begin(partition).unwrap();
    given_up.put(&[0, 0, 8], b"two").unwrap();
    assert!(matches!(store.recover(partition), Err(StoreError::Busy { .. })));
    drop(given_up);
    store.recover(partition).unwrap();
    assert_eq!(committed(), before);
}

fn the_last_change_of_a_key_counts(place: &mut dyn Place) {
    let store = place.open();
    let long = vec![1; place.longest().min(100_000)];
    put(&*store, &[("a", &long), ("b", b"1")]);
    let mut checkpoint = store.begin(PARTITION).unwrap();
    for (name, value) in [("a", &b"short"[..]), ("a", &long), ("b", &long), ("a", b"end")] {
        checkpoint.put(&key(name), value).unwrap();
    }
    checkpoint.delete(&key("b")).unwrap();
    checkpoint.delete(&key("c")).unwrap();
    checkpoint.put(&key("c"), b"after all").unwrap();
    checkpoint.commit().unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(get(&*store, "a"), Some(b"end".to_vec()));
    assert_eq!(names(&*store, ""), ["a", "c"]);
}

fn deleting(place: &mut dyn Place) {
    let store = place.open();
    put(&*store, &[("a", b"1"), ("b", b"2")]);
    let mut checkpoint = store.begin(PARTITION).unwrap();
    checkpoint.delete(&key("a")).unwrap();
    checkpoint.delete(&key("never there")).unwrap();
    checkpoint.commit().unwrap();
    assert_eq!(get(&*store, "a"), None);
    drop(store);
    let store = place.open();
    assert_eq!(names(&*store, ""), ["b"]);
    put(&*store, &[("a", b"again")]);
    assert_eq!(get(&*store, "a"), Some(b"again".to_vec()));
}

fn a_scan_visits_a_prefix_in_order(place: &mut dyn Place) {
    let store = place.open();
    put(&*store, &[("m/2", b""), ("n", b""), ("m/10", b""), ("m", b""), ("l", b""), ("m/\u{7f}", b"")]);
    assert_eq!(names(&*store, "m/"), ["m/10", "m/2", "m/\u{7f}"]);
    assert_eq!(names(&*store, ""), ["l", "m", "m/10", "m/2", "m/\u{7f}", "n"]);
    let mut seen = 0;
    let visit = &mut |_: &[u8], _: &[u8]| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.scan(&key("m"), visit).unwrap();
    assert_eq!(seen, 2);
}

fn a_scan_sees_one_state(place: &mut dyn Place) {
    let store = place.open();
    let all: Vec<String> = (0..2_000).map(|number| format!("{number:04}")).collect();
    let write = |value: &[u8]| put(&*store, &all.iter().map(|name| (name.as_str(), value)).collect::<Vec<_>>());
    write(b"old");
    std::thread::scope(|scope| {
        let mut writer = None;
        let mut values = Vec::new();
        let visit = &mut |_: &[u8], value: &[u8]| {
            if values.len() == 10 {
                writer = Some(scope.spawn(|| write(b"new")));
            }
            if values.len() % 200 == 10 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            values.push(value.to_vec());
            ControlFlow::Continue(())
        };
        store.scan(&PARTITION.prefix(), visit).unwrap();
        assert_eq!(values.len(), all.len());
        assert!(values.iter().all(|value| value == b"old"));
        writer.unwrap().join().unwrap();
    });
    assert_eq!(get(&*store, "0000"), Some(b"new".to_vec()));
}

fn long_values_come_and_go(place: &mut dyn Place) {
    let store = place.open();
    let value = |len: usize| (0..len).map(|at| (at * 31 % 251) as u8).collect::<Vec<_>>();
    let longest = place.longest().min(5_000_001);
    for len in [4_095, 4_096, 4_097, longest.min(65_536), longest] {
        put(&*store, &[("a", &value(len)), ("b", b"beside")]);
        assert_eq!(get(&*store, "a"), Some(value(len)));
    }
    drop(store);
    let store = place.open();
    assert_eq!(get(&*store, "a"), Some(value(longest)));
    assert_eq!(names(&*store, ""), ["a", "b"]);
    put(&*store, &[("a", b"short")]);
    assert_eq!(get(&*store, "a"), Some(b"short".to_vec()));
}

fn partitions_are_independent(place: &mut dyn Place) {
    let store = place.open();
    let (first, second) = (PartitionId(0x00ff), PartitionId(0x0100));
    let mut one = store.begin(first).unwrap();
    let mut other = store.begin(second).unwrap();
    assert!(matches!(store.begin(first), Err(StoreError::Busy { partition }) if partition == first));
    one.put(&[0x00, 0xff, 0xff], b"one").unwrap();
    other.put(&[0x01, 0x00], b"other").unwrap();
    other.commit().unwrap();
    assert_eq!(store.get(&[0x00, 0xff, 0xff]).unwrap(), None);
    assert_eq!(store.get(&[0x01, 0x00]).unwrap(), Some(b"other".to_vec()));
    drop(one);
    store.begin(first).unwrap().commit().unwrap();
}

fn partitions_commit_in_parallel(place: &mut dyn Place) {
    let store = place.open();
    let at = |partition: u16, number: u32| [&partition.to_be_bytes()[..], &number.to_be_bytes()].concat();
    std::thread::scope(|scope| {
        for partition in 0..8_u16 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..5_u8 {
                    let mut checkpoint = store.begin(PartitionId(partition)).unwrap();
                    for number in 0..500 {
                        checkpoint.put(&at(partition, number), &[round; 40]).unwrap();
                    }
                    checkpoint.commit().unwrap();
                }
            });
        }
    });
    drop(store);
    let store = place.open();
    for partition in 0..8_u16 {
        let mut count = 0;
        let visit = &mut |_: &[u8], value: &[u8]| {
            assert_eq!(value, [4; 40]);
            count += 1;
            ControlFlow::Continue(())
        };
        store.scan(&partition.to_be_bytes(), visit).unwrap();
        assert_eq!(count, 500);
    }
}

fn readers_never_see_half_of_a_checkpoint(place: &mut dyn Place) {
    let store = place.open();
    let all: Vec<String> = (0..300).map(|number| format!("{number:04}")).collect();
    let write = |value: &[u8]| put(&*store, &all.iter().map(|name| (name.as_str(), value)).collect::<Vec<_>>());
    write(&[0]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let mut values = Vec::new();
                let visit = &mut |_: &[u8], value: &[u8]| {
                    values.push(value[0]);
                    ControlFlow::Continue(())
                };
                store.scan(&PARTITION.prefix(), visit).unwrap();
                assert_eq!(values.len(), all.len());
                assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
                // The last key of a checkpoint is visible with the first one.
                let [first, end] = ["0000", "0299"].map(|name| get(&*store, name).unwrap()[0]);
                assert!(values[0] >= last && end >= first);
                last = values[0];
            }
        });
        for round in 1..40 {
            write(&[round]);
        }
        done.store(true, Ordering::Relaxed);
    });
}

fn what_is_not_allowed_is_refused(place: &mut dyn Place) {
    let store = place.open();
    assert!(matches!(store.get(&[1]), Err(StoreError::Key { .. })));
    assert!(matches!(store.scan(&[], &mut |_, _| ControlFlow::Break(())), Err(StoreError::Key { .. })));
    let mut checkpoint = store.begin(PARTITION).unwrap();
    assert!(matches!(checkpoint.put(&[0, 4, 1], b""), Err(StoreError::Key { .. })));
    assert!(matches!(checkpoint.delete(&[0]), Err(StoreError::Key { .. })));
    let longest = key(&"k".repeat(MAX_KEY_BYTES - 2));
    checkpoint.put(&longest, b"1").unwrap();
    assert!(matches!(checkpoint.put(&[longest, vec![1]].concat(), b""), Err(StoreError::Key { .. })));
    let too_large = vec![0; place.longest() + 1];
    assert!(matches!(checkpoint.put(&key("a"), &too_large), Err(StoreError::TooLarge { .. })));
    checkpoint.commit().unwrap();
    assert_eq!(names(&*store, "").len(), 1);
}

fn random_checkpoints_equal_a_map(place: &mut dyn Place) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut expected = BTreeMap::new();
    let mut store = place.open();
    for _ in 0..60 {
        let mut checkpoint = store.begin(PARTITION).unwrap();
        let mut wanted = expected.clone();
        for _ in 0..next(60) {
            let name = format!("{}", next(100));
            if next(4) == 0 {
                checkpoint.delete(&key(&name)).unwrap();
                wanted.remove(&name);
            } else {
                let len = if next(10) == 0 { place.longest().min(20_000) as u64 } else { 50 };
                let value = vec![next(256) as u8; next(len) as usize];
                checkpoint.put(&key(&name), &value).unwrap();
                wanted.insert(name, value);
            }
        }
        if next(4) > 0 {
            checkpoint.commit().unwrap();
            expected = wanted;
        } else {
            drop(checkpoint);
        }
        if next(6) == 0 {
            drop(store);
            store = place.open();
        }
        let expected = expected.iter().map(|(name, value): (&String, &Vec<u8>)| (key(name), value.clone()));
        assert_eq!(contents(&*store, &PARTITION.prefix()), expected.collect::<Vec<_>>());
    }
}

/// Keys of every space, which may lie in different places.
fn spaces_of_one_partition_are_scanned_in_order(place: &mut dyn Place) {
    let pairs: BTreeMap<Vec<u8>, Vec<u8>> = (0..400_u16)
        .map(|number| ([&PARTITION.prefix()[..], &[1 + number as u8 % 4], &number.to_be_bytes()].concat(), vec![number as u8]))
        .collect();
    let store = place.open();
    for half in 0..2 {
        let mut checkpoint = store.begin(PARTITION).unwrap();
        for (key, value) in pairs.iter().skip(half).step_by(2) {
            checkpoint.put(key, value).unwrap();
        }
        checkpoint.commit().unwrap();
    }
    drop(store);
    let store = place.open();
    for stop_after in [1, 99, 100, 101, 200, 299, 300, 301, 400, 500] {
        let mut found = Vec::new();
        let visit = &mut |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            if found.len() == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.scan(&PARTITION.prefix(), visit).unwrap();
        assert!(pairs.clone().into_iter().take(stop_after).eq(found), "{stop_after}");
    }
    for space in 1..5 {
        let mut count = 0;
        let prefix = [&PARTITION.prefix()[..], &[space]].concat();
        let visit = &mut |key: &[u8], _: &[u8]| {
            assert!(key.starts_with(&prefix));
            count += 1;
            ControlFlow::Continue(())
        };
        store.scan(&prefix, visit).unwrap();
        assert_eq!(count, 100);
    }
}
