//! The encoding of pairs whose keys have one length and whose values are numbers of up to 8 bytes,
//! big endian. All pairs take the same space, so that a lookup is a binary search.
//!
//! ```text
//! rest     u8      how many bytes of each key are stored with its pair
//! width    u8      how many bytes a value takes
//! shared   u8      how many bytes all keys share
//! the shared bytes
//! then the pairs: rest of the key, value
//! ```

use std::cmp::Ordering;

use super::EncodedPair;
use crate::sstable::error::{Result, TableError};
use crate::sstable::key::compare_keys;

const HEADER_BYTES: usize = 3;
const VALUE_BYTES: usize = 8;

/// The operation in the error for a pair that cannot be encoded.
const NOT_A_NUMBER: &str = "encode a pair that is not a number";

/// Appends a pair, not yet encoded: the key, and the value in 8 bytes.
pub(super) fn push(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    let refused = || TableError::Io { action: NOT_A_NUMBER, source: std::io::ErrorKind::InvalidInput.into() };
    let value = value.filter(|value| value.len() <= VALUE_BYTES).ok_or_else(refused)?;
    bytes.extend_from_slice(key);
    let number = value.iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    bytes.extend_from_slice(&number.to_be_bytes());
    Ok(())
}

/// Encodes the pairs that were appended to `pairs`, whose keys have `key_len` bytes.
pub(super) fn encode(pairs: &[u8], key_len: usize) -> Result<Vec<u8>> {
    let refused = |_| TableError::Io { action: NOT_A_NUMBER, source: std::io::ErrorKind::InvalidInput.into() };
    let pairs = pairs.chunks_exact(key_len + VALUE_BYTES).map(|pair| pair.split_at(key_len));
    let (first, last) = (pairs.clone().next().unwrap_or_default().0, pairs.clone().next_back().unwrap_or_default().0);
    let common = first.iter().zip(last).take_while(|(one, other)| one == other).count();
    // Something of a key stays with its pair, also if there is only one.
    let shared = common.min(key_len.saturating_sub(1));
    let numbers = pairs.clone().map(|(_, value)| value.first_chunk().map_or(0, |value| u64::from_be_bytes(*value)));
    let skipped = numbers.max().unwrap_or(0).leading_zeros() as usize / 8;
    let (rest, width) = (key_len - shared, VALUE_BYTES - skipped);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + shared + pairs.len() * (rest + width));
    for field in [rest, width, shared] {
        bytes.push(u8::try_from(field).map_err(refused)?);
    }
    bytes.extend_from_slice(&first[..shared]);
    for (key, value) in pairs {
        bytes.extend_from_slice(&key[shared..]);
        bytes.extend_from_slice(&value[skipped..]);
    }
    Ok(bytes)
}

/// Reads encoded pairs.
#[derive(Debug, Default)]
pub(super) struct NumbersReader {
    at: usize,
    rest: usize,
    width: usize,
    shared: usize,
}

impl NumbersReader {
    /// Begins to read a block.
    pub(super) fn new(bytes: &[u8]) -> Result<Self> {
        let damaged = || TableError::damaged("the header of a block");
        let (header, pairs) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(damaged)?;
        let [rest, width, shared] = header.map(usize::from);
        let len = pairs.len().checked_sub(shared).filter(|_| rest > 0 && width <= VALUE_BYTES).ok_or_else(damaged)?;
        if len == 0 || !len.is_multiple_of(rest + width) {
            return Err(damaged());
        }
        Ok(Self { at: HEADER_BYTES + shared, rest, width, shared })
    }

    /// The bytes that all keys share.
    pub(super) fn prefix<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(HEADER_BYTES..HEADER_BYTES + self.shared).unwrap_or_default()
    }

    /// The next pair of the block; `None` at its end.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<EncodedPair> {
        let value = self.at + self.rest;
        let end = value + self.width;
        if end > bytes.len() || self.rest == 0 {
            return None;
        }
        Some(EncodedPair { shared: self.shared, rest: std::mem::replace(&mut self.at, end)..value, value: Some(value..end) })
    }

    /// Skips the pairs between the current and the last one, and returns their number. Checks the
    /// order of all of them.
    pub(super) fn skip_to_last(&mut self, bytes: &[u8]) -> Result<u64> {
        let pair_len = self.rest + self.width;
        let pairs = self.at.checked_sub(pair_len).and_then(|current| bytes.get(current..)).unwrap_or_default();
        let mut rests = pairs.chunks_exact(pair_len).map(|pair| &pair[..self.rest]);
        let skipped = rests.len().saturating_sub(2);
        let mut before = rests.next().unwrap_or_default();
        for rest in rests {
            if compare_keys(before, rest).is_ge() {
                return Err(TableError::damaged("the order of the pairs of a block"));
            }
            before = rest;
        }
        self.at += skipped * pair_len;
        Ok(skipped as u64)
    }
}

/// Looks up the value of a key.
pub(super) fn find<'b>(bytes: &'b [u8], key: &[u8]) -> Result<Option<&'b [u8]>> {
    let pairs = NumbersReader::new(bytes)?;
    let Some(wanted) = key.strip_prefix(pairs.prefix(bytes)).filter(|wanted| wanted.len() == pairs.rest) else { return Ok(None) };
    let (pair_len, pairs_bytes) = (pairs.rest + pairs.width, &bytes[pairs.at..]);
    let (mut low, mut high) = (0, pairs_bytes.len() / pair_len);
    while low < high {
        let middle = low.midpoint(high);
        let (rest, value) = pairs_bytes[middle * pair_len..][..pair_len].split_at(pairs.rest);
        match compare_keys(rest, wanted) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(Some(value)),
        }
    }
    Ok(None)
}
