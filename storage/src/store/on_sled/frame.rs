//! How keys and values lie in sled.
//!
//! | key | value |
//! |---|---|
//! | `0 'f'` | the format marker |
//! | `0 'r' partition` | [`PartitionState`]: what the last applied checkpoint of the partition left |
//! | `1 key` | a [`Stamp`], then the value if it is short |
//! | `2 partition generation ordinal index` | a chunk of a long value |
//!
//! A sled leaf holds up to 16 entries and is written as a whole; a leaf over 128 KiB would go to a file of its own that
//! sled never syncs. Hence [`CHUNK_BYTES`].

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::super::{PartitionId, StoreError};

/// The longest value kept in one piece, and the size of the pieces of longer ones.
pub(super) const CHUNK_BYTES: usize = 4 << 10;

/// The key of the format marker.
pub(super) const FORMAT_KEY: [u8; 2] = [0, b'f'];

/// The value of the format marker.
pub(super) const FORMAT: &[u8] = b"headcount store 2";

const STAMP_VERSION: u8 = 1;
const STAMP_BYTES: usize = 22;
const STATE_VERSION: u8 = 1;
const STATE_BYTES: usize = 37;
const CHUNKED: u8 = 1;

/// What is kept with each value: when it was written, and what its bytes must add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The checkpoint that wrote the value.
    pub(super) generation: u64,
    /// The number of the change within the checkpoint; with the generation, the name of a long value's chunks.
    pub(super) ordinal: u32,
    /// The length of the value.
    pub(super) len: u32,
    /// CRC32C of the key, the fields above and the value.
    pub(super) crc: u32,
}

impl Stamp {
    /// The stamp of `value` under `key`.
    pub(super) fn of(key: &[u8], value: &[u8], generation: u64, ordinal: u32) -> Result<Self, StoreError> {
        let len = u32::try_from(value.len()).map_err(|_| StoreError::TooLarge { len: value.len() })?;
        let mut stamp = Self { generation, ordinal, len, crc: 0 };
        stamp.crc = stamp.checksum(key, value);
        Ok(stamp)
    }

    fn checksum(&self, key: &[u8], value: &[u8]) -> u32 {
        let crc = crc32c::crc32c(key);
        let crc = crc32c::crc32c_append(crc, &self.generation.to_be_bytes());
        let crc = crc32c::crc32c_append(crc, &self.ordinal.to_be_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(crc, &self.len.to_be_bytes()), value)
    }

    /// Whether `value` under `key` is what was stamped.
    pub(super) fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        value.len() == self.len as usize && self.checksum(key, value) == self.crc
    }

    /// Whether the value lies in chunks.
    pub(super) fn is_chunked(&self) -> bool {
        self.len as usize > CHUNK_BYTES
    }

    /// How many chunks the value lies in.
    pub(super) fn chunks(&self) -> u32 {
        if self.is_chunked() { self.len.div_ceil(CHUNK_BYTES as u32) } else { 0 }
    }

    /// What the pair adds to the partition's digest. Sums of these are equal when the sets of pairs are.
    pub(super) fn element(&self, key: &[u8]) -> u128 {
        xxh3_128_with_seed(key, xxh3_64(&self.encode()))
    }

    fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[0] = STAMP_VERSION;
        bytes[1] = if self.is_chunked() { CHUNKED } else { 0 };
        bytes[2..10].copy_from_slice(&self.generation.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.ordinal.to_be_bytes());
        bytes[14..18].copy_from_slice(&self.len.to_be_bytes());
        bytes[18..22].copy_from_slice(&self.crc.to_be_bytes());
        bytes
    }

    /// What sled is given for the value: the stamp, and the value itself when it is short.
    pub(super) fn frame(&self, value: &[u8]) -> Vec<u8> {
        let inline = if self.is_chunked() { &[] } else { value };
        let mut frame = Vec::with_capacity(STAMP_BYTES + inline.len());
        frame.extend_from_slice(&self.encode());
        frame.extend_from_slice(inline);
        frame
    }

    /// Splits what sled holds into the stamp and the inline value.
    pub(super) fn split(frame: &[u8]) -> Result<(Self, &[u8]), StoreError> {
        let damaged = || StoreError::damaged("a stored value has no readable stamp");
        let (head, inline) = frame.split_first_chunk::<STAMP_BYTES>().ok_or_else(damaged)?;
        let mut fields = Fields(&head[2..]);
        let stamp = Self {
            generation: u64::from_be_bytes(fields.take()),
            ordinal: u32::from_be_bytes(fields.take()),
            len: u32::from_be_bytes(fields.take()),
            crc: u32::from_be_bytes(fields.take()),
        };
        let expected = if stamp.is_chunked() { 0 } else { stamp.len as usize };
        let sound = head == &stamp.encode() && inline.len() == expected;
        if sound { Ok((stamp, inline)) } else { Err(damaged()) }
    }
}

