//! A blocked Bloom filter: which fingerprints (or hashes of keys) a run certainly does not hold.
//!
//! A fingerprint is uniformly random already, so its own bits say where to look: the high half chooses a block of 512
//! bits (one cache line), the low half six bits of it. At 12 bits a fingerprint about 0.6 % of the strangers pass.

/// Bits of the filter for each fingerprint.
const BITS_PER_ENTRY: u64 = 12;
/// Bits set by each fingerprint; nine bits of the low half choose one.
const PROBES: u32 = 6;
const WORDS: usize = 8;
/// The size of a block on disk.
pub(crate) const BLOCK_BYTES: usize = WORDS * 8;

type Block = [u64; WORDS];

/// The filter of one run.
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Vec<Block>,
}

impl Filter {
    /// An empty filter for so many fingerprints.
    pub(crate) fn for_entries(entries: u64) -> Self {
        let blocks = (entries * BITS_PER_ENTRY).div_ceil(BLOCK_BYTES as u64 * 8).max(1);
        Self { blocks: vec![[0; WORDS]; usize::try_from(blocks).unwrap_or(usize::MAX)] }
    }

    fn block(&self, fingerprint: u128) -> usize {
        let high = fingerprint >> 64;
        // Below the number of blocks, since `high` is below 2^64.
        ((high * self.blocks.len() as u128) >> 64) as usize
    }

    /// Takes a fingerprint in.
    pub(crate) fn insert(&mut self, fingerprint: u128) {
        let at = self.block(fingerprint);
        if let Some(block) = self.blocks.get_mut(at) {
            for (word, bit) in probes(fingerprint) {
                block[word] |= bit;
            }
        }
    }

    /// Whether the fingerprint may be there.
    pub(crate) fn may_hold(&self, fingerprint: u128) -> bool {
        self.blocks
            .get(self.block(fingerprint))
            .is_some_and(|block| probes(fingerprint).all(|(word, bit)| block[word] & bit != 0))
    }

    /// The filter as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The filter of these bytes; `None` if they can't be one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        if blocks.is_empty() || !rest.is_empty() {
            return None;
        }
        let word =
            |block: &[u8; BLOCK_BYTES], at: usize| block.as_chunks::<8>().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Some(Self { blocks: blocks.iter().map(|block| std::array::from_fn(|at| word(block, at))).collect() })
    }

    /// The memory it takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES) as u64
    }
}

/// The words and bits of a block that belong to a fingerprint.
fn probes(fingerprint: u128) -> impl Iterator<Item = (usize, u64)> {
    let low = fingerprint as u64;
    (0..PROBES).map(move |probe| {
        let nine = (low >> (9 * probe)) & 0x1ff;
        ((nine >> 6) as usize, 1 << (nine & 63))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(number: u64) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes())
    }

    #[test]
    fn holds_what_went_in_and_little_else() {
        let mut filter = Filter::for_entries(100_000);
        (0..100_000).for_each(|number| filter.insert(fingerprint(number)));
        let filter = Filter::decode(&filter.encode()).unwrap();
        assert!((0..100_000).all(|number| filter.may_hold(fingerprint(number))));
        let strangers = (100_000..200_000).filter(|number| filter.may_hold(fingerprint(*number))).count();
        assert!(strangers < 1_000, "{strangers} of 100,000 strangers pass");
        assert!(filter.memory_bytes() < 2 * 100_000);
    }
}
