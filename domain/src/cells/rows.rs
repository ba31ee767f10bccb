//! The rows of one kind in one project.

use std::marker::PhantomData;

use super::journal::Journal;
use super::keys::{Key, Value};
use super::packed::{Columns, KeyBytes, MAX_KEY, Packed};
use super::parts::{FrozenPart, Parts};
use crate::limits::Limits;
use crate::time::Day;

/// The rows of one kind in one project, sorted by key.
pub struct Cells<K, V> {
    parts: Parts,
    /// `None` if nobody needs the changed rows.
    journal: Option<Journal>,
    /// Whether keys begin with a day.
    dated: bool,
    /// Rows whose keys begin with a smaller day don't change any more.
    floor: [u8; i32::BYTES],
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Default for Cells<K, V> {
    fn default() -> Self {
        Self::new(&Limits::DEFAULT)
    }
}

impl<K, V> Clone for Cells<K, V> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), journal: self.journal.clone(), dated: self.dated, floor: self.floor, kind: PhantomData }
    }
}

impl<K, V> PartialEq for Cells<K, V> {
    /// Compares the rows, not what is saved.
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl<K: Key, V: Value> std::fmt::Debug for Cells<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

fn packed<K: Key>(key: K, rest: u8) -> KeyBytes {
    let mut bytes = [rest; MAX_KEY];
    key.pack(&mut bytes[..K::BYTES]);
    bytes
}

fn whole<K: Key>(key: K) -> KeyBytes {
    packed(key, 0)
}

fn row<K: Key, V: Value>((key, columns): (KeyBytes, Columns)) -> (K, V) {
    (K::unpack(&key[..K::BYTES]), V::from_columns(&columns))
}

impl<K: Key, V: Value> Cells<K, V> {
    /// Returns the value of a row, if it exists.
    pub fn get(&self, key: K) -> Option<V> {
        self.parts.get(&whole(key)).map(|columns| V::from_columns(&columns))
    }

    /// Inserts or replaces a row.
    pub fn set(&mut self, key: K, value: V) {
        self.alter(key, |_| Some(value.columns()));
    }

    /// Removes a row, if it exists.
    pub fn remove(&mut self, key: K) {
        self.alter(key, |_| None);
    }

    fn alter(&mut self, key: K, change: impl FnOnce(Option<Columns>) -> Option<Columns>) {
        let key = whole(key);
        if key[..i32::BYTES] < self.floor[..] {
            return;
        }
        let (mut before, mut differs) = (None, false);
        self.parts.change(K::BYTES, &key, |columns| {
            let after = change(columns);
            (before, differs) = (columns, columns != after);
            after
        });
        if let Some(journal) = self.journal.as_mut().filter(|_| differs) {
            journal.record(key, before, &self.parts);
        }
    }

    /// Returns all rows whose keys begin with `key`.
    pub fn under<P: Key>(&self, key: P) -> impl DoubleEndedIterator<Item = (K, V)> {
        self.between(key, key)
    }

    /// Returns all rows from the rows whose keys begin with `first` to the rows whose keys begin
    /// with `last`, in order.
    pub fn between<P: Key>(&self, first: P, last: P) -> impl DoubleEndedIterator<Item = (K, V)> {
        const { assert!(P::BYTES <= K::BYTES, "a key begins with no longer one") };
        self.parts.range(packed(first, 0), packed(last, u8::MAX)).map(row)
    }

    /// Returns all rows from the row of `first` to the rows whose keys begin with `last`, in order.
    pub fn since<P: Key>(&self, first: K, last: P) -> impl Iterator<Item = (K, V)> {
        const { assert!(P::BYTES <= K::BYTES, "a key begins with no longer one") };
        self.parts.range(whole(first), packed(last, u8::MAX)).map(row)
    }

    /// Passes the number at the end of the key, and the value, of all rows whose keys begin with
    /// `key` to `visit`. Faster than [`Cells::under`], for keys that end with a `u32` and values of
    /// one column.
    pub(crate) fn visit_numbers<P: Key>(&self, key: P, mut visit: impl FnMut(u32, V)) {
        let (first, last) = (packed(key, 0), packed(key, u8::MAX));
        self.parts.visit_numbers(&first, &last, |number, column| visit(number, V::from_columns(&[column, 0, 0, 0])));
    }

