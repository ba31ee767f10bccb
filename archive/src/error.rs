//! Why the archive could not do what it was asked.

use std::io;
use std::path::{Path, PathBuf};

use headcount_domain::intake::event::Position;

/// Why the archive could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file is not what was written. Answers that need it fail; put back, it heals.
    #[error("archive file {file} is damaged: {reason}")]
    Damaged {
        /// The file's name without its folder.
        file: String,
        /// What is wrong with it.
        reason: Damage,
    },
    /// The file system failed.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the operating system reported.
        source: io::Error,
    },
    /// A row was refused.
    #[error("the event at position {position} can't be archived: {reason}")]
    Refused {
        /// The row's position.
        position: Position,
        /// Why.
        reason: Refusal,
    },
    /// The Parquet library refused to encode what it was given: a defect.
    #[error("could not encode an archive file: {0}")]
    Encode(String),
}

/// What is wrong with a damaged file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The list names it and it is not there.
    #[error("it is missing")]
    Missing,
    /// It is shorter or longer than the list says.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// What the list says.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// Its footer does not match its checksum, or is none of the archive's.
    #[error("its footer is not intact")]
    Footer,
    /// A column chunk does not match its checksum.
    #[error("column {column} of row group {row_group} does not match its checksum")]
    Chunk {
        /// The number of the row group, from 0 on.
        row_group: usize,
        /// The column's name.
        column: String,
    },
    /// It is another file of the archive: of another project, other positions, other days or another number of rows.
    #[error("it is another file: its {0} differ from the list's")]
    OtherFile(&'static str),
    /// Its SHA-256 is not the one in the list.
    #[error("its SHA-256 is not the one in the list")]
    Hash,
    /// It was written by a later version of the program.
    #[error("its format is {0:?}, which this program does not know")]
    Format(String),
    /// It is intact, and its contents contradict each other.
    #[error("its contents contradict each other: {0}")]
    Contents(String),
    /// The list of files is not intact.
    #[error("the list of files is not intact: {0}")]
    Manifest(String),
}

/// Why a row was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Positions must rise.
    #[error("positions must rise, and the one before is {0}")]
    Order(Position),
    /// A signed 64-bit integer can't hold its position.
    #[error("the position is too large")]
    Position,
    /// `DECIMAL(38, 6)` can't hold an amount.
    #[error("an amount has more than 38 digits")]
    Amount,
    /// It belongs to another project.
    #[error("it belongs to another project")]
    Project,
}

impl ArchiveError {
    /// Wraps a failure of the file system.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }

    /// Names a file that is damaged.
    pub(crate) fn damaged(file: impl ToString, reason: Damage) -> Self {
        Self::Damaged { file: file.to_string(), reason }
    }

    /// Wraps a refusal of the Parquet library to encode.
    pub(crate) fn encode(error: impl ToString) -> Self {
        Self::Encode(error.to_string())
    }

    /// Whether a file is not what was written, so that trying again won't help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}
