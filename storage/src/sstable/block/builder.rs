use std::borrow::Cow;

use super::{Encoding, numbers, prefix};
use crate::sstable::error::Result;

/// Encodes the pairs of a block.
#[derive(Debug)]
pub(in crate::sstable) struct BlockBuilder {
    encoding: Encoding,
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl BlockBuilder {
    /// An empty block.
    pub(in crate::sstable) fn new(encoding: Encoding) -> Self {
        Self { encoding, bytes: Vec::new(), last: Vec::new() }
    }

    /// Appends a pair. Its key must be greater than the one before.
    pub(in crate::sstable) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        match self.encoding {
            Encoding::Prefix => {
                let last = if self.bytes.is_empty() { &[] } else { self.last.as_slice() };
                prefix::push(&mut self.bytes, last, key, value);
            }
            Encoding::Numbers => numbers::push(&mut self.bytes, key, value)?,
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// The length of the pairs, before numbers are shortened.
    pub(in crate::sstable) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The last key, also if it went into an earlier block.
    pub(in crate::sstable) fn last_key(&self) -> &[u8] {
        &self.last
    }

    /// The encoded pairs.
    pub(in crate::sstable) fn encode(&self) -> Result<Cow<'_, [u8]>> {
        match self.encoding {
            Encoding::Prefix => Ok(Cow::Borrowed(&self.bytes)),
            Encoding::Numbers => numbers::encode(&self.bytes, self.last.len()).map(Cow::Owned),
        }
    }

    /// Begins the next block.
    pub(in crate::sstable) fn clear(&mut self) {
        self.bytes.clear();
    }
}
