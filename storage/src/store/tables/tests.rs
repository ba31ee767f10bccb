//! Tests of the tables alone. Tests for all stores are in `tests/`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changes::Prepared;
use super::directory::MAX_TABLES;
use super::partition::PartitionTables;
use super::*;
use crate::files::OpenFiles;
use crate::keyspace::PartitionId;
use crate::sstable::table_files;
use crate::store::StoreError;

const PARTITION: PartitionId = PartitionId(7);

fn key(number: u32) -> Vec<u8> {
    [PARTITION.prefix().as_slice(), &[3], &number.to_be_bytes()].concat()
}

fn commit(tables: &Tables, changes: impl IntoIterator<Item = (u32, Option<Vec<u8>>)>) -> Vec<u8> {
    let mut changed = tables.begin(PARTITION);
    for (number, value) in changes {
        changed.set(&key(number), value.as_deref()).unwrap();
    }
    tables.make_room(PARTITION, &changed).unwrap();
    let prepared: Prepared = changed.prepare().unwrap().unwrap();
    let manifest = prepared.manifest.clone();
    tables.publish(prepared);
    manifest
}

fn value(number: u32, round: u32) -> Vec<u8> {
    vec![round as u8; (number.wrapping_mul(2_654_435_761) >> 20) as usize % 500]
}

fn contents(tables: &Tables) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        assert!(found.last_key_value().is_none_or(|(last, _): (&Vec<u8>, _)| last.as_slice() < key));
        found.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    tables.scan(PARTITION, &PARTITION.prefix(), visit).unwrap();
    found
}

fn wait_for_merge(tables: &Tables) {
    tables.of(PARTITION).set.wait_for_merge();
}

fn files(dir: &Path) -> BTreeMap<PathBuf, u64> {
    table_files(dir).unwrap()
}

fn ids(partition: &PartitionTables) -> Vec<u64> {
    partition.set.tables().iter().map(|table| table.id()).collect()
}

fn count(tables: &Tables) -> usize {
    ids(&tables.of(PARTITION)).len()
}

#[test]
fn many_checkpoints_equal_a_map_whatever_is_merged_when() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut expected = BTreeMap::new();
    let mut manifest = Vec::new();
    let mut most = 0;
    for round in 0..60_u32 {
        let changes: Vec<_> = (0..400_u32)
            .map(|at| at.wrapping_mul(7919).wrapping_add(round * 131) % 5_000)
            .map(|number| (number, (number % 7 != round % 7).then(|| value(number, round))))
            .collect();
        for (number, value) in &changes {
            match value {
                Some(value) => expected.insert(key(*number), value.clone()),
                None => expected.remove(&key(*number)),
            };
        }
        manifest = commit(&tables, changes);
        most = most.max(count(&tables));
        if round % 3 == 0 {
            wait_for_merge(&tables);
        }
        if round % 20 == 19 {
            drop(tables);
            tables = Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]).unwrap();
        }
        assert_eq!(contents(&tables), expected);
        for number in (round..5_000).step_by(61) {
            assert_eq!(tables.get(PARTITION, &key(number)).unwrap().as_ref(), expected.get(&key(number)));
        }
    }
    assert!(most < 12, "{most} tables at once");
    tables.verify().unwrap();
    drop(tables);
    let tables = Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap();
    let named = count(&tables);
    assert_eq!(files(dir.path()).len(), named, "what no manifest names is gone");
}

/// Bytes that can't be packed.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) << 1 | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| byte()).collect()
}

#[test]
fn keys_deleted_by_newer_tables_stay_deleted_while_the_oldest_is_too_large_to_merge() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut expected = BTreeMap::new();
    let (mut before, mut merged_above, mut merged_all) = (Vec::new(), 0, 0);
    for round in 0..40_u32 {
        let (first, count) = if round == 0 { (0, 1_000) } else { (round * 337 % 900, 100) };
        let changes: Vec<_> = (first..first + count)
            .map(|at| (at, (round == 0 || at % 3 != round % 3).then(|| noise(at ^ round, 6_000))))
            .collect();
        for (number, value) in &changes {
            match value {
                Some(value) => expected.insert(key(*number), value.clone()),
                None => expected.remove(&key(*number)),
            };
        }
        let manifest = commit(&tables, changes);
        if round % 2 == 0 {
            wait_for_merge(&tables);
        }
        let after = ids(&tables.of(PARTITION));
        let merged = after.len() <= before.len();
        merged_above += usize::from(merged && after[0] == before[0]);
        merged_all += usize::from(merged && after[0] != before[0]);
        before = after;
        if round % 9 == 8 {
            drop(tables);
            tables = Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap();
            before = ids(&tables.of(PARTITION));
        }
        assert!(contents(&tables) == expected, "round {round}");
        assert!((0..1_000).all(|number| tables.get(PARTITION, &key(number)).unwrap().as_ref() == expected.get(&key(number))));
    }
    tables.verify().unwrap();
    assert!(merged_above > 3 && merged_all > 1, "{merged_above} merges above the oldest table, {merged_all} of all");
}

