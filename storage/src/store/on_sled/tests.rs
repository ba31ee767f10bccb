//! Crashes at exact places, and damage that is met in use. What every store promises is tested in `tests/`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::frame::{CHUNK_BYTES, Stamp, chunk_key, state_key, value_key};
use super::journal::{Changes, JournalWriter};
use super::*;

const PARTITION: PartitionId = PartitionId(1);
const LONG: usize = 3 * CHUNK_BYTES + 5;

fn open(dir: &Path) -> SledStore {
    SledStore::open(dir, StoreOptions { cache_bytes: 1 << 20, check: Check::Full }).unwrap()
}

fn key(name: u8) -> Vec<u8> {
    vec![0, 1, name]
}

fn commit(store: &SledStore, pairs: &[(u8, Vec<u8>)]) {
    let mut checkpoint = store.begin(PARTITION).unwrap();
    for (name, value) in pairs {
        checkpoint.put(&key(*name), value).unwrap();
    }
    checkpoint.commit().unwrap();
}

/// Writes and syncs the journal of a second checkpoint (a changed, b gone, c new) and goes no further.
fn stop_before_applying(store: &SledStore) -> PathBuf {
    let inner = &store.inner;
    let mut state = inner.slot(PARTITION).view().state;
    state.generation += 1;
    let path = journal::path(&inner.journals, PARTITION, state.generation);
    let mut writer = JournalWriter::create(&path).unwrap();
    for (ordinal, name, value) in [(0, b'a', vec![2; LONG]), (1, b'c', vec![2; 10])] {
        let stamp = Stamp::of(&key(name), &value, state.generation, ordinal).unwrap();
        writer.put(&key(name), &stamp, &value).unwrap();
        state.add(stamp.element(&key(name)));
    }
    writer.delete(&key(b'b')).unwrap();
    for name in *b"ab" {
        let frame = inner.tree.handle().unwrap().get(&value_key(&key(name))).unwrap().unwrap();
        let stamp = Stamp::split(&frame).unwrap().0;
        state.remove(stamp.element(&key(name)));
        writer.free(&stamp).unwrap();
    }
    writer.finish(PARTITION, state).unwrap();
    path
}

fn values(store: &SledStore) -> Vec<Option<Vec<u8>>> {
    b"abc".map(|name| store.get(&key(name)).unwrap()).to_vec()
}

fn first() -> Vec<Option<Vec<u8>>> {
    vec![Some(vec![1; LONG]), Some(vec![1; LONG]), None]
}

fn second() -> Vec<Option<Vec<u8>>> {
    vec![Some(vec![2; LONG]), None, Some(vec![2; 10])]
}

fn with_the_first_checkpoint(dir: &Path) -> SledStore {
    let store = open(dir);
    commit(&store, &[(b'a', vec![1; LONG]), (b'b', vec![1; LONG])]);
    store
}

#[test]
fn a_synced_journal_is_applied_at_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_the_first_checkpoint(dir.path());
    stop_before_applying(&store);
    assert_eq!(values(&store), first());
    drop(store);
    for _ in 0..2 {
        assert_eq!(values(&open(dir.path())), second());
    }
    let store = open(dir.path());
    commit(&store, &[(b'b', vec![3])]);
    drop(store);
    assert_eq!(open(dir.path()).get(&key(b'b')).unwrap(), Some(vec![3]));
}

#[test]
fn a_half_applied_journal_is_applied_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_the_first_checkpoint(dir.path());
    stop_before_applying(&store);
    let tree = store.inner.tree.handle().unwrap();
    let stamp = Stamp::of(&key(b'a'), &vec![2; LONG], 2, 0).unwrap();
    tree.set(&value_key(&key(b'a')), &stamp.frame(&vec![2; LONG])).unwrap();
    tree.set(&chunk_key(PARTITION, 2, 0, 1), &[2; CHUNK_BYTES]).unwrap();
    let mut writer = tree.writer();
    writer.remove(&chunk_key(PARTITION, 1, 1, 0)).unwrap();
    writer.write().unwrap();
    tree.sync().unwrap();
    drop(tree);
    drop(store);
    assert_eq!(values(&open(dir.path())), second());
}

#[test]
fn no_chunk_stays_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_the_first_checkpoint(dir.path());
    stop_before_applying(&store);
    drop(store);
    let store = open(dir.path());
    let mut checkpoint = store.begin(PARTITION).unwrap();
    b"abc".iter().for_each(|name| checkpoint.delete(&key(*name)).unwrap());
    checkpoint.commit().unwrap();
    let mut left = Vec::new();
    let mut note = |key: &[u8], _: &[u8]| {
        left.push(key.to_vec());
        Ok(true)
    };
    store.inner.tree.handle().unwrap().scan(&[], &mut note).unwrap();
    assert_eq!(left, [frame::FORMAT_KEY.to_vec(), state_key(PARTITION).to_vec()]);
}

#[test]
fn a_torn_journal_never_was() {
    for len in [4096, 4100, 10_000] {
        let dir = tempfile::tempdir().unwrap();
        let store = with_the_first_checkpoint(dir.path());
        let path = stop_before_applying(&store);
        drop(store);
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
        let store = open(dir.path());
        assert_eq!(values(&store), first());
        commit(&store, &[(b'c', vec![3])]);
        drop(store);
        assert_eq!(open(dir.path()).get(&key(b'c')).unwrap(), Some(vec![3]));
    }
}

#[test]
fn an_older_sled_than_was_sealed_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_the_first_checkpoint(dir.path());
    let old = store.inner.tree.handle().unwrap().get(&state_key(PARTITION)).unwrap().unwrap();
    commit(&store, &[(b'a', vec![2])]);
    store.inner.tree.handle().unwrap().set(&state_key(PARTITION), &old).unwrap();
    drop(store);
    let quick = StoreOptions { check: Check::Quick, ..StoreOptions::default() };
    assert!(SledStore::open(dir.path(), quick).is_err_and(|error| error.is_damage()));
}

#[test]
fn damage_met_in_use_is_remembered() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    let store = open(&dir);
    let many: Vec<_> = (0..=255).map(|name| (name, vec![name; 60_000])).collect();
    commit(&store, &many);
    let db = fs::OpenOptions::new().write(true).open(dir.join("tree/db")).unwrap();
    let len = db.metadata().unwrap().len();
    db.write_all_at(&vec![0x55; len as usize], 0).unwrap();
    let met = (0..=255).filter(|name| store.get(&key(*name)).is_err_and(|error| error.is_damage())).count();
    assert!(met > 0);
    assert!(store.verify().is_err_and(|error| error.is_damage()));
    drop(store);
    let quick = StoreOptions { check: Check::Quick, ..StoreOptions::default() };
    assert!(SledStore::open(&dir, quick).is_err_and(|error| error.is_damage()));
}

#[test]
fn a_store_that_is_open_elsewhere_is_not_taken_for_damaged() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    let _held = open(&dir);
    let refused = SledStore::open(&dir, StoreOptions::default()).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert!(matches!(wait_until_closed(&dir), Err(StoreError::Io { .. })));
}

#[test]
fn an_empty_journal_has_no_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal::path(dir.path(), PARTITION, 1);
    let journal = JournalWriter::create(&path).unwrap().finish(PARTITION, PartitionState::default()).unwrap();
    let Changes { keys, freed } = journal.changes().unwrap().unwrap();
    assert!(keys.is_empty() && freed.is_empty());
    assert_eq!(path.file_name().and_then(|name| name.to_str()).and_then(journal::partition_of), Some(PARTITION));
}
