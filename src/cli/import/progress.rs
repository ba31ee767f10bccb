//! How far an import has read.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// How far a file was read, shared between threads.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes read from the file, before decompression.
    pub(crate) read_bytes: AtomicU64,
    /// The number of the last line if it is incomplete and was left, else 0.
    pub(crate) unfinished_line: AtomicU64,
    /// Set when no more blocks are wanted.
    pub(crate) closed: AtomicBool,
}
