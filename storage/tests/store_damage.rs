//! Damaged files: whatever happens to them, an opening store holds what was committed, or says that
//! it doesn't.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test: a failure is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Check, DiskStore, Store, StoreError, StoreOptions};

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

const PARTITIONS: u16 = 4;
const FULL: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };

/// xorshift: the same damage at every run, unless set otherwise.
struct Random(u64);

impl Random {
    fn next(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Writes some checkpoints in two sittings, so that sled has both a snapshot and a log to replay.
fn fill(dir: &Path, random: &mut Random) -> Pairs {
    let mut pairs = Pairs::new();
    for _sitting in 0..2 {
        let store = DiskStore::open(dir, FULL).unwrap();
        for round in 0..12 {
            let partition = PartitionId(round % PARTITIONS);
            let mut checkpoint = store.begin(partition).unwrap();
            for _ in 0..400 {
                // Half of them records, half parts of rollups: those lie in different files.
                let number = random.next(2_000);
                let key = [&partition.prefix()[..], &[2 + number as u8 % 2], &number.to_be_bytes()].concat();
                let len = if random.next(100) == 0 { 7_000 } else { 100 };
                let value = vec![random.next(256) as u8; len];
                checkpoint.put(&key, &value).unwrap();
                pairs.insert(key, value);
            }
            checkpoint.commit().unwrap();
        }
    }
    pairs
}

fn contents(store: &DiskStore) -> Result<Pairs, StoreError> {
    let mut pairs = Pairs::new();
    for partition in 0..PARTITIONS {
        store.scan(&partition.to_be_bytes(), &mut |key, value| {
            pairs.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        })?;
    }
    Ok(pairs)
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

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.metadata().unwrap().len() > 0 {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn flip(path: &Path, at: u64, with: u8) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ with], at).unwrap();
}

#[derive(Debug, Default)]
struct Tally {
    unharmed: u32,
    reset: u32,
    lost_without_the_full_check: u32,
    by_reason: BTreeMap<String, u32>,
}

/// Opens a damaged copy: it must be what was committed, or have been reset. Nothing may hang.
fn examine(dir: PathBuf, expected: Pairs, tally: &mut Tally, what: &str) {
    let quick = dir.with_extension("quick");
    copy_dir(&dir, &quick);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let unnoticed = match DiskStore::open(&quick, StoreOptions { check: Check::Quick, ..FULL }) {
            Ok(store) => contents(&store).is_ok_and(|found| found != expected),
            Err(_) => false,
        };
        let (opened, sound) = match DiskStore::open_or_create(&dir, FULL) {
            Ok((store, created)) => (Ok(created), contents(&store).unwrap() == expected),
            Err(StoreError::Damaged { what }) => {
                DiskStore::move_aside(&dir, &what).unwrap();
                let (store, created) = DiskStore::open_or_create(&dir, FULL).unwrap();
                (Err(what), created && contents(&store).unwrap().is_empty())
            }
            Err(error) => panic!("{error}"),
        };
        sender.send((unnoticed, opened, sound)).unwrap();
    });
    let answer = receiver.recv_timeout(Duration::from_secs(60));
    let (unnoticed, opened, sound) = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(sound, "{what}: {opened:?}");
    tally.lost_without_the_full_check += u32::from(unnoticed);
    match opened {
        Ok(false) => tally.unharmed += 1,
        Ok(true) => panic!("{what}: a damaged store was taken for none"),
        Err(reason) => {
            tally.reset += 1;
            let words: Vec<_> = reason.split_whitespace().take(6).collect();
            *tally.by_reason.entry(words.join(" ")).or_default() += 1;
        }
    }
}

