//! Crashes: a copy of a half-written store, and real processes that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test: a failure is a failed test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Check, DiskStore, Store, StoreOptions};

const FULL: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };
const PARTITIONS: u16 = 3;

/// The position and the short names lie in sled, as parts of rollups; everything else lies in
/// tables, as records.
fn key(partition: u16, name: &str) -> Vec<u8> {
    let space = if name == "position" || name.len() == 1 { 2 } else { 3 };
    [&partition.to_be_bytes()[..], &[space], name.as_bytes()].concat()
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

/// What crash number `round` leaves is what was committed before it; then the store goes on.
#[test]
fn a_half_written_checkpoint_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut dir = place.path().join("0");
    for round in 1..6_u8 {
        let store = DiskStore::open(&dir, FULL).unwrap();
        let mut checkpoint = store.begin(PartitionId(0)).unwrap();
        for name in ["a", "b", "c"] {
            checkpoint.put(&key(0, name), &vec![round; 7_000]).unwrap();
        }
        checkpoint.put(&key(0, &format!("only in {round}")), b"").unwrap();
        checkpoint.commit().unwrap();
        let mut half = store.begin(PartitionId(0)).unwrap();
        half.put(&key(0, "a"), &vec![99; 7 << 10]).unwrap();
        half.put(&key(0, "half"), &vec![99; 3 << 20]).unwrap();
        half.delete(&key(0, "b")).unwrap();
        let copy = place.path().join(format!("{round}"));
        copy_dir(&dir, &copy);
        drop(half);
        drop(store);
        dir = copy;
        let store = DiskStore::open(&dir, FULL).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(store.get(&key(0, name)).unwrap(), Some(vec![round; 7_000]));
        }
        assert_eq!(store.get(&key(0, "half")).unwrap(), None);
        for earlier in 1..=round {
            assert!(store.get(&key(0, &format!("only in {earlier}"))).unwrap().is_some());
        }
    }
}

/// Not a test of its own: the process that [`killed_processes_leave_whole_checkpoints`] kills.
#[test]
#[ignore = "run by killed_processes_leave_whole_checkpoints"]
fn child() {
    let Ok(dir) = std::env::var("HEADCOUNT_CRASH_DIR") else { return };
    let store = DiskStore::open(Path::new(&dir), FULL).unwrap();
    println!("opened");
    std::thread::scope(|scope| {
        for partition in 0..PARTITIONS {
            let store = &store;
            scope.spawn(move || write_for_ever(store, partition));
        }
    });
}

fn write_for_ever(store: &DiskStore, partition: u16) {
    let last = store.get(&key(partition, "position")).unwrap();
    let mut position = last.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
    loop {
        position += 1;
        let mut checkpoint = store.begin(PartitionId(partition)).unwrap();
        checkpoint.put(&key(partition, "position"), &position.to_be_bytes()).unwrap();
        for number in 0..200 {
            let len = if number == 7 { 50_000 } else { 60 };
            let value = [&position.to_be_bytes()[..], &vec![1; len]].concat();
            checkpoint.put(&key(partition, &format!("value {number}")), &value).unwrap();
            if number % 10 == 0 {
                let part = [&partition.to_be_bytes()[..], &[2], format!("part {number}").as_bytes()].concat();
                checkpoint.put(&part, &value).unwrap();
            }
        }
        // Each checkpoint has a key of its own, which the next one removes.
        checkpoint.put(&key(partition, &format!("mark {position}")), b"").unwrap();
        checkpoint.delete(&key(partition, &format!("mark {}", position - 1))).unwrap();
        checkpoint.commit().unwrap();
        println!("committed {partition} {position}");
    }
}

#[test]
fn killed_processes_leave_whole_checkpoints() {
    let place = tempfile::tempdir().unwrap();
    let mut committed = vec![0_u64; usize::from(PARTITIONS)];
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env("HEADCOUNT_CRASH_DIR", place.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("opened")));
        std::thread::sleep(Duration::from_millis(40 + 37 * round % 200));
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it died counts; a line that it did not finish doesn't.
        for line in lines.map_while(Result::ok) {
            if let [_, partition, position] = line.split(' ').collect::<Vec<_>>()[..]
                && let (Ok(partition), Ok(position)) = (partition.parse::<usize>(), position.parse::<u64>())
            {
                committed[partition] = committed[partition].max(position);
            }
        }
        let store = DiskStore::open(place.path(), FULL).unwrap();
        for partition in 0..PARTITIONS {
            let position = store.get(&key(partition, "position")).unwrap();
            let position = position.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
            assert!(position >= committed[usize::from(partition)], "partition {partition}: {position} of {committed:?}");
            whole(&store, partition, position);
        }
    }
    assert!(committed.iter().all(|position| *position > 12), "{committed:?}");
}

/// Everything in the partition is of this one checkpoint.
fn whole(store: &DiskStore, partition: u16, position: u64) {
    let mut marks = Vec::new();
    let mut values = 0;
    let visit = &mut |key: &[u8], value: &[u8]| {
        let name = String::from_utf8(key[2..].to_vec()).unwrap().trim_start_matches(['\u{2}', '\u{3}']).to_owned();
        if name.starts_with("value") || name.starts_with("part") {
            assert_eq!(value[..8], position.to_be_bytes(), "{name} in partition {partition}");
            values += 1;
        } else if name.starts_with("mark") {
            marks.push(name);
        }
        ControlFlow::Continue(())
    };
    store.scan(&partition.to_be_bytes(), visit).unwrap();
    if position > 0 {
        assert_eq!(values, 220);
        assert_eq!(marks, [format!("mark {position}")]);
    }
}
