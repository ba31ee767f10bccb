use std::ops::Range;

use super::numbers::{self, NumbersReader};
use super::prefix::{self, PrefixReader};
use super::{EncodedPair, Encoding};
use crate::sstable::error::{Result, TableError};
use crate::sstable::key::compare_keys;

/// Looks up a key in a block: `Some(None)` if the key is deleted, `None` if the block does not have
/// it.
pub(in crate::sstable) fn find<'b>(encoding: Encoding, bytes: &'b [u8], key: &[u8]) -> Result<Option<Option<&'b [u8]>>> {
    match encoding {
        Encoding::Prefix => prefix::find(bytes, key),
        Encoding::Numbers => Ok(numbers::find(bytes, key)?.map(Some)),
    }
}

#[derive(Debug)]
enum PairReader {
    Prefix(PrefixReader),
    Numbers(NumbersReader),
}

impl PairReader {
    fn next(&mut self, bytes: &[u8]) -> Result<Option<EncodedPair>> {
        match self {
            Self::Prefix(pairs) => pairs.next(bytes),
            Self::Numbers(pairs) => Ok(pairs.next(bytes)),
        }
    }
}

/// Visits the pairs of a block in order.
#[derive(Debug)]
pub(in crate::sstable) struct BlockCursor {
    bytes: Vec<u8>,
    pairs: PairReader,
    key: Vec<u8>,
    value: Option<Range<usize>>,
    is_at_pair: bool,
}

impl BlockCursor {
    /// A cursor over no pairs.
    pub(in crate::sstable) fn new(encoding: Encoding) -> Self {
        let pairs = match encoding {
            Encoding::Prefix => PairReader::Prefix(PrefixReader::default()),
            Encoding::Numbers => PairReader::Numbers(NumbersReader::default()),
        };
        Self { bytes: Vec::new(), pairs, key: Vec::new(), value: None, is_at_pair: false }
    }

    /// Moves before the first pair of a block.
    pub(in crate::sstable) fn load(&mut self, block: &[u8]) -> Result<()> {
        self.bytes.clear();
        self.bytes.extend_from_slice(block);
        self.key.clear();
        self.is_at_pair = false;
        match &mut self.pairs {
            PairReader::Prefix(pairs) => *pairs = PrefixReader::default(),
            PairReader::Numbers(pairs) => {
                *pairs = NumbersReader::new(block)?;
                self.key.extend_from_slice(pairs.prefix(block));
            }
        }
        Ok(())
    }

    /// Advances to the next pair; returns `false` at the end.
    pub(in crate::sstable) fn advance(&mut self) -> Result<bool> {
        let Some(pair) = self.pairs.next(&self.bytes)? else { return Ok(false) };
        let rest = &self.bytes[pair.rest];
        if self.key.get(pair.shared..).is_none_or(|before| self.is_at_pair && compare_keys(before, rest).is_ge()) {
            return Err(TableError::damaged("the order of the pairs of a block"));
        }
        self.key.truncate(pair.shared);
        self.key.extend_from_slice(rest);
        self.value = pair.value;
        self.is_at_pair = true;
        Ok(true)
    }

    /// Advances to the last pair, and returns how many pairs it advanced.
    pub(in crate::sstable) fn skip_to_last(&mut self) -> Result<u64> {
        let mut skipped = match &mut self.pairs {
            PairReader::Numbers(pairs) if self.is_at_pair => pairs.skip_to_last(&self.bytes)?,
            _ => 0,
        };
        // The order of the skipped pairs was checked, so the last one needs no comparison.
        self.is_at_pair = skipped == 0;
        while self.advance()? {
            skipped += 1;
        }
        Ok(skipped)
    }

    /// The key of the current pair.
    pub(in crate::sstable) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the current pair; `None` if the key is deleted.
    pub(in crate::sstable) fn value(&self) -> Option<&[u8]> {
        self.value.clone().and_then(|value| self.bytes.get(value))
    }
}
