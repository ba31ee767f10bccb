//! A blocked Bloom filter over the hashes of a table's keys.
//!
//! The high half of a hash selects a block of 512 bits (one cache line), the low half six bits of
//! it. With 12 bits per key, about 0.6 % of absent keys pass.

const BITS_PER_KEY: u64 = 12;
/// Bits set by each hash; nine bits of its low half select one.
const PROBES: u32 = 6;
const WORDS: usize = 8;
/// The size of a block on disk.
const FILTER_BLOCK_BYTES: usize = WORDS * 8;

type FilterBlock = [u64; WORDS];

/// The filter of one table.
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Vec<FilterBlock>,
}

impl Filter {
    /// An empty filter for this number of keys.
    pub(crate) fn for_keys(keys: u64) -> Self {
        let blocks = (keys * BITS_PER_KEY).div_ceil(FILTER_BLOCK_BYTES as u64 * 8).max(1);
        Self { blocks: vec![[0; WORDS]; usize::try_from(blocks).unwrap_or(usize::MAX)] }
    }

    fn block(&self, hash: u128) -> usize {
        let high = hash >> 64;
        // Below the number of blocks, since `high` is below 2^64.
        ((high * self.blocks.len() as u128) >> 64) as usize
    }

    /// Adds a hash.
    pub(crate) fn insert(&mut self, hash: u128) {
        let at = self.block(hash);
        if let Some(block) = self.blocks.get_mut(at) {
            for (word, bit) in probes(hash) {
                block[word] |= bit;
            }
        }
    }

    /// Whether a key with this hash may be in the table.
    pub(crate) fn may_hold(&self, hash: u128) -> bool {
        self.blocks.get(self.block(hash)).is_some_and(|block| probes(hash).all(|(word, bit)| block[word] & bit != 0))
    }

    /// Encodes the filter.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Decodes a filter; `None` if the length is wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks::<FILTER_BLOCK_BYTES>();
        if blocks.is_empty() || !rest.is_empty() {
            return None;
        }
        let word = |block: &[u8; FILTER_BLOCK_BYTES], at: usize| {
            block.as_chunks::<8>().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        Some(Self { blocks: blocks.iter().map(|block| std::array::from_fn(|at| word(block, at))).collect() })
    }

    /// The memory that the filter takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.blocks.len() * FILTER_BLOCK_BYTES) as u64
    }
}

/// The words and bits of a block that a hash selects.
fn probes(hash: u128) -> impl Iterator<Item = (usize, u64)> {
    let low = hash as u64;
    (0..PROBES).map(move |probe| {
        let nine = (low >> (9 * probe)) & 0x1ff;
        ((nine >> 6) as usize, 1 << (nine & 63))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes())
    }

    #[test]
    fn passes_all_of_its_keys_and_few_others() {
        let mut filter = Filter::for_keys(100_000);
        (0..100_000).for_each(|number| filter.insert(hash(number)));
        let filter = Filter::decode(&filter.encode()).unwrap();
        assert!((0..100_000).all(|number| filter.may_hold(hash(number))));
        let others = (100_000..200_000).filter(|number| filter.may_hold(hash(*number))).count();
        assert!(others < 1_000, "{others} of 100,000 others pass");
        assert!(filter.memory_bytes() < 2 * 100_000);
    }
}
