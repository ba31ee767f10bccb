//! How a store is opened.

/// How thoroughly a store is examined when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Every pair is read: checksums and digests must agree. Takes time in proportion to the store.
    Full,
    /// As `Full`, but the tables of a [`DiskStore`](super::DiskStore), which are the bulk of it, are left to
    /// [`DiskStore::verify_until`](super::DiskStore::verify_until). Their blocks are checked when they are read.
    Small,
    /// Nothing is read beyond what opening needs.
    Quick,
}

/// How to open a [`DiskStore`](super::DiskStore).
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// sled's page cache. It takes about three times as much memory; at most 64 MiB is used.
    pub cache_bytes: u64,
    /// What to examine.
    pub check: Check,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, check: Check::Full }
    }
}
