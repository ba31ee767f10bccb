//! Figures about archives.

use std::sync::atomic::AtomicU64;

/// Figures about the archive.
#[derive(Debug, Default)]
pub(crate) struct ArchiveFigures {
    /// The number of files.
    pub(crate) files: AtomicU64,
    /// The bytes of these files.
    pub(crate) bytes: AtomicU64,
    /// The age of the oldest unsealed event in milliseconds.
    pub(crate) lag_ms: AtomicU64,
    /// The number of projects whose events wait in the log, because their list of files can't be
    /// used.
    pub(crate) waiting_projects: AtomicU64,
    /// The number of projects that may have events of days beyond their retention.
    pub(crate) retention_pending: AtomicU64,
}
