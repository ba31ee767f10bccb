//! Values that the first event which reports them fixes, sorted on disk: of each key the one that
//! was recorded first.

use std::io;
use std::iter::Peekable;

use headcount_domain::{Position, RecordKey};

use super::super::external_sort::{Sorted, Sorter};
use super::super::identities::{KEY, bytes, key_of};
use super::super::spill_dir::SpillDir;

/// A key, a position and a value.
const PIN: usize = KEY + 8 + KEY;

/// The value of a key, and the position of the event that reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) key: RecordKey,
    pub(super) position: Position,
    pub(super) value: RecordKey,
}

/// Collects values of keys, on disk.
pub(super) struct Pins(Sorter<PIN>);

impl Pins {
    pub(super) fn new(scratch: &SpillDir, sort_bytes: usize) -> Self {
        Self(Sorter::new(scratch, KEY, sort_bytes))
    }

    pub(super) fn push(&mut self, Pin { key, position, value }: Pin) -> io::Result<()> {
        let mut pin = [0; PIN];
        pin[..KEY].copy_from_slice(&bytes(key));
        pin[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());
        pin[KEY + 8..].copy_from_slice(&bytes(value));
        self.0.push(pin)
    }

    /// Returns the first recorded value of each key, by key.
    pub(super) fn finish(self) -> io::Result<FirstPins> {
        Ok(FirstPins(self.0.finish()?.peekable()))
    }
}

/// The first recorded value of each key, by key.
pub(super) struct FirstPins(Peekable<Sorted<PIN>>);

impl Iterator for FirstPins {
    type Item = io::Result<Pin>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|pin| pin.map(|pin| read(&pin)))
    }
}

impl FirstPins {
    /// Returns the value of a key. Keys must rise from call to call.
    pub(super) fn of(&mut self, key: RecordKey) -> io::Result<Option<RecordKey>> {
        while self.0.next_if(|pin| pin.as_ref().is_ok_and(|pin| read(pin).key < key)).is_some() {}
        match self.0.peek() {
            Some(Ok(pin)) => Ok(Some(read(pin)).filter(|pin| pin.key == key).map(|pin| pin.value)),
            Some(Err(_)) => self.0.next().transpose().map(|_| None),
            None => Ok(None),
        }
    }
}

fn read(pin: &[u8; PIN]) -> Pin {
    let (key, rest) = pin.split_at(KEY);
    let (position, value) = rest.split_at(8);
    Pin { key: key_of(key), position: position.try_into().map_or(0, Position::from_be_bytes), value: key_of(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_recorded_value_of_each_key_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let mut pins = Pins::new(&SpillDir::new(dir.path()), 100);
        for (key, position, value) in [(5, 9, 50), (2, 4, 21), (2, 3, 22), (5, 2, 51), (9, 1, 90)] {
            pins.push(Pin { key: RecordKey(key), position, value: RecordKey(value) }).unwrap();
        }
        let mut pins = pins.finish().unwrap();
        let found = [1, 2, 2, 3, 5, 6, 9, 10].map(|key| pins.of(RecordKey(key)).unwrap().map(|value| value.0));
        assert_eq!(found, [None, Some(22), Some(22), None, Some(51), None, Some(90), None]);
    }
}