/// Fixed-width fields, one after the other.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    /// The next `N` bytes; zeros where the slice ends early, which the callers' lengths rule out.
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }
}

/// What a partition amounts to after a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PartitionState {
    /// The number of the checkpoint; the first one is 1.
    pub(super) generation: u64,
    /// How many keys there are.
    pub(super) count: u64,
    /// The sum (mod 2^128) of [`Stamp::element`] over all pairs.
    pub(super) digest: u128,
}

impl PartitionState {
    /// Takes a pair in.
    pub(super) fn add(&mut self, element: u128) {
        self.count = self.count.wrapping_add(1);
        self.digest = self.digest.wrapping_add(element);
    }

    /// Takes a pair out.
    pub(super) fn remove(&mut self, element: u128) {
        self.count = self.count.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(element);
    }

    /// The value under [`state_key`].
    pub(super) fn encode(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[0] = STATE_VERSION;
        bytes[1..9].copy_from_slice(&self.generation.to_be_bytes());
        bytes[9..17].copy_from_slice(&self.count.to_be_bytes());
        bytes[17..33].copy_from_slice(&self.digest.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[..33]);
        bytes[33..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Reads the value under [`state_key`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(bytes.get(1..).unwrap_or_default());
        let state = Self {
            generation: u64::from_be_bytes(fields.take()),
            count: u64::from_be_bytes(fields.take()),
            digest: u128::from_be_bytes(fields.take()),
        };
        let sound = bytes == state.encode();
        if sound { Ok(state) } else { Err(StoreError::damaged("the state of a partition is unreadable")) }
    }
}

/// Where the state of a partition lies.
pub(super) fn state_key(partition: PartitionId) -> [u8; 4] {
    let [high, low] = partition.prefix();
    [0, b'r', high, low]
}

/// The prefix of all states.
pub(super) const STATE_PREFIX: [u8; 2] = [0, b'r'];

/// The partition of a key made by [`state_key`].
pub(super) fn partition_of_state(key: &[u8]) -> Option<PartitionId> {
    PartitionId::of_key(key.strip_prefix(&STATE_PREFIX)?)
}

/// Where the value of a key lies.
pub(super) fn value_key(key: &[u8]) -> Vec<u8> {
    let mut physical = Vec::with_capacity(1 + key.len());
    physical.push(1);
    physical.extend_from_slice(key);
    physical
}

/// Where a chunk of a long value lies.
pub(super) fn chunk_key(partition: PartitionId, generation: u64, ordinal: u32, index: u32) -> [u8; 19] {
    let mut key = [2; 19];
    key[1..3].copy_from_slice(&partition.prefix());
    key[3..11].copy_from_slice(&generation.to_be_bytes());
    key[11..15].copy_from_slice(&ordinal.to_be_bytes());
    key[15..].copy_from_slice(&index.to_be_bytes());
    key
}
