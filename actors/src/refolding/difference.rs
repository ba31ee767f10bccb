//! Replaces the saved state of a project by another one, in one commit.

use std::cmp::Ordering;

use headcount_domain::{Fault, ProjectId};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, OpenCheckpoint, PartitionSnapshot, SnapshotPairs, Store, StoredPair};

use crate::fault;

/// Replaces the state of a project in the part `stored_as` of `store` by the state in `computed`.
/// Writes only the pairs that differ, since an identity is in few of them. No other thread writes
/// that part meanwhile.
///
/// # Errors
/// The store then has either the former or the new state.
pub(super) fn replace(
    store: &DiskStore,
    stored_as: PartitionId,
    project: ProjectId,
    computed: &PartitionSnapshot,
) -> Result<(), Fault> {
    let stored = store.snapshot(stored_as).map_err(fault::of_store)?;
    let mut checkpoint = store.begin(stored_as).map_err(fault::of_store)?;
    for prefix in Key::all_of(stored_as, project.0) {
        let rest = behind_partition(&prefix);
        let (stored, computed) = (stored.pairs(rest), computed.pairs(rest));
        let pairs = Pairs { stored: stored.map_err(fault::of_store)?, computed: computed.map_err(fault::of_store)? };
        pairs.write_difference(stored_as, &mut *checkpoint)?;
    }
    checkpoint.commit().map_err(fault::of_store)
}

/// The key without the two bytes of its partition, which differ.
fn behind_partition(key: &[u8]) -> &[u8] {
    key.get(2..).unwrap_or_default()
}

/// The pairs under one prefix.
struct Pairs<'s> {
    stored: SnapshotPairs<'s>,
    computed: SnapshotPairs<'s>,
}

impl Pairs<'_> {
    fn write_difference(mut self, stored_as: PartitionId, checkpoint: &mut dyn OpenCheckpoint) -> Result<(), Fault> {
        let next = |pairs: &mut SnapshotPairs<'_>| -> Result<Option<StoredPair>, Fault> { pairs.next().map_err(fault::of_store) };
        let (mut before, mut after) = (next(&mut self.stored)?, next(&mut self.computed)?);
        loop {
            let order = match (&before, &after) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => behind_partition(old).cmp(behind_partition(new)),
            };
            let written = match (order, &before, &after) {
                (Ordering::Less, Some((old, _)), _) => checkpoint.delete(old),
                (Ordering::Equal, Some((_, old)), Some((_, new))) if old == new => Ok(()),
                (_, _, Some((key, value))) => checkpoint.put(&[&stored_as.prefix()[..], behind_partition(key)].concat(), value),
                (_, _, None) => Ok(()),
            };
            written.map_err(fault::of_store)?;
            if order != Ordering::Greater {
                before = next(&mut self.stored)?;
            }
            if order != Ordering::Less {
                after = next(&mut self.computed)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use headcount_storage::keyspace::Room;
    use headcount_storage::store::StoreOptions;

    use super::*;

    const PROJECT: ProjectId = ProjectId(7);

    fn record(partition: u16, project: u64, id: u128) -> Vec<u8> {
        Key::Record { partition: PartitionId(partition), project, space: 0, id }.encode()
    }

    fn cells(partition: u16, tag: u8) -> Vec<u8> {
        let room = if tag < 11 { Room::Sled } else { Room::Tables };
        Key::Cells { partition: PartitionId(partition), project: PROJECT.0, room, tag, part: 0 }.encode()
    }

    fn store(dir: &std::path::Path, partition: u16, pairs: &[(Vec<u8>, &str)]) -> DiskStore {
        let store = DiskStore::open(dir, StoreOptions::default()).unwrap();
        let mut checkpoint = store.begin(PartitionId(partition)).unwrap();
        pairs.iter().for_each(|(key, value)| checkpoint.put(key, value.as_bytes()).unwrap());
        checkpoint.commit().unwrap();
        store
    }

    #[test]
    fn the_state_becomes_the_other_one_and_its_neighbours_stay() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // The other store has the same project in another part.
        let (here, there) = (71, 7);
        let neighbours = [(record(here, 6, 1), "before"), (record(here, 8, 1), "behind")];
        let mut before = vec![(record(here, 7, 1), "gone"), (record(here, 7, 2), "same"), (record(here, 7, 3), "old")];
        before.extend([(cells(here, 1), "sums"), (cells(here, 11), "index, gone")]);
        before.extend(neighbours.iter().cloned());
        let stored = store(one.path(), here, &before);
        let after = |partition| {
            let records =
                [(record(partition, 7, 2), "same"), (record(partition, 7, 3), "new"), (record(partition, 7, 4), "more")];
            records.into_iter().chain([(cells(partition, 1), "other sums"), (cells(partition, 12), "index")])
        };
        let computed = store(two.path(), there, &after(there).collect::<Vec<_>>());
        replace(&stored, PartitionId(here), PROJECT, &computed.snapshot(PartitionId(there)).unwrap()).unwrap();
        let mut found = Vec::new();
        let mut visit = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), String::from_utf8(value.to_vec()).unwrap()));
            std::ops::ControlFlow::Continue(())
        };
        stored.scan(&PartitionId(here).prefix(), &mut visit).unwrap();
        let mut expected: Vec<_> = after(here).chain(neighbours).map(|(key, value)| (key, value.to_owned())).collect();
        expected.sort();
        assert_eq!(found, expected);
    }
}
