//! A disk that is full: whatever a checkpoint runs into, what was committed before stays, and the
//! store goes on when there is room again. Needs a file system of its own, and says so where it may
//! not mount one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test: a failure is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Check, DiskStore, Store, StoreError, StoreOptions};

const FULL: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };
const DISK_BYTES: usize = 24 << 20;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Disk> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "tmpfs"]).arg(place.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Disk(place)),
            _ => {
                eprintln!("SKIPPED: no file system can be mounted here");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no more than about so many bytes free; `None`: all that are not in use.
    fn leave(&self, bytes: Option<usize>) {
        let filler = self.path().join("filler");
        fs::remove_file(&filler).ok();
        if let Some(bytes) = bytes {
            let mut size = DISK_BYTES.saturating_sub(bytes + used(self.path()));
            while size > 0 && fs::write(&filler, vec![1; size]).is_err() {
                size = size.saturating_sub(64 << 10);
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

fn used(dir: &Path) -> usize {
    let size =
        |path: PathBuf| if path.is_dir() { used(&path) } else { fs::metadata(&path).map_or(0, |about| about.len() as usize) };
    fs::read_dir(dir).unwrap().map(|entry| size(entry.unwrap().path())).sum()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

fn change(random: &mut Random, partition: u16, pairs: &mut Pairs) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut changes = Vec::new();
    for _ in 0..1 + random.below(300) {
        // Some are records, which lie in tables, the others lie in sled.
        let space = [3, 3, 3, 2][random.below(4)];
        let key = [&partition.to_be_bytes()[..], &[space], &random.below(400).to_be_bytes()].concat();
        let value = (random.below(3) > 0).then(|| (0..random.below(6_000)).map(|_| random.below(256) as u8).collect::<Vec<u8>>());
        match &value {
            Some(value) => pairs.insert(key.clone(), value.clone()),
            None => pairs.remove(&key),
        };
        changes.push((key, value));
    }
    changes
}

fn commit(store: &DiskStore, partition: u16, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<(), StoreError> {
    let mut checkpoint = store.begin(PartitionId(partition))?;
    for (key, value) in changes {
        match value {
            Some(value) => checkpoint.put(key, value)?,
            None => checkpoint.delete(key)?,
        }
    }
    checkpoint.commit()
}

/// What a partition holds in one space, or in all of them (0).
fn contents_of(store: &DiskStore, partition: u16, space: u8) -> Result<Pairs, StoreError> {
    let mut pairs = Pairs::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        pairs.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    let prefix = [&partition.to_be_bytes()[..], &[space]].concat();
    store.scan(if space == 0 { &prefix[..2] } else { &prefix }, visit)?;
    Ok(pairs)
}

fn records(pairs: &Pairs) -> Pairs {
    pairs.iter().filter(|(key, _)| key[2] == 3).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Tries again for a while, as those do who use a store.
fn eventually(mut attempt: impl FnMut() -> Result<(), StoreError>) {
    let began = Instant::now();
    while let Err(error) = attempt() {
        assert!(began.elapsed() < Duration::from_secs(20), "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_was_committed_stays_when_the_disk_is_full() {
    let Some(disk) = Disk::mount() else { return };
    let dir = disk.path().join("store");
    let mut random = Random(88_172_645_463_325_252);
    let mut store = Some(DiskStore::open(&dir, FULL).unwrap());
    let mut expected = [Pairs::new(), Pairs::new()];
    let mut refused = BTreeMap::<String, usize>::new();
    let mut failures = 0;
    for round in 0..200 {
        let partition = random.below(2);
        let full = round > 20 && random.below(3) == 0;
        disk.leave(full.then(|| random.below(1 << 20)));
        let mut after = expected[partition].clone();
        let changes = change(&mut random, partition as u16, &mut after);
        let open = store.as_ref().unwrap();
        if let Err(error) = commit(open, partition as u16, &changes) {
            assert!(full || failures > 0, "round {round}: {error}");
            *refused.entry(error.to_string()).or_default() += 1;
            // Records can be read all the while.
            assert!(records(&contents_of(open, partition as u16, 3).unwrap()) == records(&expected[partition]), "round {round}");
            disk.leave(None);
            // The same store goes on, and neither commit counts twice or in part.
            failures += 1;
            eventually(|| {
                contents_of(open, partition as u16, 0).map(|found| assert!(found == expected[partition], "round {round}"))
            });
            eventually(|| commit(open, partition as u16, &changes));
        }
        expected[partition] = after;
        disk.leave(None);
        eventually(|| contents_of(open, partition as u16, 0).map(|found| assert!(found == expected[partition], "round {round}")));
        if random.below(20) == 0 {
            drop(store.take());
            store = Some(DiskStore::open(&dir, FULL).unwrap_or_else(|found| panic!("round {round}: {found}")));
        }
    }
    assert!(refused.keys().any(|error| error.contains("a table")), "{refused:#?}");
    println!("{refused:#?}");
    disk.leave(None);
    drop(store);
    let store = DiskStore::open(&dir, FULL).unwrap();
    store.verify().unwrap();
    for (partition, expected) in (0..).zip(&expected) {
        assert!(contents_of(&store, partition, 0).unwrap() == *expected);
    }
}
