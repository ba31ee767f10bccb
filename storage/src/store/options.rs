//! The options of opening a store.

/// How thoroughly to check a store when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Read every pair: checksums and digests must agree. The time is proportional to the size of
    /// the store.
    Full,
    /// Like `Full`, except for the tables of a [`DiskStore`](super::DiskStore), which are most of
    /// it. [`DiskStore::verify_until`](super::DiskStore::verify_until) checks them later, and each
    /// read checks its blocks.
    Small,
    /// Read nothing beyond what opening requires.
    Quick,
}

/// How to open a [`DiskStore`](super::DiskStore).
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// sled's page cache. It takes about three times as much memory; at most 64 MiB are used.
    pub cache_bytes: u64,
    /// The extent of the check.
    pub check: Check,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, check: Check::Full }
    }
}