#[test]
fn deleted_keys_leave_nothing_in_the_oldest_table() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&tables, (0..1000).map(|number| (number, Some(vec![1; 100]))));
    for part in 0..3 {
        commit(&tables, (0..1000).filter(|number| number % 3 == part).map(|number| (number, None)));
    }
    wait_for_merge(&tables);
    commit(&tables, [(5000, Some(vec![2]))]);
    let partition = tables.of(PARTITION);
    // The merge left no key, and so no table.
    assert_eq!(partition.set.tables().iter().map(|table| table.count()).collect::<Vec<_>>(), [1]);
    tables.assert_no_file_is_left_over();
    assert_eq!(contents(&tables), BTreeMap::from([(key(5000), vec![2])]));
}

#[test]
fn a_merge_between_prepare_and_publish_keeps_the_files_that_the_manifest_names() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut tables = Tables::open(dir.path(), Vec::new()).unwrap();
    tables.stop_merging();
    commit(&tables, (0..10).map(|number| (number, Some(vec![1]))));
    for part in 0..3 {
        commit(&tables, (0..10).filter(|number| number % 4 == part).map(|number| (number, None)));
    }
    let mut changed = tables.begin(PARTITION);
    changed.set(&key(10), Some(&[1])).unwrap();
    let prepared = changed.prepare().unwrap().unwrap();
    tables.merge_now(PARTITION).unwrap();
    assert_eq!((count(&tables), files(dir.path()).len()), (1, 6), "nothing is removed before a manifest says so");
    let manifest = prepared.manifest.clone();
    tables.publish(prepared);
    let expected: BTreeMap<_, _> = [3, 7, 10].map(|number| (key(number), vec![1])).into();
    assert_eq!((contents(&tables), count(&tables)), (expected.clone(), 2));
    for path in files(dir.path()).keys() {
        fs::copy(path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let after_crash = Tables::open(copy.path(), vec![(PARTITION, manifest)]).unwrap();
    assert_eq!((contents(&after_crash), count(&after_crash)), (expected, 5));
    commit(&tables, [(11, Some(vec![1]))]);
    assert_eq!((count(&tables), files(dir.path()).len()), (3, 3), "the next manifest names what was merged");
    tables.assert_no_file_is_left_over();
}

#[test]
fn a_commit_that_does_not_count_leaves_its_files_only_while_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let manifest = commit(&tables, [(1, Some(vec![1]))]);
    let mut changed = tables.begin(PARTITION);
    changed.set(&key(2), Some(&[1])).unwrap();
    changed.prepare().unwrap().unwrap().keep();
    assert_eq!((count(&tables), files(dir.path()).len()), (1, 2));
    let mut changed = tables.begin(PARTITION);
    changed.set(&key(2), Some(&[1])).unwrap();
    drop(changed.prepare().unwrap());
    assert_eq!((count(&tables), files(dir.path()).len()), (1, 2), "one that is dropped leaves none");
    drop(tables);
    assert_eq!(contents(&Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap()).len(), 1);
}

#[test]
fn tables_of_another_partition_or_number_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&tables, [(1, Some(vec![1]))]);
    let manifest = commit(&tables, [(1, Some(vec![2]))]);
    drop(tables);
    let paths: Vec<PathBuf> = files(dir.path()).into_keys().collect();
    let name = paths[0].file_name().unwrap().to_str().unwrap().replacen("00007", "00008", 1);
    fs::copy(&paths[0], dir.path().join(name)).unwrap();
    let other = vec![(PartitionId(8), manifest.clone())];
    assert!(Tables::open(dir.path(), other).is_err_and(|error| error.is_damage()));
    fs::copy(&paths[0], &paths[1]).unwrap();
    assert!(Tables::open(dir.path(), vec![(PARTITION, manifest)]).is_err_and(|error| error.is_damage()));
}

