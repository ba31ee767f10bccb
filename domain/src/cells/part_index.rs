//! Finds the part of a key, by an index of the first keys of parts.

use super::packed::{KeyBytes, MAX_KEY};

/// A key as big-endian integers, which compare with fewer instructions than bytes.
type Place = [u64; MAX_KEY / 8];

fn place(key: &KeyBytes) -> Place {
    let (words, _) = key.as_chunks::<8>();
    std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_be_bytes(*word)))
}

/// Whether `one` sorts before `other`, without branches that depend on them.
#[inline]
fn is_before([a, b, c]: &Place, [other_a, other_b, other_c]: &Place) -> bool {
    let joined = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let (one, other) = (joined(*a, *b), joined(*other_a, *other_b));
    one < other || (one == other && c < other_c)
}

/// The maximum number of parts of a chunk. An insertion moves half of them.
const CHUNK_PARTS: usize = 256;

/// The numbers of parts, in order of their first keys, in chunks of bounded size. Nearly all
/// rollups have one chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct PartIndex {
    /// None of them is empty.
    chunks: Vec<Vec<(Place, u32)>>,
}

impl PartIndex {
    /// Returns the part of a key: the last one whose first key is not greater, else the first one.
    pub(super) fn part_of(&self, key: &KeyBytes) -> Option<u32> {
        let place = place(key);
        let chunk = self.chunks.get(self.chunk_of(&place))?;
        let after = chunk.partition_point(|(first, _)| !is_before(&place, first));
        chunk.get(after.saturating_sub(1)).map(|(_, number)| *number)
    }

    /// Returns the last chunk that does not begin after `place`, else the first one.
    fn chunk_of(&self, place: &Place) -> usize {
        match self.chunks.len() {
            0 | 1 => 0,
            _ => self
                .chunks
                .partition_point(|chunk| chunk.first().is_some_and(|(first, _)| !is_before(place, first)))
                .saturating_sub(1),
        }
    }

    /// Adds a part. No other part may begin with the same key.
    pub(super) fn insert(&mut self, first: &KeyBytes, number: u32) {
        let place = place(first);
        let at = self.chunk_of(&place);
        let Some(chunk) = self.chunks.get_mut(at) else { return self.chunks.push(vec![(place, number)]) };
        chunk.insert(chunk.partition_point(|(other, _)| is_before(other, &place)), (place, number));
        if chunk.len() > CHUNK_PARTS {
            let later = chunk.split_off(CHUNK_PARTS / 2);
            self.chunks.insert(at + 1, later);
        }
    }

    /// Removes the part that begins with `first`, if there is one.
    pub(super) fn remove(&mut self, first: &KeyBytes) {
        let place = place(first);
        let at = self.chunk_of(&place);
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let found = chunk.partition_point(|(other, _)| is_before(other, &place));
        if chunk.get(found).is_some_and(|(other, _)| *other == place) {
            chunk.remove(found);
        }
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
    }

    /// Returns the numbers of the parts that may have keys from `first` to `last`, in order of
    /// their keys.
    pub(super) fn between<'s>(&'s self, first: &KeyBytes, last: &KeyBytes) -> impl DoubleEndedIterator<Item = u32> + use<'s> {
        let (from, to) = (place(first), place(last));
        let begin = self.chunk_of(&from);
        let end = if first <= last { self.chunk_of(&to) + 1 } else { begin };
        let chunks = self.chunks.get(begin..end.min(self.chunks.len())).unwrap_or_default();
        chunks.iter().flat_map(move |chunk| {
            // The part before the first one after `from` may contain later keys.
            let begin = chunk.partition_point(|(first, _)| !is_before(&from, first)).saturating_sub(1);
            let end = chunk.partition_point(|(first, _)| !is_before(&to, first));
            chunk.get(begin..end.max(begin)).unwrap_or_default().iter().map(|(_, number)| *number)
        })
    }

    /// Returns the numbers of all parts, in order of their keys.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.chunks.iter().flatten().map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Keys that differ in each of the three integers.
    fn key(number: u32) -> KeyBytes {
        let mut key = KeyBytes::default();
        let [a, b, c, d] = number.to_be_bytes();
        (key[0], key[7], key[12], key[23]) = (a, b, c, d);
        key
    }

    proptest! {
        #[test]
        fn parts_are_found_as_in_a_map(
            steps in proptest::collection::vec((any::<bool>(), 0..1u32 << 20), 0..1_500),
            asked in proptest::collection::vec((0..1u32 << 20, 0..1u32 << 20), 20),
        ) {
            let (mut index, mut map) = (PartIndex::default(), BTreeMap::new());
            // Spread, so that high and low bytes differ; more insertions than removals, so that
            // there are several chunks.
            let key_of = |number: u32| key(number << 12 | number >> 8);
            for (number, (inserts, key)) in (0..).zip(steps) {
                if inserts || number % 3 > 0 {
                    if map.insert(key_of(key), number).is_some() {
                        index.remove(&key_of(key));
                    }
                    index.insert(&key_of(key), number);
                } else if let Some(least) = map.range(key_of(key)..).map(|(key, _)| *key).next() {
                    map.remove(&least);
                    index.remove(&least);
                }
            }
            prop_assert!(index.numbers().eq(map.values().copied()));
            for (one, other) in asked {
                let (first, last) = (key_of(one), key_of(other));
                let before = map.range(..=first).next_back().or_else(|| map.first_key_value());
                prop_assert_eq!(index.part_of(&first), before.map(|(_, number)| *number));
                let begin = before.map_or(first, |(key, _)| *key);
                let expected: Vec<u32> = if first <= last { map.range(begin..=last.max(begin)).filter(|(key, _)| **key <= last).map(|(_, number)| *number).collect() } else { Vec::new() };
                let mut found: Vec<u32> = index.between(&first, &last).collect();
                prop_assert_eq!(&found, &expected);
                found = index.between(&first, &last).rev().collect();
                found.reverse();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
