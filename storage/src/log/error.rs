//! Errors of the log, and kinds of damage.

use std::io;
use std::path::{Path, PathBuf};

use super::Position;

/// An error of the log.
///
/// After any error, `append` has recorded nothing, and the log is still usable, unless it is on
/// other machines.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no space for another segment. A later append succeeds once there is space.
    #[error("no space left for another log segment")]
    Full {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The bytes on disk have changed. Nothing is skipped; `LogOptions::repair` saves the rest.
    #[error("log segment {segment:020} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// First position of the segment, which is also its file name.
        segment: Position,
        /// Offset in the segment's file where the damage begins.
        offset: u64,
        /// The kind of damage.
        reason: Damage,
    },
    /// Another version of the program wrote the segment in an unknown format.
    #[error("log segment {segment:020} has format version {found}, but this program reads version {supported}")]
    UnsupportedVersion {
        /// First position of the segment.
        segment: Position,
        /// Version in its header.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// One append was larger than a block may be.
    #[error("an append of {size_bytes} bytes exceeds the limit of {limit_bytes} bytes")]
    TooLarge {
        /// Size of the append.
        size_bytes: u64,
        /// [`super::MAX_BLOCK_BYTES`].
        limit_bytes: u64,
    },
    /// An append without entries, or an entry without events, which would have no position.
    #[error("an append needs at least one entry, and each entry at least one event")]
    Empty,
    /// Segments were removed while they were being read, so the rest would not follow the visited
    /// records.
    #[error("log segment {segment:020} was removed while the log was read")]
    Removed {
        /// First position of the next segment to read.
        segment: Position,
    },
    /// The log is on other machines, which recorded nothing or can't be read.
    #[error("{source}")]
    Remote {
        /// The kind of failure.
        kind: RemoteFailure,
        /// The failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Any other failure of the file system, before anything was recorded.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A kind of failure of a log on other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFailure {
    /// There is no space. A later append succeeds once there is space.
    Full,
    /// They lost recorded events.
    Damaged,
    /// They don't answer, or this machine may no longer write.
    Unavailable,
    /// The append is too large.
    TooLarge,
}

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A segment that other segments refer to is missing.
    #[error("the segment is missing")]
    Missing,
    /// The file is shorter than a segment header.
    #[error("the file is shorter than its header")]
    ShortHeader,
    /// The header does not match its checksum, or it is not a header.
    #[error("the header is not intact")]
    Header,
    /// The header belongs to another file name, or changed since the log was opened.
    #[error("the header belongs to another segment")]
    WrongHeader,
    /// The header does not name the segment before it as its predecessor.
    #[error("the segment does not follow the one before it")]
    Order,
    /// The checksums of all blocks don't match the chain that the next segment recorded.
    #[error("the chain of checksums does not match the one in the next segment")]
    Chain,
    /// Something other than the beginning of a block.
    #[error("no block begins here")]
    Marker,
    /// A block with an impossible length.
    #[error("the block's length is impossible")]
    Length,
    /// A block does not match its CRC32C.
    #[error("the block does not match its checksum")]
    Checksum,
    /// A block is intact but its first position does not follow the block before it.
    #[error("the block's positions do not follow those before it")]
    Positions,
    /// A block is intact but its table of entries contradicts its header.
    #[error("the block's table of entries is inconsistent")]
    Table,
    /// A block is intact but its payload does not decompress to the size in its header.
    #[error("the block's payload does not decompress")]
    Payload,
    /// A segment ends before the position at which the next one begins.
    #[error("the segment ends before its last position")]
    EndsEarly,
    /// Bytes after the last block of a sealed segment are not zero.
    #[error("bytes after the last block are not zero")]
    Tail,
    /// The file that records where the log begins is not intact.
    #[error("the record of the log's first position is not intact")]
    Floor,
}

impl Damage {
    /// Whether an interrupted write can look like this. A block that is intact but out of place was
    /// not interrupted.
    pub(super) fn could_be_torn(self) -> bool {
        !matches!(self, Damage::Positions | Damage::Table)
    }
}

impl LogError {
    /// Wraps a failure to create or extend a file: a full disk or an exhausted quota becomes
    /// [`LogError::Full`].
    pub(super) fn creating(doing: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::Full { source },
            _ => LogError::io(doing, path, source),
        }
    }

    /// Wraps any other failure.
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        LogError::Io { doing, path: path.to_path_buf(), source }
    }
}
