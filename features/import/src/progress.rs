//! The progress of an import's reader.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The progress in a file, shared between threads.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes read from the file, before decompression.
    pub(crate) read_bytes: AtomicU64,
    /// The number of the last line if it is incomplete and was not read, else 0.
    pub(crate) unfinished_line: AtomicU64,
    /// Set when the import needs no more blocks.
    pub(crate) closed: AtomicBool,
}
