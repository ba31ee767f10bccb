//! Writing a checkpoint: journal, publish, apply, retire.

use std::sync::Arc;

use super::super::{Checkpoint, StoreError, check_key, check_value};
use super::Inner;
use super::frame::{CHUNK_BYTES, RealmState, Stamp, chunk_key, state_key, value_key};
use super::journal::{Change, Changes, JournalWriter};
use super::realm::{Overlay, RealmSlot, View};

/// An open checkpoint.
pub(super) struct SledCheckpoint {
    store: Arc<Inner>,
    slot: Arc<RealmSlot>,
    /// `None` once the commit has begun, or a change could not be noted.
    journal: Option<JournalWriter>,
    changes: Changes,
    state: RealmState,
    ordinal: u32,
}

impl SledCheckpoint {
    /// Opens a checkpoint of a realm that the caller has claimed.
    pub(super) fn begin(store: Arc<Inner>, slot: Arc<RealmSlot>) -> Result<Self, StoreError> {
        let mut state = slot.view().state;
        state.generation += 1;
        let journal = store.create_journal(slot.realm, state.generation);
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
        self.journal.as_mut().ok_or(StoreError::Stopped { realm: self.slot.realm })
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
        check_key(self.slot.realm, key)?;
        check_value(value)?;
        let outcome = self.write_put(key, value);
        self.give_up_on_error(outcome)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        check_key(self.slot.realm, key)?;
        let outcome = self.write_delete(key);
        self.give_up_on_error(outcome)
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let Some(journal) = self.journal.take() else {
            return Err(StoreError::Stopped { realm: self.slot.realm });
        };
        let changes = std::mem::take(&mut self.changes);
        let outcome = self.store.commit(&self.slot, journal, changes, self.state);
        if outcome.is_err() {
            self.slot.stop();
        }
        outcome
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
        let frame = self.watch(self.tree.get(&value_key(key)))?;
        self.watch(frame.map(|frame| Stamp::split(&frame).map(|(stamp, _)| stamp)).transpose())
    }

    fn commit(&self, slot: &RealmSlot, journal: JournalWriter, changes: Changes, state: RealmState) -> Result<(), StoreError> {
        let journal = journal.finish(slot.realm, state).map_err(StoreError::io("sync a journal"))?;
        let overlay = Arc::new(Overlay { journal, changes });
        slot.publish(View { overlay: Some(overlay.clone()), state });
        slot.wait_for_readers();
        self.watch(self.apply(slot, &overlay))?;
        slot.publish(View { overlay: None, state });
        // Readers of the overlay read its values from the journal.
        slot.wait_for_readers();
        overlay.journal.retire().map_err(StoreError::io("retire a journal"))
    }

    /// Brings a committed checkpoint into sled. Done again from the start after a crash, it ends the same.
    pub(super) fn apply(&self, slot: &RealmSlot, overlay: &Overlay) -> Result<(), StoreError> {
        let state = overlay.journal.header().state;
        let mut writer = self.tree.writer();
        for (key, change) in &overlay.changes.keys {
            match change {
                Change::Delete => writer.remove(&value_key(key))?,
                Change::Put { stamp, offset } => {
                    let value = overlay.journal.value(key, stamp, *offset)?;
                    if stamp.is_chunked() {
                        for (index, chunk) in (0..).zip(value.chunks(CHUNK_BYTES)) {
                            writer.set(&chunk_key(slot.realm, stamp.generation, stamp.ordinal, index), chunk)?;
                        }
                    }
                    writer.set(&value_key(key), &stamp.frame(&value))?;
                }
            }
        }
        for stamp in &overlay.changes.freed {
            for index in 0..stamp.chunks() {
                writer.remove(&chunk_key(slot.realm, stamp.generation, stamp.ordinal, index))?;
            }
        }
        writer.write()?;
        self.tree.sync()?;
        self.tree.set(&state_key(slot.realm), &state.encode())?;
        self.tree.sync()
    }
}
