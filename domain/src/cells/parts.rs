//! The rows of one rollup, sorted by key, in parts of bounded size. A change touches one part, and
//! a checkpoint writes the changed parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cells::packed::{Columns, KeyBytes, Packed};
use crate::cells::part_index::PartIndex;

/// The largest absolute value for [`Parts::add_in_place`], far below an overflow.
const LARGEST: i64 = 1 << 60;

/// [`signed`](crate::cells::signed) for a small number.
fn signed_short(number: u64) -> Option<i64> {
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed()).filter(|number| (-LARGEST..=LARGEST).contains(number))
}

/// [`unsigned`](crate::cells::unsigned) for a small number.
fn unsigned_short(number: i64) -> Option<u64> {
    (-LARGEST..=LARGEST).contains(&number).then(|| (number << 1).cast_unsigned() ^ (number >> 63).cast_unsigned())
}

/// The memory of a part beyond its rows: the struct, its entries in the index and the list, and the
/// allocator's overhead.
const PART_OVERHEAD: usize = 176;

fn weight(part: &Packed) -> usize {
    part.capacity() + PART_OVERHEAD
}

/// A part as written by a checkpoint: its number and its rows; `None` if the part was removed.
pub type FrozenPart = (u32, Option<Arc<Packed>>);

#[derive(Debug, Clone, Default)]
struct PartSlot {
    part: Option<Arc<Packed>>,
    dirty: bool,
}

/// The rows of a rollup in parts; see the module.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The maximum size of a part before it is split, in bytes of rows.
    part_bytes: usize,
    /// The numbers of the parts, by first key.
    index: PartIndex,
    /// The parts, by number. The last slot is never empty.
    slots: Vec<PartSlot>,
    /// The unused numbers below the greatest number in use.
    free: BTreeSet<u32>,
    /// The numbers of the parts changed or removed since the last checkpoint; may contain
    /// duplicates.
    dirty: Vec<u32>,
    rows: usize,
    bytes: usize,
}

impl PartialEq for Parts {
    /// Compares the rows. Ignores the division into parts and what is saved.
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.iter().eq(other.iter())
    }
}