#[test]
fn a_manifest_of_another_version_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = crate::codec::encode(2, &(1_u64, Vec::<u64>::new())).unwrap();
    let opened = Tables::open(dir.path(), vec![(PARTITION, manifest)]);
    assert!(opened.is_err_and(|error| matches!(error, StoreError::OtherFormat { .. }) && !error.is_damage()));
}

#[test]
fn a_checkpoint_that_is_dropped_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut changed = tables.begin(PARTITION);
    for number in (0..4_000).rev() {
        changed.set(&key(number), Some(&[7; 1000])).unwrap();
    }
    assert!(files(dir.path()).len() > 2, "keys out of order become tables of their own");
    drop(changed);
    let mut changed = tables.begin(PARTITION);
    changed.set(&key(1), Some(&[1])).unwrap();
    drop(changed.prepare().unwrap());
    assert!(files(dir.path()).is_empty());
}

#[test]
fn changes_in_order_become_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&tables, (0..4_000).map(|number| (number, Some(vec![7; 1000]))));
    assert_eq!(files(dir.path()).len(), 1);
    assert!(tables.memory_bytes() < 64 * 1024, "{}", tables.memory_bytes());
}

#[test]
fn every_flipped_byte_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let manifest = commit(&tables, (0..200).map(|number| (number, Some(value(number, 1)))));
    drop(tables);
    let path = files(dir.path()).into_keys().next().unwrap();
    let len = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    for at in (0..len).step_by(11).chain(len - 76..len) {
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
        let opened = Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]);
        let found = opened.and_then(|tables| tables.verify());
        assert!(found.is_err_and(|error| error.is_damage()), "byte {at} of {len}");
        file.write_all_at(&byte, at).unwrap();
    }
    for cut in [0, 75, len / 2, len - 1] {
        fs::copy(&path, dir.path().join("copy")).unwrap();
        file.set_len(cut).unwrap();
        assert!(Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]).is_err_and(|error| error.is_damage()), "{cut}");
        fs::copy(dir.path().join("copy"), &path).unwrap();
    }
    fs::remove_file(&path).unwrap();
    assert!(Tables::open(dir.path(), vec![(PARTITION, manifest)]).is_err_and(|error| error.is_damage()));
}

#[test]
fn the_next_key_of_a_block_does_not_read_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&tables, (0..200).map(|number| (number, Some(value(number, 1)))));
    let get = |number: u32| tables.get(PARTITION, &key(number));
    assert_eq!(get(0).unwrap(), Some(value(0, 1)));
    let path = files(dir.path()).into_keys().next().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0xff; usize::try_from(file.metadata().unwrap().len()).unwrap()], 0).unwrap();
    assert_eq!(get(1).unwrap(), Some(value(1, 1)));
    assert!(get(199).is_err_and(|error| error.is_damage()), "another block");
    // Another thread has not read it, and after a failure nobody has.
    let other = std::thread::scope(|scope| scope.spawn(|| get(1)).join().unwrap());
    assert!(other.is_err_and(|error| error.is_damage()));
    assert!(get(1).is_err_and(|error| error.is_damage()));
}

#[test]
fn tables_and_open_files_stay_bounded_where_nobody_merges_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let open_files = OpenFiles::new(4);
    let mut tables = Tables::open_with(dir.path(), Vec::new(), Arc::clone(&open_files)).unwrap();
    tables.stop_merging();
    for round in 0..200_u32 {
        commit(&tables, (0..20).map(|at| (round * 7 + at, Some(value(at, round)))));
        assert!(count(&tables) <= MAX_TABLES, "{} tables in round {round}", count(&tables));
        assert!(open_files.count() <= 4);
    }
    let expected: BTreeMap<_, _> =
        (0..200_u32).flat_map(|round| (0..20).map(move |at| (key(round * 7 + at), value(at, round)))).collect();
    assert_eq!(contents(&tables), expected);
    assert!(expected.iter().all(|(key, value)| tables.get(PARTITION, key).unwrap().as_ref() == Some(value)));
    assert_eq!(files(dir.path()).len(), tables.of(PARTITION).set.files());
}

