//! The resident records of one kind: loaded on demand, collected by checkpoints, evicted by second
//! chance.

use std::collections::{HashMap, VecDeque, hash_map::Entry};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use crate::cache::bytes::Bytes;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::records::Record;

/// A hasher for record keys, which already are keyed hashes; it uses their low half.
#[derive(Debug, Default, Clone, Copy)]
pub struct Passthrough(u64);

impl Hasher for Passthrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        let [a, b, c, d, e, f, g, h, ..] = value.to_le_bytes();
        self.0 = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    }
}

/// Hashes record keys by taking their low half.
pub type KeyHashBuilder = BuildHasherDefault<Passthrough>;

#[derive(Debug, Clone)]
struct CachedRecord<T> {
    value: T,
    /// The generation of the last change; 0 if unchanged since it was collected or saved.
    changed_in: u32,
    /// The generation whose checkpoint last collected the record; 0 if it was loaded.
    collected_in: u32,
    /// The approximate memory in bytes, when last measured.
    weight: u32,
    /// Whether it was used since the last pass of [`Table::evict`].
    used: bool,
    /// Whether it had pages when last measured. A page that it got since is not saved, so it can't
    /// be evicted anyway.
    has_pages: bool,
    /// The number of mutable accesses, which decides when it is weighed; below twice
    /// [`CHANGES_A_WEIGHING`].
    changes: u8,
}

/// The number of changes after which a record is weighed again, since a record that keeps growing
/// is never clean. A new record is also weighed each time its number of changes doubles, since it
/// is inserted empty.
const CHANGES_A_WEIGHING: u8 = 32;

impl<T: Record> CachedRecord<T> {
    /// Wraps a record that is unchanged since it was saved.
    fn saved(value: T) -> Box<Self> {
        let (weight, has_pages) = (weigh(&value), value.has_pages());
        Box::new(Self { value, changed_in: 0, collected_in: 0, weight, used: true, has_pages, changes: 0 })
    }

    /// Weighs the record again. Returns the old and the new weight in bytes.
    fn weigh(&mut self) -> (usize, usize) {
        let before = std::mem::replace(&mut self.weight, weigh(&self.value));
        self.has_pages = self.value.has_pages();
        (before as usize, self.weight as usize)
    }
}

/// The maximum number of changed keys that one step skips: a fraction of a millisecond.
const MOST_SKIPPED: usize = 1024;

/// The number of records of a checkpoint that are prefetched together.
const TOUCHED_TOGETHER: usize = 16;

/// The memory of a slot beyond its value's weight: its entries in the map and the queue, and their
/// spare capacity.
const SLOT_BYTES: usize = 88;

fn weigh<T: Record>(value: &T) -> u32 {
    u32::try_from(value.weight() + SLOT_BYTES).unwrap_or(u32::MAX)
}

/// Records by key, with the state of checkpoints: the records that changed since the last
/// checkpoint and, during a checkpoint, the old values of records that change again. So writing
/// doesn't block changes.
#[derive(Debug)]
pub struct Table<T> {
    /// Boxed, because a hash table is half empty and is copied while it grows, which is costly for
    /// large slots.
    slots: HashMap<RecordKey, Box<CachedRecord<T>>, KeyHashBuilder>,
    generation: u32,
    /// The last generation whose checkpoint is in the store.
    durable: u32,
    dirty: Vec<RecordKey>,
    frozen: Vec<RecordKey>,
    /// Each with its weight in `frozen_bytes`.
    spilled: Vec<(RecordKey, T, u32)>,
    /// Every key in memory, once. [`Table::evict`] examines the front next.
    queue: VecDeque<RecordKey>,
    resident_bytes: usize,
    dirty_bytes: usize,
    frozen_bytes: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: HashMap::default(),
            generation: 1,
            durable: 0,
            dirty: Vec::new(),
            frozen: Vec::new(),
            spilled: Vec::new(),
            queue: VecDeque::new(),
            resident_bytes: 0,
            dirty_bytes: 0,
            frozen_bytes: 0,
        }
    }
}

