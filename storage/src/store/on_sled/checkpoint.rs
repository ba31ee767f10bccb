//! Writing a checkpoint: journal, publish, apply, retire.

use std::sync::Arc;

use super::super::{Checkpoint, PartitionId, StoreError, check_key, check_value};
use super::Inner;
use super::frame::{CHUNK_BYTES, PartitionState, Stamp, chunk_key, state_key, value_key};
use super::journal::{Change, Changes, JournalWriter, Unfinished};
use super::partition::{Overlay, PartitionSlot, View};
use super::tree::Handle;

/// An open checkpoint.
pub(super) struct SledCheckpoint {
    store: Arc<Inner>,
    slot: Arc<PartitionSlot>,
    /// `None` once the commit has begun, or a change could not be noted.
    journal: Option<JournalWriter>,
    changes: Changes,
    state: PartitionState,
    ordinal: u32,
}

impl SledCheckpoint {
    /// Opens a checkpoint of a partition that the caller has claimed.
    pub(super) fn begin(store: Arc<Inner>, slot: Arc<PartitionSlot>) -> Result<Self, StoreError> {
        let mut state = slot.view().state;
        state.generation += 1;
        let journal = store.settle(&slot).and_then(|()| store.create_journal(slot.partition, state.generation));
        let journal = match journal {
            Ok(journal) => Some(journal),
            Err(error) => {
                slot.release();
                return Err(error);
            }
        };
        Ok(Self { store, slot, journal, changes: Changes::default(), state, ordinal: 0 })
    }

    fn journal(&mut self) -> Result<&mut JournalWriter, StoreError> {
        self.journal.as_mut().ok_or(StoreError::Stopped { partition: self.slot.partition })
    }

    /// Takes what the key holds so far out of the digest; returns whether there was anything.
    fn take_out(&mut self, key: &[u8]) -> Result<bool, StoreError> {
        let before = match self.changes.keys.get(key) {
            Some(Change::Put { stamp, .. }) => Some(*stamp),
            Some(Change::Delete) => None,
            None => {
                let stamp = self.store.stamp(key)?;
                if let Some(stamp) = stamp.filter(Stamp::is_chunked) {
                    self.journal()?.free(&stamp).map_err(StoreError::io("write a journal"))?;
                    self.changes.freed.push(stamp);
                }
                stamp
            }
        };
        if let Some(stamp) = before {
            self.state.remove(stamp.element(key));
        }
        Ok(before.is_some())
    }
}

impl SledCheckpoint {
    fn write_put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.take_out(key)?;
        let stamp = Stamp::of(key, value, self.state.generation, self.ordinal)?;
        self.ordinal = self.ordinal.wrapping_add(1);
        let offset = self.journal()?.put(key, &stamp, value).map_err(StoreError::io("write a journal"))?;
        self.state.add(stamp.element(key));
        self.changes.keys.insert(key.to_vec(), Change::Put { stamp, offset });
        Ok(())
    }

    fn write_delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        if self.take_out(key)? {
            self.journal()?.delete(key).map_err(StoreError::io("write a journal"))?;
            self.changes.keys.insert(key.to_vec(), Change::Delete);
        }
        Ok(())
    }

    /// A change that was half noted must not be committed with the rest.
    fn give_up_on_error(&mut self, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
        if outcome.is_err()
            && let Some(journal) = self.journal.take()
        {
            journal.abandon();
        }
        outcome
    }
}

impl Checkpoint for SledCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        check_key(self.slot.partition, key)?;
        check_value(value)?;
        let outcome = self.write_put(key, value);
        self.give_up_on_error(outcome)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        check_key(self.slot.partition, key)?;
        let outcome = self.write_delete(key);
        self.give_up_on_error(outcome)
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let Some(journal) = self.journal.take() else {
            return Err(StoreError::Stopped { partition: self.slot.partition });
        };
        let changes = std::mem::take(&mut self.changes);
        self.store.commit(&self.slot, journal, changes, self.state)
    }
}

