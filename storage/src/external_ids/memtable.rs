//! External ids in memory, and their encoding in tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::error::ExternalIdsError;
use crate::sstable::{Encoding, Layout, TableList, newest};

/// The low 80 bits of fingerprints are random, so compression gains nothing.
pub(super) const LAYOUT: Layout = Layout {
    encoding: Encoding::Numbers,
    block_bytes: 5 << 10,
    compressed: false,
    merge_percent: 125,
    hash: |key| key.first_chunk().map_or(0, |key| filter_hash(u128::from_be_bytes(*key))),
};

/// The memory of an entry: 32 bytes, a control byte, and the free space of a hash table.
pub(super) const ENTRY_BYTES: u64 = 33 * 8 / 7;

/// The hash of a fingerprint for filters. The high bits of fingerprints are the same for all of a
/// project.
fn filter_hash(fingerprint: u128) -> u128 {
    let low = fingerprint as u64;
    (u128::from(low) << 64) | u128::from((low ^ (low >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Hashes a fingerprint to its low half, which is random.
#[derive(Debug, Default)]
pub(super) struct LowHalf(u64);

impl Hasher for LowHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

/// The first positions of fingerprints.
pub(super) type Memtable = HashMap<u128, u64, BuildHasherDefault<LowHalf>>;

/// The first position of a fingerprint in a frozen memtable and the tables. Newer ones have smaller
/// positions.
pub(super) fn first_position(
    frozen: Option<&Memtable>,
    tables: &TableList,
    fingerprint: u128,
) -> Result<Option<u64>, ExternalIdsError> {
    if let Some(known) = frozen.and_then(|frozen| frozen.get(&fingerprint)) {
        return Ok(Some(*known));
    }
    newest(tables, &fingerprint.to_be_bytes(), filter_hash(fingerprint), |value| value.map(decode_position))?
        .flatten()
        .transpose()
}

/// Decodes an entry of a table.
pub(super) fn decode_entry(key: &[u8], value: Option<&[u8]>) -> Result<(u128, u64), ExternalIdsError> {
    let key = key.try_into().map_err(|_| ExternalIdsError::damaged("a fingerprint has another length"))?;
    let value = value.ok_or_else(|| ExternalIdsError::damaged("a fingerprint has no position"))?;
    Ok((u128::from_be_bytes(key), decode_position(value)?))
}

fn decode_position(bytes: &[u8]) -> Result<u64, ExternalIdsError> {
    if bytes.len() > 8 {
        return Err(ExternalIdsError::damaged("a position is too long"));
    }
    Ok(bytes.iter().fold(0, |position, byte| (position << 8) | u64::from(*byte)))
}
