//! The encoding of pairs of any length: the prefix that a key shares with the one before is left
//! out.
//!
//! ```text
//! pair    shared   varint   how many bytes the key shares with the key before
//!         rest     varint   how many bytes follow
//!         key bytes
//!         value    varint   0: the key is deleted; otherwise the length of the value + 1
//!         value bytes
//! ```

use std::ops::Range;

use super::EncodedPair;
use crate::sstable::error::{Result, TableError};

/// Appends a pair to a block, whose last key is `last`, or empty at the beginning.
pub(super) fn push(bytes: &mut Vec<u8>, last: &[u8], key: &[u8], value: Option<&[u8]>) {
    let shared = common(last, key);
    put(bytes, shared);
    put(bytes, key.len() - shared);
    bytes.extend_from_slice(&key[shared..]);
    put(bytes, value.map_or(0, |value| value.len() + 1));
    bytes.extend_from_slice(value.unwrap_or_default());
}

fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads encoded pairs.
#[derive(Debug, Default)]
pub(super) struct PrefixReader {
    at: usize,
}

impl PrefixReader {
    /// The next pair of the block; `None` at its end.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<EncodedPair>> {
        if self.at >= bytes.len() {
            return Ok(None);
        }
        match self.pair(bytes) {
            None => Err(TableError::damaged("the pairs of a block")),
            pair => Ok(pair),
        }
    }

    fn pair(&mut self, bytes: &[u8]) -> Option<EncodedPair> {
        let shared = self.number(bytes)?;
        let len = self.number(bytes)?;
        let rest = self.span(bytes, len)?;
        let value = match self.number(bytes)? {
            0 => None,
            len => Some(self.span(bytes, len - 1)?),
        };
        Some(EncodedPair { shared, rest, value })
    }

    fn span(&mut self, bytes: &[u8], len: usize) -> Option<Range<usize>> {
        let end = self.at.checked_add(len).filter(|end| *end <= bytes.len())?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }

    fn number(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = *bytes.get(self.at)?;
            self.at += 1;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

/// Looks a key up in a block: `Some(None)` if the key is deleted, `None` if the block does not have
/// it.
pub(super) fn find<'b>(bytes: &'b [u8], key: &[u8]) -> Result<Option<Option<&'b [u8]>>> {
    let mut pairs = PrefixReader::default();
    // How many bytes `key` shares with the key before, which is smaller. A pair that shares more
    // with that key is smaller, too, and one that shares less is greater: neither has to be
    // compared.
    let mut matched = 0;
    while let Some(pair) = pairs.next(bytes)? {
        if pair.shared > matched {
            continue;
        }
        if pair.shared < matched {
            return Ok(None);
        }
        let (here, wanted) = (&bytes[pair.rest], key.get(matched..).unwrap_or_default());
        let equal = common(here, wanted);
        matched += equal;
        match (here.get(equal), wanted.get(equal)) {
            (None, None) => return Ok(Some(pair.value.map(|value| &bytes[value]))),
            (here, wanted) if here < wanted => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}