impl<T: Record> Table<T> {
    /// Returns the record of `key` from memory, or loads it.
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub fn get<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        Ok(self.slot(key, load)?.map(|slot| &slot.value))
    }

    /// Returns the record of `key` for loading its pages. This does not count as a change.
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub(crate) fn get_to_load<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&mut T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        Ok(self.slot(key, load)?.map(|slot| &mut slot.value))
    }

    /// Returns the record of `key` for a change; it counts as changed from here on.
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub fn get_mut<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&mut T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        let Self { slots, generation, dirty, frozen, spilled, queue, resident_bytes, dirty_bytes, .. } = self;
        let slot = match slots.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match load()? {
                Some(value) => {
                    let slot = CachedRecord::saved(value);
                    queue.push_back(key);
                    *resident_bytes += slot.weight as usize;
                    entry.insert(slot)
                }
                None => return Ok(None),
            },
        };
        let frozen_weight = slot.weight;
        slot.used = true;
        slot.changes += 1;
        if slot.changes.is_power_of_two() {
            if slot.changes == 2 * CHANGES_A_WEIGHING {
                slot.changes = CHANGES_A_WEIGHING;
            }
            let (before, now) = slot.weigh();
            *resident_bytes = *resident_bytes + now - before;
            if slot.changed_in == *generation {
                *dirty_bytes = *dirty_bytes + now - before;
            }
        }
        if slot.changed_in != *generation {
            if slot.changed_in + 1 == *generation && !frozen.is_empty() {
                spilled.push((key, slot.value.clone(), frozen_weight));
                slot.value.saved();
            }
            slot.changed_in = *generation;
            dirty.push(key);
            *dirty_bytes += slot.weight as usize;
        }
        Ok(Some(&mut slot.value))
    }

    /// Inserts or replaces a record. An existing record must have been looked up before.
    pub fn insert(&mut self, key: RecordKey, value: T) {
        if let Entry::Vacant(entry) = self.slots.entry(key) {
            let mut slot = CachedRecord::saved(value);
            slot.changed_in = self.generation;
            self.dirty.push(key);
            self.queue.push_back(key);
            self.resident_bytes += slot.weight as usize;
            self.dirty_bytes += slot.weight as usize;
            entry.insert(slot);
        } else if let Ok(Some(slot)) = self.get_mut(key, || Ok(None)) {
            *slot = value;
        }
    }

    /// Puts a record back after it was taken out of the value of [`Table::get_mut`].
    pub fn put_back(&mut self, key: RecordKey, value: T) {
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.value = value;
        }
    }

    /// Removes a record from memory, whether or not it is saved. No checkpoint may be in progress.
    /// The caller must let the next checkpoint delete the saved record.
    pub fn remove(&mut self, key: RecordKey) {
        if let Some(slot) = self.slots.remove(&key) {
            self.resident_bytes = self.resident_bytes.saturating_sub(slot.weight as usize);
            if slot.changed_in == self.generation {
                self.dirty_bytes = self.dirty_bytes.saturating_sub(slot.weight as usize);
            }
        }
    }

    fn slot<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&mut CachedRecord<T>>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        match self.slots.entry(key) {
            Entry::Occupied(entry) => {
                let slot = entry.into_mut();
                slot.used = true;
                Ok(Some(slot))
            }
            Entry::Vacant(entry) => match load()? {
                Some(value) => {
                    let slot = CachedRecord::saved(value);
                    self.queue.push_back(key);
                    self.resident_bytes += slot.weight as usize;
                    Ok(Some(entry.insert(slot)))
                }
                None => Ok(None),
            },
        }
    }

    /// Returns the stored type in one line: key space, name and version.
    pub(crate) fn stored_type(&self) -> String {
        format!("record {} {} version {}", T::SPACE, T::NAME, T::VERSION)
    }

    /// Returns the bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes { resident: self.resident_bytes, unsaved: self.dirty_bytes + self.frozen_bytes }
    }

    /// Evicts saved records that were not used since the last pass, until `enough` bytes are freed
    /// or `most` records were examined. Returns the number of bytes freed.
    pub fn evict(&mut self, enough: usize, most: usize) -> usize {
        let mut freed = 0;
        for _ in 0..most.min(self.queue.len()) {
            if freed >= enough {
                break;
            }
            let Some(key) = self.queue.pop_front() else { break };
            let Entry::Occupied(mut entry) = self.slots.entry(key) else { continue };
            let slot = entry.get_mut();
            // A collected record that is not in the store yet exists nowhere else.
            let is_saved = slot.changed_in == 0 && slot.collected_in <= self.durable;
            if is_saved && !slot.used {
                freed += slot.weight as usize;
                entry.remove();
                continue;
            }
            slot.used = false;
            // The store has the record as of the last checkpoint, and the pages that did not change
            // since.
            let pages_are_saved = is_saved || (self.frozen.is_empty() && self.durable + 1 == self.generation);
            if pages_are_saved && slot.has_pages {
                slot.value.shed();
                let (before, now) = slot.weigh();
                freed += before.saturating_sub(now);
                self.resident_bytes += now.saturating_sub(before);
                if slot.changed_in == self.generation {
                    self.dirty_bytes = self.dirty_bytes + now - before;
                }
            }
            self.queue.push_back(key);
        }
        self.resident_bytes = self.resident_bytes.saturating_sub(freed);
        freed
    }

    /// Begins a checkpoint of all changes so far. The cost does not depend on the number of
    /// records.
    pub fn freeze(&mut self) {
        debug_assert!(self.frozen.is_empty() && self.spilled.is_empty(), "one checkpoint at a time");
        self.frozen = std::mem::take(&mut self.dirty);
        self.frozen_bytes = std::mem::take(&mut self.dirty_bytes);
        self.generation += 1;
    }

    /// Records that the last collected checkpoint is in the store.
    pub fn mark_durable(&mut self) {
        self.durable = self.generation - 1;
    }

    /// Passes records of the checkpoint to `visit`, as they were at [`Table::freeze`]. Stops when
    /// `visit` returns [`ControlFlow::Break`], or after skipping many records that were already
    /// passed. Returns `false` after the last record.
    pub fn drain_frozen(&mut self, mut visit: impl FnMut(RecordKey, &T) -> ControlFlow<()>) -> bool {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some((key, value, weight)) = self.spilled.pop()
        {
            flow = visit(key, &value);
            self.frozen_bytes = self.frozen_bytes.saturating_sub(weight as usize);
        }
        let mut skipped = 0;
        self.touch_frozen();
        while flow.is_continue()
            && skipped < MOST_SKIPPED
            && let Some(key) = self.frozen.pop()
        {
            if let Some(slot) = self.slots.get_mut(&key)
                && slot.changed_in + 1 == self.generation
            {
                flow = visit(key, &slot.value);
                slot.value.saved();
                slot.changed_in = 0;
                slot.collected_in = self.generation - 1;
                let (before, now) = slot.weigh();
                self.resident_bytes = self.resident_bytes + now - before;
                self.frozen_bytes = self.frozen_bytes.saturating_sub(before);
            } else {
                skipped += 1;
            }
            if self.frozen.len().is_multiple_of(TOUCHED_TOGETHER) {
                self.touch_frozen();
            }
        }
        let has_more = self.has_frozen();
        if !has_more {
            self.frozen_bytes = 0;
            // Release memory that was only needed temporarily.
            self.frozen.shrink_to(1024);
            self.spilled.shrink_to(64);
        }
        has_more
    }

    /// Prefetches the next records of the checkpoint. They are scattered in memory, and the
    /// processor fetches several at once if no other work comes in between.
    fn touch_frozen(&self) {
        let next = &self.frozen[self.frozen.len().saturating_sub(TOUCHED_TOGETHER)..];
        let touched = next.iter().filter_map(|key| self.slots.get(key)).fold(0, |sum, slot| sum ^ slot.changed_in);
        std::hint::black_box(touched);
    }

    /// Returns the number of keys of the checkpoint that were not passed yet.
    #[must_use]
    pub fn frozen(&self) -> usize {
        self.spilled.len() + self.frozen.len()
    }

    /// Whether some records of the checkpoint were not passed yet.
    pub(crate) fn has_frozen(&self) -> bool {
        !self.spilled.is_empty() || !self.frozen.is_empty()
    }

    /// Returns the number of records changed since the last [`Table::freeze`].
    #[must_use]
    pub fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Returns the number of records in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.slots.len()
    }

    /// Returns the record of `key` if it is in memory. This does not count as a use.
    #[must_use]
    pub fn peek(&self, key: RecordKey) -> Option<&T> {
        self.slots.get(&key).map(|slot| &slot.value)
    }

    /// Returns the records in memory, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (RecordKey, &T)> {
        self.slots.iter().map(|(key, slot)| (*key, &slot.value))
    }
}

#[cfg(test)]
mod tests;
