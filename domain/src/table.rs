//! Records of one kind: in memory while in use, known to be saved or not, read back from the store on demand.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use crate::ids::RecordKey;
use crate::records::{Fault, Record};

/// Record keys are keyed hashes already: their low half is the hash.
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

#[derive(Debug, Clone)]
struct Slot<T> {
    value: T,
    /// The generation in which it last changed; 0: as saved.
    changed_in: u32,
}

/// Records by key, with what a checkpoint needs: the records that changed since the last one, and, while one is being
/// written, the old value of those that change again (so that writing can take its time).
#[derive(Debug)]
pub struct Table<T> {
    slots: HashMap<RecordKey, Slot<T>, BuildHasherDefault<Passthrough>>,
    generation: u32,
    dirty: Vec<RecordKey>,
    frozen: Vec<RecordKey>,
    spilled: Vec<(RecordKey, T)>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: HashMap::default(), generation: 1, dirty: Vec::new(), frozen: Vec::new(), spilled: Vec::new() }
    }
}

impl<T: Record> Table<T> {
    /// The record of `key`, from memory or by `load`.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn get<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        Ok(self.slot(key, load)?.map(|slot| &slot.value))
    }

    /// The record of `key`, to be changed: it counts as changed from here on.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn get_mut<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&mut T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        let Self { slots, generation, dirty, frozen, spilled } = self;
        let slot = match slots.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match load()? {
                Some(value) => entry.insert(Slot { value, changed_in: 0 }),
                None => return Ok(None),
            },
        };
        if slot.changed_in != *generation {
            if slot.changed_in + 1 == *generation && !frozen.is_empty() {
                spilled.push((key, slot.value.clone()));
                slot.value.saved();
            }
            slot.changed_in = *generation;
            dirty.push(key);
        }
        Ok(Some(&mut slot.value))
    }

    /// The record of `key`, to be changed in what is not part of its saved value: which of its pages are in memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn get_to_load<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&mut T>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        match self.slots.entry(key) {
            Entry::Occupied(entry) => Ok(Some(&mut entry.into_mut().value)),
            Entry::Vacant(entry) => match load()? {
                Some(value) => Ok(Some(&mut entry.insert(Slot { value, changed_in: 0 }).value)),
                None => Ok(None),
            },
        }
    }

    /// Puts a record in the place of whatever `key` had; the former record must have been looked up before.
    pub fn insert(&mut self, key: RecordKey, value: T) {
        match self.get_mut(key, || Ok(None)) {
            Ok(Some(slot)) => *slot = value,
            _ => {
                self.slots.insert(key, Slot { value, changed_in: self.generation });
                self.dirty.push(key);
            }
        }
    }

    fn slot<F>(&mut self, key: RecordKey, load: F) -> Result<Option<&Slot<T>>, Fault>
    where
        F: FnOnce() -> Result<Option<T>, Fault>,
    {
        match self.slots.entry(key) {
            Entry::Occupied(entry) => Ok(Some(entry.into_mut())),
            Entry::Vacant(entry) => match load()? {
                Some(value) => Ok(Some(entry.insert(Slot { value, changed_in: 0 }))),
                None => Ok(None),
            },
        }
    }

    /// Begins a checkpoint: what has changed so far is its content. Cheap, whatever the number of records.
    pub fn freeze(&mut self) {
        debug_assert!(self.frozen.is_empty() && self.spilled.is_empty(), "one checkpoint at a time");
        self.frozen = std::mem::take(&mut self.dirty);
        self.generation += 1;
    }

    /// Hands up to `most` records of the checkpoint to `visit`, as they were at [`Table::freeze`]. `false`: that was all.
    pub fn drain_frozen(&mut self, most: usize, mut visit: impl FnMut(RecordKey, &T)) -> bool {
        for (key, value) in self.spilled.drain(..) {
            visit(key, &value);
        }
        for _ in 0..most {
            let Some(key) = self.frozen.pop() else { return false };
            if let Some(slot) = self.slots.get_mut(&key)
                && slot.changed_in + 1 == self.generation
            {
                visit(key, &slot.value);
                slot.value.saved();
                slot.changed_in = 0;
            }
        }
        !self.frozen.is_empty()
    }

    /// How many records changed since the last [`Table::freeze`].
    #[must_use]
    pub fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// How many records are in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.slots.len()
    }

    /// The records in memory, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (RecordKey, &T)> {
        self.slots.iter().map(|(key, slot)| (*key, &slot.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    impl Record for u32 {
        const SPACE: u8 = 255;
        type Page = ();
    }

    fn drain(table: &mut Table<u32>, most: usize, into: &mut BTreeMap<RecordKey, u32>) -> bool {
        table.drain_frozen(most, |key, value| assert_eq!(into.insert(key, *value), None, "each record once"))
    }

    #[test]
    fn a_checkpoint_holds_what_was_there_when_it_began() {
        let mut table = Table::default();
        for key in 0..10 {
            table.insert(RecordKey(key), 1);
        }
        table.freeze();
        let mut saved = BTreeMap::new();
        assert!(drain(&mut table, 3, &mut saved));
        for key in 0..12 {
            match table.get_mut(RecordKey(key), || Ok(None)).unwrap() {
                Some(value) => *value = 2,
                None => table.insert(RecordKey(key), 2),
            }
        }
        while drain(&mut table, 3, &mut saved) {}
        assert_eq!(saved, (0..10).map(|key| (RecordKey(key), 1)).collect());
        assert_eq!(table.dirty(), 12);
        table.freeze();
        let mut next = BTreeMap::new();
        while drain(&mut table, 5, &mut next) {}
        assert_eq!(next, (0..12).map(|key| (RecordKey(key), 2)).collect());
        assert_eq!(table.dirty(), 0);
    }

    #[test]
    fn a_loaded_record_is_saved_only_when_it_changes() {
        let mut table: Table<u32> = Table::default();
        assert_eq!(table.get(RecordKey(1), || Ok(Some(5))), Ok(Some(&5)));
        assert_eq!(table.get(RecordKey(1), || Err(Fault("not asked again".into()))), Ok(Some(&5)));
        assert_eq!(table.get(RecordKey(2), || Ok(None)), Ok(None));
        assert_eq!(table.dirty(), 0);
        assert!(table.get(RecordKey(3), || Err(Fault("gone".into()))).is_err());
    }
}
