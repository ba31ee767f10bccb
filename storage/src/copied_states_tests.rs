//! The state of a partition, copied from one store and index to another one.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::TableFile;
use crate::external_ids::{ExternalIds, ExternalIdsError, ExternalIdsOptions, Freeze};
use crate::files::switch::{Plan, Switch};
use crate::format::Incarnation;
use crate::keyspace::PartitionId;
use crate::store::{Check, DiskStore, MemoryStore, PartitionSnapshot, Store, StoreError, StoreOptions};

const PARTITION: PartitionId = PartitionId(7);
const OTHER: PartitionId = PartitionId(8);
const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };
/// The group of parts of rollups, which lie in sled, and that of records, which lie in tables.
const GROUPS: [u8; 2] = [2, 3];

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(partition: PartitionId, group: u8, number: u32) -> Vec<u8> {
    [&partition.prefix()[..], &[group], &1_u64.to_be_bytes(), &[1], &number.to_be_bytes()].concat()
}

/// Writes pairs with these numbers, and deletes those with others.
fn commit(store: &dyn Store, partition: PartitionId, written: impl Iterator<Item = u32>, deleted: &[u32], value: &str) {
    let mut checkpoint = store.begin(partition).unwrap();
    for number in written {
        for group in GROUPS {
            checkpoint.put(&key(partition, group, number), format!("{value} {number}").as_bytes()).unwrap();
        }
    }
    for number in deleted {
        for group in GROUPS {
            checkpoint.delete(&key(partition, group, *number)).unwrap();
        }
    }
    checkpoint.commit().unwrap();
}

fn all(store: &dyn Store, partition: PartitionId) -> Pairs {
    let mut pairs = Pairs::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        pairs.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(&partition.prefix(), visit).unwrap();
    pairs
}

fn copy(files: &[TableFile], to: &Path) -> Vec<u64> {
    fs::create_dir_all(to).unwrap();
    for file in files {
        let mut copy = fs::File::create(to.join(TableFile::copy_name(file.id()))).unwrap();
        assert_eq!(std::io::copy(&mut file.reader(), &mut copy).unwrap(), file.bytes());
    }
    files.iter().map(TableFile::id).collect()
}

/// A store with a partition of several checkpoints, and its copy in `dir`.
fn copied(home: &Path) -> (DiskStore, PartitionSnapshot) {
    let store = DiskStore::open(&home.join("source"), OPTIONS).unwrap();
    commit(&store, PARTITION, 0..500, &[], "first");
    commit(&store, PARTITION, 100..900, &[3, 4, 700], "second");
    let snapshot = store.snapshot(PARTITION).unwrap();
    let small = snapshot.encode_small().unwrap();
    // What comes later is no part of it.
    commit(&store, PARTITION, 400..450, &[5], "later");
    store.merge_all(PARTITION, &false.into()).unwrap();
    commit(&store, PARTITION, 0..1, &[], "later");
    let ids = copy(&snapshot.files(), &home.join("copies"));
    assert!(ids.len() >= 2, "{ids:?}");
    (store, PartitionSnapshot::open_copy(PARTITION, &small, &home.join("copies"), &ids).unwrap())
}

fn expected() -> Pairs {
    let written = |number: &u32| match number {
        100..900 => Some("second"),
        0..100 => Some("first"),
        _ => None,
    };
    let numbers = (0..900_u32).filter(|number| ![3, 4, 700].contains(number));
    let pair = |(group, number): (u8, u32)| {
        Some((key(PARTITION, group, number), format!("{} {number}", written(&number)?).into_bytes()))
    };
    numbers.flat_map(|number| GROUPS.map(|group| (group, number))).filter_map(pair).collect()
}

#[test]
fn a_copy_replaces_whatever_a_store_had_of_the_partition() {
    let home = tempfile::tempdir().unwrap();
    let (_source, snapshot) = copied(home.path());
    let target = home.path().join("target");
    let store = DiskStore::open(&target, OPTIONS).unwrap();
    snapshot.replace_in(&store).unwrap();
    assert_eq!(all(&store, PARTITION), expected());

    commit(&store, PARTITION, 850..2_000, &[1, 2], "foreign");
    commit(&store, OTHER, 0..10, &[], "other");
    let other = all(&store, OTHER);
    snapshot.replace_in(&store).unwrap();
    assert_eq!(all(&store, PARTITION), expected());
    drop(store);
    let store = DiskStore::open(&target, OPTIONS).unwrap();
    assert_eq!((all(&store, PARTITION), all(&store, OTHER)), (expected(), other));

    let memory = MemoryStore::default();
    commit(&memory, PARTITION, 850..2_000, &[], "foreign");
    snapshot.replace_in(&memory).unwrap();
    assert_eq!(all(&memory, PARTITION), expected());
}

