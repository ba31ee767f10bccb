//! What an opening store examines, and what it takes up again.
//!
//! What sled 0.34.7 does with a flipped byte in its `db` file depends on where it lies. In the part of the log that is
//! replayed at open (all that was written since the open before) a message with a wrong checksum ends the reading of
//! its 512 KiB segment *without an error*: later segments are applied all the same, and pages whose updates were skipped
//! show older contents, or the replay trips over what is missing and panics. Elsewhere it is an error or a panic when
//! the page is read. Of 900 flips (half of them in `db`, of 6 MB) 402 damaged the store: 240 made sled panic and 67 made
//! it report an error at open, 83 lost the tail of the log silently (the seals showed it), and 12 were found by reading
//! all values; in 5 of these every read succeeded, with wrong answers. Nothing hung; 450 cut files all showed.
//! So checksums per value are not enough, and neither is a seal of the last commit: only a digest over all pairs of a
//! partition tells.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::super::{PartitionId, StoreError};
use super::Inner;
use super::checkpoint::apply;
use super::frame::{FORMAT, FORMAT_KEY, PartitionState, STATE_PREFIX, Stamp, partition_of_state, state_key, value_key};
use super::journal::{self, Journal};
use super::partition::{Overlay, PartitionSlot};
use super::read::unframe;
use super::tree::Handle;
use crate::files::{self, sync_dir};
use crate::parallel::check_each;

impl Inner {
    /// Brings every partition to its last committed checkpoint. Returns whether the store is new.
    pub(super) fn recover(&self) -> Result<bool, StoreError> {
        let tree = self.tree.handle()?;
        let partitions = self.known_partitions(&tree)?;
        let created = match tree.get(&FORMAT_KEY)? {
            Some(format) if format == FORMAT => false,
            Some(_) => return Err(StoreError::damaged("the format marker is not this version's")),
            None if partitions.is_empty() && tree.is_empty()? => {
                tree.set(&FORMAT_KEY, FORMAT)?;
                tree.sync()?;
                sync_dir(&self.dir).map_err(StoreError::io("sync a directory"))?;
                true
            }
            None => return Err(StoreError::damaged("the format marker is missing")),
        };
        for partition in partitions {
            let slot = self.recover_partition(&tree, partition)?;
            self.partitions.write().unwrap_or_else(PoisonError::into_inner).insert(partition, Arc::new(slot));
        }
        Ok(created)
    }

    /// The partitions that sled or a journal knows of.
    fn known_partitions(&self, tree: &Handle) -> Result<BTreeSet<PartitionId>, StoreError> {
        let mut partitions = BTreeSet::new();
        tree.scan(&STATE_PREFIX, |key, _| {
            partitions
                .insert(partition_of_state(key).ok_or_else(|| StoreError::damaged("a partition state under no partition"))?);
            Ok(true)
        })?;
        for path in files::list(&self.journals).map_err(StoreError::io("list the journals"))? {
            partitions.extend(path.file_name().and_then(|name| name.to_str()).and_then(journal::partition_of));
        }
        Ok(partitions)
    }

    /// Compares what sled holds of a partition with its seals, and applies what was committed but not applied.
    fn recover_partition(&self, tree: &Handle, partition: PartitionId) -> Result<PartitionSlot, StoreError> {
        let stored = tree.get(&state_key(partition))?;
        let stored = stored.map(|bytes| PartitionState::decode(&bytes)).transpose()?.unwrap_or_default();
        let odd = self.open_journal(partition, 1)?;
        let even = self.open_journal(partition, 2)?;
        let newest = [odd, even].into_iter().flatten().max_by_key(|journal| journal.header().state.generation);
        let sealed = newest.as_ref().map(|journal| journal.header().state).unwrap_or_default();
        // One ahead: the newest header is lost (it shares no block with anything else), and sled has what it sealed.
        if stored == sealed || stored.generation == sealed.generation + 1 {
            return Ok(PartitionSlot::new(partition, stored));
        }
        let lost = || {
            let (has, sealed) = (stored.generation, sealed.generation);
            StoreError::damaged(format!("sled has checkpoint {has} of partition {partition}, but {sealed} was sealed"))
        };
        let journal = newest.filter(|journal| !journal.header().applied && stored.generation + 1 == sealed.generation);
        let journal = journal.ok_or_else(lost)?;
        let Some(changes) = journal.changes().map_err(StoreError::io("read a journal"))? else {
            // A power cut while the journal was synced: this checkpoint never counted.
            return Ok(PartitionSlot::new(partition, stored));
        };
        let slot = PartitionSlot::new(partition, sealed);
        let overlay = Overlay { journal, changes };
        apply(tree, partition, &overlay)?;
        overlay.journal.retire().map_err(StoreError::io("retire a journal"))?;
        Ok(slot)
    }

    fn open_journal(&self, partition: PartitionId, generation: u64) -> Result<Option<Journal>, StoreError> {
        let path = journal::path(&self.journals, partition, generation);
        Journal::open(&path, partition).map_err(StoreError::io("open a journal"))
    }

    /// Compares all values of all partitions with the partitions' digests, as many partitions at a time as there are processors.
    pub(super) fn check_all(&self) -> Result<(), StoreError> {
        let partitions: Vec<_> = self.partitions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        check_each(&partitions, StoreError::damaged, |slot| self.watch(self.check_partition(slot)))
    }

    fn check_partition(&self, slot: &PartitionSlot) -> Result<(), StoreError> {
        let view = loop {
            let view = slot.view();
            if view.overlay.is_none() {
                break view;
            }
            drop(view);
            // A commit is under way, or sled failed.
            match self.recover_slot(slot) {
                Err(StoreError::Busy { .. }) => std::thread::sleep(Duration::from_millis(1)),
                outcome => outcome?,
            }
        };
        let tree = self.tree.handle()?;
        let mut found = PartitionState { generation: view.state.generation, ..PartitionState::default() };
        let prefix = value_key(&slot.partition.prefix());
        tree.scan(&prefix, |physical, frame| {
            let key = physical.get(1..).unwrap_or_default();
            unframe(&tree, slot.partition, key, frame)?;
            found.add(Stamp::split(frame)?.0.element(key));
            Ok(true)
        })?;
        if found == view.state {
            Ok(())
        } else {
            let (partition, count, expected) = (slot.partition, found.count, view.state.count);
            Err(StoreError::damaged(format!("partition {partition} holds {count} pairs that are not the {expected} committed")))
        }
    }
}