#[test]
fn a_scan_reads_to_the_end_tables_that_were_replaced_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::open_with(dir.path(), Vec::new(), OpenFiles::new(1)).unwrap();
    tables.stop_merging();
    let partition = tables.of(PARTITION);
    let name_of = |number: u32| (number, Some(noise(number, 3_000)));
    for round in 0..8 {
        commit(&tables, (0..50).map(|at| name_of(round * 50 + at)));
    }
    let (mut seen, mut files_before) = (0, 0);
    let visit = &mut |_: &[u8], _: &[u8]| {
        seen += 1;
        if seen == 10 {
            partition.set.merge_at_once().unwrap();
            commit(&tables, [name_of(1_000)]);
            files_before = files(dir.path()).len();
        }
        ControlFlow::Continue(())
    };
    tables.scan(PARTITION, &PARTITION.prefix(), visit).unwrap();
    assert_eq!((seen, ids(&partition).len()), (400, 2));
    assert!(files_before > 2, "what is still read is still there");
    assert_eq!(files(dir.path()).len(), 2, "and goes with its last reader");
}

#[test]
fn tables_at_rest_are_merged_to_one() {
    use std::time::Duration;
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::open(dir.path(), Vec::new()).unwrap();
    let partition = tables.of(PARTITION);
    let (long, none) = (Duration::from_secs(3_600), Duration::ZERO);
    let rest = |quiet: Duration, free: u64| {
        let before = tables.merge_at_rest(quiet, free).merged;
        partition.set.wait_for_merge();
        (before.len(), count(&tables))
    };
    let write = |keys: std::ops::Range<u32>, round: u32| commit(&tables, keys.map(|at| (at, Some(noise(at ^ round, 500)))));
    write(0..500, 0);
    write(0..300, 1 << 20);
    let expected = contents(&tables);
    let size = tables.size_bytes().unwrap();
    assert_eq!((rest(long, u64::MAX), rest(none, size)), ((0, 2), (0, 2)), "not while it changes, nor without room");
    assert_eq!(rest(none, size + 1), (0, 1));
    assert!(tables.size_bytes().unwrap() > size, "the manifest in force may name the former tables");
    assert_eq!(tables.merge_at_rest(none, u64::MAX), AtRest { merged: vec![PARTITION], ..AtRest::default() });
    commit(&tables, []);
    assert!(tables.size_bytes().unwrap() < size * 2 / 3);
    assert_eq!((contents(&tables), tables.merge_at_rest(none, u64::MAX)), (expected, AtRest::default()));
    write(0..50, 2 << 20);
    assert_eq!(rest(none, u64::MAX), (0, 2), "a tenth more is not worth it");
    write(50..110, 2 << 20);
    assert_eq!(rest(none, u64::MAX), (0, 1), "a fifth is");
    commit(&tables, []);
    tables.assert_no_file_is_left_over();
}

/// Also in the oldest table, which merges leave alone, and in older versions of a value.
#[test]
fn a_purge_leaves_nothing_under_its_prefixes_in_any_file() {
    use std::sync::atomic::AtomicBool;
    let go = AtomicBool::new(false);
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::open(dir.path(), Vec::new()).unwrap();
    tables.stop_merging();
    let has_mark = |dir: &Path| {
        let has = |path: &PathBuf| fs::read(path).unwrap().windows(8).any(|bytes| bytes == b"zanzibar");
        files(dir).keys().filter(|path| has(path)).count()
    };
    let value = |number: u32, round: u32| {
        let mark: &[u8] = if number < 256 { b"zanzibar" } else { b"other" };
        Some([mark, &noise(number ^ round, 200)].concat())
    };
    for round in 0..4 {
        commit(&tables, (0..512).map(|number| (number, value(number, round))));
    }
    // Some are deleted: the older values are still there.
    commit(&tables, (0..20).map(|number| (number, None)));
    assert!(has_mark(dir.path()) >= 4);
    // The last byte of the keys is at the end: the numbers below 256, and those above.
    let prefix = key(0)[..6].to_vec();
    let partition = tables.of(PARTITION);
    assert!(partition.purge(std::slice::from_ref(&prefix), &go).unwrap());
    assert!(contents(&tables).keys().all(|key| !key.starts_with(&prefix)) && contents(&tables).len() == 256);
    assert_eq!(count(&tables), 1);
    let manifest = commit(&tables, [(600, Some(b"new".to_vec()))]);
    assert_eq!(has_mark(dir.path()), 0);
    let kept = contents(&tables);
    drop(partition);
    drop(tables);
    let tables = Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap();
    assert_eq!(contents(&tables), kept);
    tables.assert_no_file_is_left_over();
    let all = PARTITION.prefix().to_vec();
    assert!(tables.of(PARTITION).purge(&[all], &go).unwrap());
    assert!(contents(&tables).is_empty() && count(&tables) == 0);
}
