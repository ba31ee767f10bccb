//! Why a scan has no answer.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::shard::AskError;

/// What a scan returns.
pub(super) type Result<T, E = ScanError> = std::result::Result<T, E>;

/// Why a scan has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error("nobody waits for it any more")]
    Cancelled,
    #[error("a file could not be sorted: {0}")]
    Sort(#[from] io::Error),
    #[error("{0}")]
    Read(String),
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// Whether somebody still waits for a scan.
pub(super) fn check(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Acquire) { Err(ScanError::Cancelled) } else { Ok(()) }
}
