//! The content of a checkpoint: keys and values in a few large blocks, since there may be hundreds
//! of thousands.

use headcount_storage::background;

/// The maximum size of a block, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// The room for the end of a block's last entry. A larger entry makes the block grow.
const SPARE_BYTES: usize = 16 << 10;
/// The number of entries first sorted between two calls of [`background::give_way`].
const SORTED_TOGETHER: usize = 1 << 15;
/// The length of a value whose key is deleted.
const DELETED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Span {
    /// The first bytes of the key, which decide nearly every comparison without reading the block.
    /// Shorter keys are padded with zeroes.
    head: [u32; 4],
    block: u32,
    start: u32,
    key: u32,
    /// The length of the value, or [`DELETED`].
    value: u32,
}

/// Keys, each with its new value.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    blocks: Vec<Vec<u8>>,
    spans: Vec<Span>,
}

impl Entries {
    /// Reserves room for `more` entries.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.spans.reserve(more);
    }

    /// Adds a key, and the value that `write` appends.
    pub(crate) fn put<E>(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let (block, bytes) = self.block();
        let start = bytes.len();
        bytes.extend_from_slice(key);
        write(bytes)?;
        let value = bytes.len() - start - key.len();
        self.spans.push(Span { head: head(key), block, start: narrow(start), key: narrow(key.len()), value: narrow(value) });
        Ok(())
    }

    /// Adds the deletion of a key.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        let (block, bytes) = self.block();
        let start = bytes.len();
        bytes.extend_from_slice(key);
        self.spans.push(Span { head: head(key), block, start: narrow(start), key: narrow(key.len()), value: DELETED });
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The memory of the entries.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.iter().map(Vec::capacity).sum::<usize>() + self.spans.capacity() * size_of::<Span>()
    }

    /// All entries, in the order in which they were added, or of [`Entries::sort`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.spans.iter().filter_map(|span| {
            let rest = self.blocks.get(span.block as usize)?.get(span.start as usize..)?;
            let (key, rest) = rest.split_at_checked(span.key as usize)?;
            let value = (span.value != DELETED).then(|| rest.get(..span.value as usize)).flatten();
            Some((key, value))
        })
    }

    /// Sorts the entries by key, the order that the store takes most easily. Entries with the same
    /// key keep their order.
    pub(crate) fn sort(&mut self) {
        let Self { blocks, spans } = self;
        let key = |span: &Span| {
            let rest = blocks.get(span.block as usize).and_then(|block| block.get(span.start as usize..));
            rest.and_then(|rest| rest.get(..span.key as usize)).unwrap_or_default()
        };
        let mut sorted = SORTED_TOGETHER;
        loop {
            for part in spans.chunks_mut(sorted) {
                // From the second time on, this merges sorted halves.
                part.sort_by(|one, other| one.head.cmp(&other.head).then_with(|| key(one).cmp(key(other))));
                background::give_way();
            }
            if sorted >= spans.len() {
                return;
            }
            sorted *= 2;
        }
    }

    /// The block for the next entry.
    fn block(&mut self) -> (u32, &mut Vec<u8>) {
        if self.blocks.last().is_none_or(|block| block.len() >= BLOCK_BYTES) {
            // Small checkpoints need little. If a second block is needed, it may well be filled.
            self.blocks.push(if self.blocks.is_empty() { Vec::new() } else { Vec::with_capacity(BLOCK_BYTES + SPARE_BYTES) });
        }
        let number = narrow(self.blocks.len() - 1);
        let last = self.blocks.len() - 1;
        (number, &mut self.blocks[last])
    }
}

fn head(key: &[u8]) -> [u32; 4] {
    let mut head = [0; 16];
    let length = key.len().min(head.len());
    head[..length].copy_from_slice(&key[..length]);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    [word(0), word(4), word(8), word(12)]
}

/// Lengths within a block and its last entry fit, since the store takes no value of more than 64
/// MiB.
fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(DELETED - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_sorted_and_those_of_one_key_stay_in_their_order() {
        let mut entries = Entries::default();
        let mut expected = Vec::new();
        let mut random = 1_u64;
        for number in 0..100_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Keys of several lengths, many of which differ late or not at all.
            let mut key = [vec![7; (random >> 60) as usize], (random >> 40).to_be_bytes().to_vec()].concat();
            key.truncate((random >> 32) as usize % 24);
            let written: Result<(), ()> = entries.put(&key, |bytes| {
                bytes.extend(number.to_be_bytes());
                Ok(())
            });
            written.unwrap();
            expected.push((key, number));
        }
        entries.sort();
        expected.sort();
        let number = |value: &[u8]| u32::from_be_bytes(value.try_into().unwrap());
        assert!(entries.iter().map(|(key, value)| (key.to_vec(), number(value.unwrap()))).eq(expected));
    }

    #[test]
    fn what_was_added_comes_back_in_order() {
        let mut entries = Entries::default();
        let value = |number: u32| vec![number as u8; number as usize * 7 % 5000];
        for number in 0..2_000u32 {
            let key = number.to_be_bytes();
            if number % 10 == 3 {
                entries.delete(&key);
                continue;
            }
            let written: Result<(), ()> = entries.put(&key, |bytes| {
                bytes.extend(value(number));
                Ok(())
            });
            written.unwrap();
        }
        assert!(entries.blocks.len() > 2);
        for (number, (key, held)) in (0u32..).zip(entries.iter()) {
            assert_eq!(key, number.to_be_bytes());
            assert_eq!(held, (number % 10 != 3).then(|| value(number)).as_deref());
        }
        assert_eq!(entries.iter().count(), 2_000);
        entries.delete(&7u32.to_be_bytes());
        entries.delete(&[]);
        entries.sort();
        let keys: Vec<_> = entries.iter().map(|(key, value)| (key.to_vec(), value.is_some())).collect();
        assert!(keys.is_sorted_by_key(|(key, _)| key.clone()));
        assert_eq!(
            keys[8..10],
            [7, 7].map(|number: u32| number.to_be_bytes().to_vec()).into_iter().zip([true, false]).collect::<Vec<_>>()
        );
    }
}