impl Drop for SledCheckpoint {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.abandon();
        }
        self.slot.release();
    }
}

impl Inner {
    /// The stamp of what sled holds under a key.
    fn stamp(&self, key: &[u8]) -> Result<Option<Stamp>, StoreError> {
        self.read(|tree| tree.get(&value_key(key))?.map(|frame| Stamp::split(&frame).map(|(stamp, _)| stamp)).transpose())
    }

    /// Makes a checkpoint count, and shows it. An error says that it does not count, or that [`Inner::settle`] has to decide it.
    fn commit(
        &self,
        slot: &PartitionSlot,
        journal: JournalWriter,
        changes: Changes,
        state: PartitionState,
    ) -> Result<(), StoreError> {
        let journal = match journal.finish(slot.partition, state) {
            Ok(journal) => journal,
            Err(Unfinished { error, undecided }) => {
                *slot.undecided() = undecided;
                if let Err(error) = slot.take_back() {
                    tracing::warn!(partition = slot.partition.number(), %error, "a failed commit could not be taken back yet");
                }
                return Err(StoreError::io("sync a journal")(error));
            }
        };
        slot.publish(View { overlay: Some(Arc::new(Overlay { journal, changes })), state });
        slot.wait_for_readers();
        // It counts and it shows, whatever sled says.
        if let Err(error) = self.settle(slot) {
            tracing::warn!(partition = slot.partition.number(), %error, "a checkpoint counts, but is not in sled yet");
        }
        Ok(())
    }

    /// Finishes what a commit of the partition left undone: takes back one that failed half way, brings one that counts into sled.
    /// The caller has claimed the partition.
    pub(super) fn settle(&self, slot: &PartitionSlot) -> Result<(), StoreError> {
        slot.take_back().map_err(StoreError::io("take a journal back"))?;
        let (overlay, state) = {
            let view = slot.view();
            (view.overlay.clone(), view.state)
        };
        let Some(overlay) = overlay else { return Ok(()) };
        let tree = self.tree.handle()?;
        if let Err(error) = apply(&tree, slot.partition, &overlay) {
            tracing::warn!(partition = slot.partition.number(), %error, "sled failed; it is opened again");
            let tree = self.tree.reopen(tree)?;
            self.watch(apply(&tree, slot.partition, &overlay))?;
        }
        slot.publish(View { overlay: None, state });
        // Readers of the overlay read its values from the journal.
        slot.wait_for_readers();
        if let Err(error) = overlay.journal.retire() {
            // Sled has what it holds, and the next checkpoint but one starts over in this file.
            tracing::debug!(partition = slot.partition.number(), %error, "a journal was not retired");
        }
        Ok(())
    }
}

/// Brings a committed checkpoint into sled. Done again from the start after a crash or a failure, it ends the same.
pub(super) fn apply(tree: &Handle, partition: PartitionId, overlay: &Overlay) -> Result<(), StoreError> {
    let state = overlay.journal.header().state;
    let mut writer = tree.writer();
    for (key, change) in &overlay.changes.keys {
        match change {
            Change::Delete => writer.remove(&value_key(key))?,
            Change::Put { stamp, offset } => {
                let value = overlay.journal.value(key, stamp, *offset)?;
                if stamp.is_chunked() {
                    for (index, chunk) in (0..).zip(value.chunks(CHUNK_BYTES)) {
                        writer.set(&chunk_key(partition, stamp.generation, stamp.ordinal, index), chunk)?;
                    }
                }
                writer.set(&value_key(key), &stamp.frame(&value))?;
            }
        }
    }
    for stamp in &overlay.changes.freed {
        for index in 0..stamp.chunks() {
            writer.remove(&chunk_key(partition, stamp.generation, stamp.ordinal, index))?;
        }
    }
    writer.write()?;
    tree.sync()?;
    tree.set(&state_key(partition), &state.encode())?;
    tree.sync()
}