    fn columns(&self) -> impl DoubleEndedIterator<Item = (KeyBytes, Columns)> {
        self.parts.range([0; MAX_KEY], [u8::MAX; MAX_KEY])
    }

    /// Returns all rows, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, V)> {
        self.columns().map(row)
    }

    /// Passes the rows that differ from those of `other` to `visit`, in order of their keys: the
    /// key, the columns here, and the columns there. Returns the number of rows that were compared.
    pub fn compare(&self, other: &Self, mut visit: impl FnMut(K, Option<Columns>, Option<Columns>)) -> u64 {
        let (mut here, mut there, mut compared) = (self.columns().peekable(), other.columns().peekable(), 0);
        loop {
            let key = match (here.peek(), there.peek()) {
                (Some((left, _)), Some((right, _))) => *left.min(right),
                (Some((key, _)), None) | (None, Some((key, _))) => *key,
                (None, None) => return compared,
            };
            let left = here.next_if(|(other, _)| *other == key).map(|(_, columns)| columns);
            let right = there.next_if(|(other, _)| *other == key).map(|(_, columns)| columns);
            compared += 1;
            if left != right {
                visit(K::unpack(&key[..K::BYTES]), left, right);
            }
        }
    }

    /// Restores a saved part. Returns `false` if its keys do not fit.
    pub fn restore(&mut self, number: u32, part: Packed) -> bool {
        let fits = part.key_len() == K::BYTES && number <= MAX_NUMBER;
        if fits {
            self.parts.restore(number, part);
        }
        fits
    }
}

impl<K: Key, V: Value + Default + PartialEq> Cells<K, V> {
    /// Changes a sum. A sum that becomes zero is removed, so that equal sums are equal rows.
    pub fn change(&mut self, key: K, change: impl FnOnce(&mut V)) {
        self.alter(key, |columns| {
            let mut value = columns.map_or_else(V::default, |columns| V::from_columns(&columns));
            change(&mut value);
            (value != V::default()).then(|| value.columns())
        });
    }
}

impl<K: Key> Cells<K, i64> {
    /// Adds to a sum. Like [`Cells::change`], but faster if the row exists and keeps its length.
    pub fn add(&mut self, key: K, by: i64) {
        let bytes = whole(key);
        if bytes[..i32::BYTES] < self.floor[..] || by == 0 {
            return;
        }
        let Some(before) = self.parts.add_in_place(&bytes, by) else { return self.change(key, |sum| *sum += by) };
        if let Some(journal) = &mut self.journal {
            journal.record(bytes, Some(before), &self.parts);
        }
    }
}

/// The greatest allowed part number; more parts would exceed some hundred gigabytes.
const MAX_NUMBER: u32 = 1 << 26;

impl<K, V> Cells<K, V> {
    /// Creates empty rows.
    pub fn new(limits: &Limits) -> Self {
        Self::without_journal(limits, false)
    }

    /// Creates empty rows with a journal of changes. With `dated`, keys begin with a day.
    pub(crate) fn with_journal(limits: &Limits, dated: bool) -> Self {
        Self { journal: Some(Journal::new(dated)), ..Self::without_journal(limits, dated) }
    }

    /// Creates empty rows without a journal of changes. With `dated`, keys begin with a day.
    pub(crate) fn without_journal(limits: &Limits, dated: bool) -> Self {
        Self { parts: Parts::new(limits.part_bytes), journal: None, dated, floor: [0; i32::BYTES], kind: PhantomData }
    }

    /// Freezes the rows of the days before `first`, if keys begin with a day.
    pub(crate) fn set_floor(&mut self, first: Option<Day>) {
        self.floor = [0; i32::BYTES];
        if let Some(first) = first.filter(|_| self.dated) {
            first.0.pack(&mut self.floor);
        }
    }

    /// Passes the days of the rows that changed since the last call to `touch`; `None` for rows
    /// without a day.
    pub fn drain(&mut self, touch: &mut impl FnMut(Option<Day>)) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| !journal.is_empty()) {
            journal.drain(&self.parts, touch);
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.parts.rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.parts.rows() == 0
    }

    /// Returns the approximate memory of the rows, in bytes.
    pub fn weight(&self) -> usize {
        self.parts.bytes()
    }

    /// Returns the parts of the rows.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the current parts that changed since the last call.
    pub fn freeze(&mut self) -> Vec<FrozenPart> {
        self.parts.freeze()
    }
}
