//! The errors of the archive.

use std::io;
use std::path::{Path, PathBuf};

use headcount_domain::Position;

/// An error of the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file has changed. Answers that need it fail until it is restored.
    #[error("archive file {file} is damaged: {reason}")]
    Damaged {
        /// The file's name without its folder.
        file: String,
        /// The damage.
        reason: Damage,
    },
    /// The file system failed.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A row can't be stored.
    #[error("the event at position {position} can't be archived: {reason}")]
    Refused {
        /// The row's position.
        position: Position,
        /// The reason.
        reason: Refusal,
    },
    /// The work was stopped because it is no longer needed.
    #[error("the archive's work was stopped")]
    Stopped,
    /// The Parquet library returned an error while encoding, which is a defect.
    #[error("could not encode an archive file: {0}")]
    Encode(String),
}

/// The kind of damage of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The list names a file that does not exist.
    #[error("it is missing")]
    Missing,
    /// The length differs from the list's.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// The length in the list.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// The footer does not match its checksum, or is not one of the archive's.
    #[error("its footer is not intact")]
    Footer,
    /// A column chunk does not match its checksum.
    #[error("column {column} of row group {row_group} does not match its checksum")]
    Chunk {
        /// The number of the row group, from 0.
        row_group: usize,
        /// The column's name.
        column: String,
    },
    /// A frame of a base does not match its checksum.
    #[error("there is no intact frame at byte {0}")]
    Frame(u64),
    /// A different file of the archive has this name: its project, positions, days or number of
    /// rows differ.
    #[error("it is a different file: its {0} differ from the list")]
    OtherFile(&'static str),
    /// The SHA-256 differs from the list's.
    #[error("its SHA-256 is not the one in the list")]
    Hash,
    /// A later version of the program wrote it.
    #[error("its format {0:?} is unknown to this version")]
    Format(String),
    /// The checksums match, but the contents are inconsistent.
    #[error("its contents are inconsistent: {0}")]
    Contents(String),
    /// The list of files is damaged.
    #[error("the list of files is not intact: {0}")]
    Manifest(String),
}

/// The reason why a row can't be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The position is not greater than the previous one.
    #[error("positions must rise, but the position before is {0}")]
    Order(Position),
    /// The position exceeds a signed 64-bit integer.
    #[error("the position is too large")]
    Position,
    /// An amount exceeds `DECIMAL(38, 6)`.
    #[error("an amount has more than 38 digits")]
    Amount,
    /// The event belongs to another project.
    #[error("it belongs to another project")]
    Project,
}

impl ArchiveError {
    /// Wraps an error of the file system.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }

    /// Reports damage of `file`.
    pub(crate) fn damaged(file: impl ToString, reason: Damage) -> Self {
        Self::Damaged { file: file.to_string(), reason }
    }

    /// Wraps an error of encoding.
    pub(crate) fn encode(error: impl ToString) -> Self {
        Self::Encode(error.to_string())
    }

    /// Whether a file is damaged, so that retrying is useless.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}
