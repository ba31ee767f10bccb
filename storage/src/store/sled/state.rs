//! What a partition's pairs must add up to, and how that is checked.
//!
//! | key in sled | value |
//! |---|---|
//! | `0 'f'` | the format marker |
//! | `0 's' partition` | [`PartitionState`] |
//! | `1 key` | the value of a key of the store |
//!
//! What sled 0.34.7 does with a flipped byte in its `db` file depends on where it lies. In the part
//! of the log that is replayed at open (all that was written since the open before) a message with
//! a wrong checksum ends the reading of its 512 KiB segment *without an error*: later segments are
//! applied all the same, and pages whose updates were skipped show older contents, or the replay
//! trips over what is missing and panics. Elsewhere it is an error or a panic when the page is
//! read. Of 900 flips (half of them in `db`, of 6 MB) 402 damaged the store: 240 made sled panic
//! and 67 made it report an error at open, 83 lost the tail of the log silently, and 12 were found
//! by reading all values; in 5 of these every read succeeded, with wrong answers. Nothing hung. So
//! checksums per value are not enough: a digest over all pairs of a partition shows lost updates,
//! and [seals](super::seals) show a lost tail.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::super::error::StoreError;
use super::handle::{Handle, PairChanges};
use crate::codec;
use crate::keyspace::PartitionId;

const FORMAT_KEY: [u8; 2] = [0, b'f'];
const FORMAT_NAME: &[u8] = b"headcount store ";
const FORMAT: &[u8] = b"headcount store 3";
const STATE_PREFIX: [u8; 2] = [0, b's'];
const STATE_VERSION: u8 = 1;

/// The number and digest of a partition's pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::store) struct PartitionState {
    /// The number of the last checkpoint; the first one is 1.
    checkpoint: u64,
    /// The number of pairs.
    pairs: u64,
    /// The sum (mod 2^128) of a hash of each pair.
    digest: u128,
}

/// The states of all partitions that were ever written.
pub(in crate::store) type States = BTreeMap<PartitionId, PartitionState>;

impl PartitionState {
    /// The number of the last checkpoint.
    pub(super) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.pairs = self.pairs.wrapping_add(1);
        self.digest = self.digest.wrapping_add(pair_hash(key, value));
    }

    fn subtract(&mut self, key: &[u8], value: &[u8]) {
        self.pairs = self.pairs.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(pair_hash(key, value));
    }

    /// Returns the next state, and the batch that leads to it from `handle`: `changes`, under their
    /// keys in sled, and the state.
    pub(in crate::store) fn next(
        mut self,
        partition: PartitionId,
        changes: PairChanges,
        handle: &Handle,
    ) -> Result<(Self, PairChanges), StoreError> {
        self.checkpoint += 1;
        let mut batch = PairChanges::new();
        for (key, value) in changes {
            let key = pair_key(&key);
            if let Some(old) = handle.get(&key)? {
                self.subtract(&key, &old);
            }
            if let Some(value) = &value {
                self.add(&key, value);
            }
            batch.insert(key, value);
        }
        let state = codec::encode(STATE_VERSION, &self).map_err(|error| StoreError::damaged(error.to_string()))?;
        batch.insert(state_key(partition), Some(state));
        Ok((self, batch))
    }
}

fn pair_hash(key: &[u8], value: &[u8]) -> u128 {
    xxh3_128_with_seed(value, xxh3_64(key))
}

/// The key in sled of a key of the store, or of a prefix.
pub(in crate::store) fn pair_key(key: &[u8]) -> Vec<u8> {
    [&[1], key].concat()
}

fn state_key(partition: PartitionId) -> Vec<u8> {
    [STATE_PREFIX, partition.prefix()].concat()
}

/// Reads the states of all partitions; `None` if the database is new. A new database gets its
/// format marker.
pub(in crate::store) fn read_states(handle: &Handle) -> Result<Option<States>, StoreError> {
    match handle.get(&FORMAT_KEY)? {
        Some(format) if format == FORMAT => {}
        Some(format) if format.starts_with(FORMAT_NAME) => {
            let found = String::from_utf8_lossy(&format).into_owned();
            return Err(StoreError::OtherFormat { what: format!("its format is {found:?}") });
        }
        Some(_) => return Err(StoreError::damaged("the format marker is unreadable")),
        None if handle.is_empty()? => {
            handle.write(&PairChanges::from([(FORMAT_KEY.to_vec(), Some(FORMAT.to_vec()))]))?;
            return Ok(None);
        }
        None => return Err(StoreError::damaged("the format marker is missing")),
    }
    let mut states = States::new();
    handle.scan(&STATE_PREFIX, |key, value| {
        let partition = key.strip_prefix(&STATE_PREFIX).and_then(PartitionId::of_key);
        let partition = partition.ok_or_else(|| StoreError::damaged("a partition's state has no partition"))?;
        let state = codec::decode(STATE_VERSION, value);
        let state = state.map_err(|error| StoreError::damaged(format!("the state of partition {partition}: {error}")))?;
        states.insert(partition, state);
        Ok(())
    })?;
    Ok(Some(states))
}

/// Reads all pairs, and compares those of each partition with its state.
pub(in crate::store) fn verify_states(handle: &Handle, states: &States) -> Result<(), StoreError> {
    let mut found = States::new();
    handle.scan(&pair_key(&[]), |key, value| {
        let partition = key.get(1..).and_then(PartitionId::of_key);
        let partition = partition.ok_or_else(|| StoreError::damaged("a key in sled has no partition"))?;
        found.entry(partition).or_default().add(key, value);
        Ok(())
    })?;
    for (partition, expected) in states {
        let found = found.remove(partition).unwrap_or_default();
        if (found.pairs, found.digest) != (expected.pairs, expected.digest) {
            let (pairs, expected) = (found.pairs, expected.pairs);
            let what = format!("partition {partition} has {pairs} pairs, but other pairs ({expected}) were committed");
            return Err(StoreError::damaged(what));
        }
    }
    match found.first_key_value() {
        None => Ok(()),
        Some((partition, _)) => Err(StoreError::damaged(format!("partition {partition} has pairs, but no state"))),
    }
}