impl Parts {
    /// Creates an empty list with parts of up to `part_bytes` bytes.
    pub fn new(part_bytes: usize) -> Self {
        Self {
            part_bytes,
            index: PartIndex::default(),
            slots: Vec::new(),
            free: BTreeSet::new(),
            dirty: Vec::new(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate memory of the rows, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn part(&self, number: u32) -> Option<&Packed> {
        self.slots.get(number as usize)?.part.as_deref()
    }

    /// Returns the value of a row.
    pub fn get(&self, key: &KeyBytes) -> Option<Columns> {
        let part = self.part(self.index.part_of(key)?)?;
        part.find(key).ok().map(|at| part.columns(at))
    }

    /// Changes the value of a row. `None` stands for a missing row, both before and after the
    /// change.
    pub fn change(&mut self, key_len: usize, key: &KeyBytes, change: impl FnOnce(Option<Columns>) -> Option<Columns>) {
        let Some(number) = self.index.part_of(key) else {
            if let Some(columns) = change(None) {
                self.rows += 1;
                self.add(Packed::new(key_len, key, &columns));
            }
            return;
        };
        let Some(slot) = self.slots.get_mut(number as usize) else { return };
        let Some(part) = &mut slot.part else { return };
        let found = part.find(key);
        let before = found.ok().map(|at| part.columns(at));
        let after = change(before);
        if before == after {
            return;
        }
        if let (Ok(at), Some(columns)) = (found, &after)
            && part.fits(columns)
        {
            Arc::make_mut(part).put(at, columns);
            return self.mark(number);
        }
        let was = weight(part);
        let first = if found == Ok(0) || found == Err(0) { Some(part.key(0)) } else { None };
        let part = Arc::make_mut(part);
        let at_end = found == Err(part.count());
        match (found, after) {
            (Ok(at), Some(columns)) => part.set(at, &columns),
            (Ok(at), None) => {
                part.remove(at);
                self.rows -= 1;
            }
            (Err(at), Some(columns)) => {
                part.insert(at, key, &columns);
                self.rows += 1;
            }
            (Err(_), None) => {}
        }
        self.bytes = self.bytes + weight(part) - was;
        let part_bytes = part.bytes();
        self.mark(number);
        if first.is_some() || part_bytes > self.part_bytes {
            self.rebalance(number, first, at_end);
        }
    }

    /// Adds `by` to the first column of a row, a signed number, if the row exists and keeps its
    /// length and is not removed. Returns the value before; `None` if nothing changed.
    pub(crate) fn add_in_place(&mut self, key: &KeyBytes, by: i64) -> Option<Columns> {
        let number = self.index.part_of(key)?;
        let part = self.slots.get_mut(number as usize)?.part.as_mut()?;
        let at = part.find(key).ok()?;
        let before = part.number(at)?;
        let after = signed_short(before)?.checked_add(by).filter(|after| *after != 0)?;
        let after = unsigned_short(after).filter(|after| part.fits_number(*after))?;
        Arc::make_mut(part).put_number(at, after);
        self.mark(number);
        Some([before.into(), 0, 0, 0])
    }

    /// Updates the index, and splits or removes a part after a change. `first` is the old first
    /// key, if it may have changed. If rows are appended, a split leaves most rows in place, since
    /// more will follow. It still moves some: rows that arrive in descending order before the next
    /// part would otherwise each become a part.
    fn rebalance(&mut self, number: u32, first: Option<KeyBytes>, at_end: bool) {
        let Some(part) = self.slots.get_mut(number as usize).and_then(|slot| slot.part.as_mut()) else { return };
        if part.count() == 0 {
            self.bytes -= weight(part);
            first.inspect(|first| self.index.remove(first));
            self.release(number);
            return;
        }
        if let Some(first) = first
            && part.key(0) != first
        {
            self.index.remove(&first);
            self.index.insert(&part.key(0), number);
        }
        if part.bytes() > self.part_bytes && part.count() > 1 {
            let was = weight(part);
            let part = Arc::make_mut(part);
            let kept = if at_end { part.count() * 7 / 8 } else { part.count() / 2 };
            let later = part.split_off(kept.max(1));
            self.bytes = self.bytes + weight(part) - was;
            self.add(later);
        }
    }

    /// Adds a part under the smallest unused number.
    fn add(&mut self, part: Packed) {
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.slots.push(PartSlot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.mark(number);
        self.put(number, part);
    }

    fn put(&mut self, number: u32, part: Packed) {
        self.bytes += weight(&part);
        self.index.insert(&part.key(0), number);
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.part = Some(Arc::new(part));
        }
    }

    /// Releases a number. The set of unused numbers depends only on the existing parts, so a
    /// restart does not change it.
    fn release(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.part = None;
            self.free.insert(number);
        }
        while self.slots.pop_if(|slot| slot.part.is_none()).is_some() {
            self.free.remove(&u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        }
    }

    fn mark(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize)
            && !std::mem::replace(&mut slot.dirty, true)
        {
            self.dirty.push(number);
        }
    }

    /// Restores a saved part; parts may come in any order.
    pub fn restore(&mut self, number: u32, part: Packed) {
        let known = self.slots.len();
        let needed = (number as usize).saturating_add(1);
        if known < needed {
            self.slots.resize_with(needed, PartSlot::default);
            self.free.extend((known..needed).filter_map(|number| u32::try_from(number).ok()));
        }
        self.free.remove(&number);
        self.rows += part.count();
        self.put(number, part);
    }

    /// Returns the current parts that changed since the last call. It is cheap: rows are only
    /// copied when they change again.
    pub fn freeze(&mut self) -> Vec<FrozenPart> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        let frozen = dirty.into_iter().map(|number| match self.slots.get_mut(number as usize) {
            Some(slot) => {
                slot.dirty = false;
                (number, slot.part.clone())
            }
            None => (number, None),
        });
        frozen.collect()
    }

    /// Returns the rows from `first` to `last`, both included, in order.
    pub fn range(&self, first: KeyBytes, last: KeyBytes) -> impl DoubleEndedIterator<Item = (KeyBytes, Columns)> {
        self.parts_between(&first, &last)
            .flat_map(move |part| part.between(&first, &last).map(move |at| (part.key(at), part.columns(at))))
    }

    /// [`Packed::visit_numbers`] for the rows from `first` to `last`, both included.
    pub(crate) fn visit_numbers(&self, first: &KeyBytes, last: &KeyBytes, mut visit: impl FnMut(u32, u128)) {
        for part in self.parts_between(first, last) {
            part.visit_numbers(part.between(first, last), &mut visit);
        }
    }

    /// Returns the parts that may have rows from `first` to `last`.
    fn parts_between<'s>(&'s self, first: &KeyBytes, last: &KeyBytes) -> impl DoubleEndedIterator<Item = &'s Packed> + use<'s> {
        self.index.between(first, last).filter_map(|number| self.part(number))
    }

    /// Returns all rows, in order.
    fn iter(&self) -> impl Iterator<Item = (KeyBytes, Columns)> {
        self.index.numbers().filter_map(|number| self.part(number)).flat_map(Packed::iter)
    }

    /// Returns the parts, in order of their rows.
    pub fn parts(&self) -> impl Iterator<Item = &Packed> {
        self.index.numbers().filter_map(|number| self.part(number))
    }
}
