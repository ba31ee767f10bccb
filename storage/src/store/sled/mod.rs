//! The small pairs of a [`DiskStore`](super::DiskStore), in sled: parts of rollups, positions,
//! manifests of tables.
//!
//! A checkpoint of a partition is one batch, one flush, and one `fdatasync` of sled's file. Each
//! partition also has a [state](PartitionState): the number of its last checkpoint and a digest of
//! all its pairs, written in the same batch. Opening compares the digest with the pairs. So if sled
//! loses part of a batch, it is reported as damage, and never gives a wrong figure.

mod database;
mod handle;
mod seals;
mod state;

#[cfg(test)]
mod tests;

pub(super) use database::Database;
pub(super) use handle::{Handle, PairChanges, wait_until_closed};
pub(super) use seals::{check_seals, write_seals};
pub(super) use state::{PartitionState, States, pair_key, read_states, verify_states};
