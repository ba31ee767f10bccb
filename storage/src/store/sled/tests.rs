//! Batches that are there in part, and sled that is held by somebody else, or opened again.

use super::*;
use crate::keyspace::PartitionId;
use crate::store::StoreError;

const PARTITION: PartitionId = PartitionId(1);

fn changes(round: u8) -> PairChanges {
    PairChanges::from([
        (vec![0, 1, 2], Some(vec![round; 100])),
        (vec![0, 1, 2, round], Some(vec![])),
        (vec![0, 1, 2, round - 1], None),
    ])
}

/// Commits one checkpoint to a database; `tear` may change what becomes of its batch.
fn commit(database: &Database, states: &mut States, round: u8, tear: impl FnOnce(&mut PairChanges)) {
    let before = states.get(&PARTITION).copied().unwrap_or_default();
    let write = |handle: &Handle| {
        let (state, mut batch) = before.next(PARTITION, changes(round), handle)?;
        tear(&mut batch);
        handle.write(&batch)?;
        Ok(state)
    };
    states.insert(PARTITION, database.with(write).unwrap());
}

fn verify(database: &Database) -> Result<States, StoreError> {
    database.with(|handle| {
        let states = read_states(handle)?.unwrap_or_default();
        verify_states(handle, &states).map(|()| states)
    })
}

#[test]
fn a_batch_that_is_there_in_part_is_damage() {
    let whole: fn(&mut PairChanges) = |_| {};
    let no_state: fn(&mut PairChanges) = |batch| drop(batch.remove(&[0, b's', 0, 1][..]));
    let no_value: fn(&mut PairChanges) = |batch| drop(batch.remove(&[1, 0, 1, 2][..]));
    let no_removal: fn(&mut PairChanges) = |batch| batch.retain(|_, value| value.is_some());
    let another_value: fn(&mut PairChanges) = |batch| drop(batch.insert(vec![1, 0, 1, 2], Some(vec![9; 100])));
    for (tear, is_sound) in [(whole, true), (no_state, false), (no_value, false), (no_removal, false), (another_value, false)] {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(dir.path(), 1 << 20).unwrap();
        assert_eq!(verify(&database).unwrap(), States::new(), "new");
        let mut states = States::new();
        commit(&database, &mut states, 1, |_| {});
        assert_eq!(verify(&database).unwrap(), states);
        commit(&database, &mut states, 2, tear);
        match verify(&database) {
            Ok(found) => assert!(is_sound && found == states),
            Err(error) => assert!(!is_sound && error.is_damage(), "{error}"),
        }
    }
}

#[test]
fn pairs_without_a_state_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), 1 << 20).unwrap();
    verify(&database).unwrap();
    database.with(|handle| handle.write(&PairChanges::from([(vec![1, 0, 7, 2], Some(vec![1]))]))).unwrap();
    assert!(verify(&database).is_err_and(|error| error.is_damage()));
}

#[test]
fn an_error_closes_it_until_it_is_sound_again() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), 1 << 20).unwrap();
    verify(&database).unwrap();
    let mut states = States::new();
    commit(&database, &mut states, 1, |_| {});
    let refused = || StoreError::io("write")(std::io::ErrorKind::StorageFull.into());
    assert!(database.with(|_| Err::<(), _>(refused())).is_err() && !database.is_open());
    assert!(matches!(verify(&database), Err(StoreError::Io { .. })));
    let unsound = database.reopen(|_| Err::<(), _>(StoreError::damaged("planted")));
    assert!(matches!(unsound, Err(StoreError::Io { .. })) && !database.is_open(), "the next start says whether it is damaged");
    let reopened = || database.reopen(read_states);
    assert!(matches!(reopened(), Err(StoreError::Io { .. })), "not at once after a failure");
    std::thread::sleep(std::time::Duration::from_millis(250));
    assert_eq!(reopened().unwrap(), Some(states));
}

#[test]
fn a_store_of_another_version_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), 1 << 20).unwrap();
    let write = |value: &[u8]| {
        database.with(|handle| handle.write(&PairChanges::from([(vec![0, b'f'], Some(value.to_vec()))]))).unwrap();
    };
    write(b"headcount store 2");
    assert!(matches!(verify(&database), Err(StoreError::OtherFormat { .. })));
    write(b"hexdcount store 3");
    assert!(verify(&database).is_err_and(|error| error.is_damage()));
}

#[test]
fn a_database_that_is_open_elsewhere_is_not_taken_for_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let _held = Database::open(dir.path(), 1 << 20).unwrap();
    let refused = Database::open(dir.path(), 1 << 20).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert!(matches!(wait_until_closed(dir.path()), Err(StoreError::Io { .. })));
}