fn rounds() -> u64 {
    std::env::var("HEADCOUNT_DAMAGE_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap())
}

fn seed() -> u64 {
    std::env::var("HEADCOUNT_DAMAGE_SEED").map_or(0x2545_f491_4f6c_dd1d, |seed| seed.parse().unwrap())
}

#[test]
fn flipped_bytes_are_noticed_wherever_they_are() {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random(seed());
    let original = place.path().join("original");
    let expected = fill(&original, &mut random);
    let mut tally = Tally::default();
    for round in 0..rounds() {
        let dir = place.path().join(format!("{round}"));
        copy_dir(&original, &dir);
        let files = files(&dir);
        // Half of the flips go into sled's data, the rest anywhere.
        let path = if round % 2 == 0 { dir.join("tree/db") } else { files[random.next(files.len() as u64) as usize].clone() };
        let at = random.next(path.metadata().unwrap().len());
        flip(&path, at, 1 << random.next(8));
        examine(dir, expected.clone(), &mut tally, &format!("{} at {at}", path.display()));
    }
    println!("flips: {tally:#?}");
}

#[test]
fn cut_files_are_noticed() {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random(seed());
    let original = place.path().join("original");
    let expected = fill(&original, &mut random);
    let mut tally = Tally::default();
    for round in 0..rounds() / 2 {
        let dir = place.path().join(format!("{round}"));
        copy_dir(&original, &dir);
        let path = dir.join("tree/db");
        let len = if round == 0 { 0 } else { random.next(path.metadata().unwrap().len()) };
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        examine(dir, expected.clone(), &mut tally, &format!("cut at {len}"));
    }
    println!("cuts: {tally:#?}");
}

#[test]
fn missing_parts_are_noticed() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    let expected = fill(&original, &mut Random(seed()));
    let mut tally = Tally::default();
    for (round, part) in ["tree", "tree/db", "tree/conf", "tree/blobs", "tables", "SEALS"].into_iter().enumerate() {
        let dir = place.path().join(format!("{round}"));
        copy_dir(&original, &dir);
        let path = dir.join(part);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        examine(dir, expected.clone(), &mut tally, &format!("without {part}"));
    }
    println!("missing: {tally:#?}");
}

/// Damage that a read meets is known to the next open, even a quick one.
#[test]
fn damage_met_in_use_is_remembered() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    let store = DiskStore::open(&dir, FULL).unwrap();
    let key = |number: u16| [&[0, 1, 2][..], &number.to_be_bytes()].concat();
    let mut checkpoint = store.begin(PartitionId(1)).unwrap();
    (0..2_000).for_each(|number| checkpoint.put(&key(number), &[7; 7_000]).unwrap());
    checkpoint.commit().unwrap();
    drop(store);
    let quick = StoreOptions { check: Check::Quick, ..FULL };
    let store = DiskStore::open(&dir, quick).unwrap();
    let db = fs::OpenOptions::new().write(true).open(dir.join("tree/db")).unwrap();
    let len = db.metadata().unwrap().len();
    db.write_all_at(&vec![0x55; len as usize], 0).unwrap();
    let met = (0..2_000).filter(|number| store.get(&key(*number)).is_err_and(|error| error.is_damage())).count();
    assert!(met > 0);
    assert!(store.verify().is_err_and(|error| error.is_damage()));
    drop(store);
    assert!(DiskStore::open(&dir, quick).is_err_and(|error| error.is_damage()));
}

/// Nobody asks for what is damaged, and no merge can read it: the next open must know, even a quick
/// one.
#[test]
fn what_a_merge_can_not_read_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    let store = DiskStore::open(&dir, FULL).unwrap();
    let commit = |number: u8| {
        let mut checkpoint = store.begin(PartitionId(0)).unwrap();
        checkpoint.put(&[0, 0, 3, number], &[number; 100]).unwrap();
        checkpoint.commit().unwrap();
    };
    commit(1);
    let table = files(&dir).into_iter().find(|path| path.extension().is_some_and(|extension| extension == "sst")).unwrap();
    flip(&table, 12, 0xff);
    let noted = || dir.join("DAMAGED").exists();
    for number in 2..200 {
        commit(number);
        if noted() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(noted());
    drop(store);
    let quick = StoreOptions { check: Check::Quick, ..FULL };
    assert!(DiskStore::open(&dir, quick).is_err_and(|error| error.is_damage()));
}