#[test]
fn a_damaged_copy_replaces_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (_source, snapshot) = copied(home.path());
    let store = DiskStore::open(&home.path().join("target"), OPTIONS).unwrap();
    commit(&store, PARTITION, 0..50, &[], "own");
    let own = all(&store, PARTITION);
    let first = fs::read_dir(home.path().join("copies")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&first).unwrap();
    bytes[200] ^= 1;
    fs::write(&first, bytes).unwrap();
    let refused = snapshot.replace_in(&store).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    assert_eq!(all(&store, PARTITION), own);
}

/// Every fifth write, sync, rename and open of the replacement fails, before it is done and after.
#[test]
fn a_replacement_that_fails_leaves_one_of_the_two_states() {
    let home = tempfile::tempdir().unwrap();
    let (_source, snapshot) = copied(home.path());
    let target = home.path().join("target");
    let mut failures = 0;
    for (first, done) in [(1, false), (3, true)] {
        for at in (first..).step_by(5) {
            let _ = fs::remove_dir_all(&target);
            let store = DiskStore::open(&target, OPTIONS).unwrap();
            commit(&store, PARTITION, 850..1_000, &[], "own");
            let own = all(&store, PARTITION);
            let switch = Switch::arm(&target, Plan { at, done, ..Plan::default() });
            let replaced = snapshot.replace_in(&store);
            let failed = switch.failed();
            drop(switch);
            store.recover(PARTITION).unwrap();
            let found = all(&store, PARTITION);
            match replaced {
                Ok(()) => assert_eq!(found, expected(), "{failed:?}"),
                Err(_) => assert!(found == own || found == expected(), "{failed:?}"),
            }
            if failed.is_empty() {
                break;
            }
            failures += 1;
        }
    }
    assert!(failures >= 4, "{failures}");
}

const INDEX: ExternalIdsOptions = ExternalIdsOptions { incarnation: Incarnation::from_number(77) };

fn record(index: &mut ExternalIds, numbers: std::ops::Range<u64>) {
    for number in numbers {
        index.first(u128::from(number) << 64 | 5, 1_000 + number).unwrap();
    }
    let Freeze::Write(frozen) = index.freeze() else { panic!("nothing to write") };
    let written = frozen.write().unwrap();
    index.adopt(written);
}

fn position(index: &ExternalIds, number: u64) -> Option<u64> {
    index.get(u128::from(number) << 64 | 5).unwrap()
}

#[test]
fn an_index_is_replaced_by_a_copy_of_another_one() {
    let home = tempfile::tempdir().unwrap();
    let mut source = ExternalIds::open(&home.path().join("source"), INDEX).unwrap();
    record(&mut source, 0..500);
    record(&mut source, 500..700);
    let (copies, target) = (home.path().join("copies"), home.path().join("target"));
    let ids = copy(&source.files(), &copies);
    assert_eq!(ids.len(), 2);
    let mut index = ExternalIds::open(&target, INDEX).unwrap();
    record(&mut index, 600..900);
    drop(index);
    for _twice in 0..2 {
        ExternalIds::replace(&target, INDEX, &copies, &ids).unwrap();
        let mut index = ExternalIds::open(&target, INDEX).unwrap();
        index.verify().unwrap();
        assert_eq!((index.entries(), index.files().len()), (700, 1));
        assert_eq!((position(&index, 0), position(&index, 699), position(&index, 700)), (Some(1_000), Some(1_699), None));
        assert_eq!(fs::read_dir(&target).unwrap().filter(|file| file.as_ref().unwrap().file_name() != "MANIFEST").count(), 1);
        record(&mut index, 700..710);
    }
    ExternalIds::replace(&target, INDEX, &copies, &[]).unwrap();
    assert_eq!(ExternalIds::open(&target, INDEX).unwrap().entries(), 0);
    let another = ExternalIdsOptions { incarnation: Incarnation::from_number(78) };
    let refused = ExternalIds::replace(&target, another, &copies, &ids).unwrap_err();
    assert!(matches!(refused, ExternalIdsError::Damaged { .. }), "{refused}");
}
