use std::ops::Range;

use super::encoding::Encoding;
use super::numbers::{self, NumbersReader};
use super::pair::EncodedPair;
use super::prefix::{self, PrefixReader};
use crate::sstable::error::TableError;

/// Looks a key up in a block: `Some(None)` if the key is deleted, `None` if the block does not have it.
pub(in crate::sstable) fn find<'b>(
    encoding: Encoding,
    bytes: &'b [u8],
    key: &[u8],
) -> Result<Option<Option<&'b [u8]>>, TableError> {
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
    fn next(&mut self, bytes: &[u8]) -> Result<Option<EncodedPair>, TableError> {
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
    pub(in crate::sstable) fn empty() -> Self {
        Self {
            bytes: Vec::new(),
            pairs: PairReader::Prefix(PrefixReader::default()),
            key: Vec::new(),
            value: None,
            is_at_pair: false,
        }
    }

    /// A cursor before the first pair.
    pub(in crate::sstable) fn new(encoding: Encoding, bytes: Vec<u8>) -> Result<Self, TableError> {
        let (pairs, key) = match encoding {
            Encoding::Prefix => (PairReader::Prefix(PrefixReader::default()), Vec::new()),
            Encoding::Numbers => {
                let pairs = NumbersReader::new(&bytes)?;
                let key = pairs.prefix(&bytes).to_vec();
                (PairReader::Numbers(pairs), key)
            }
        };
        Ok(Self { bytes, pairs, key, value: None, is_at_pair: false })
    }

    /// Advances to the next pair; returns `false` at the end.
    pub(in crate::sstable) fn advance(&mut self) -> Result<bool, TableError> {
        let Some(pair) = self.pairs.next(&self.bytes)? else { return Ok(false) };
        let rest = &self.bytes[pair.rest];
        if self.key.get(pair.shared..).is_none_or(|before| before >= rest && self.is_at_pair) {
            return Err(TableError::damaged("the order of the pairs of a block"));
        }
        self.key.truncate(pair.shared);
        self.key.extend_from_slice(rest);
        self.value = pair.value;
        self.is_at_pair = true;
        Ok(true)
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
