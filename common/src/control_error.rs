//! The errors of control data and documents.

use std::io;
use std::path::PathBuf;

use headcount_storage::log::LogError;

/// A failure of the control data's files, or of the disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The control log can't be opened, read or written.
    #[error("control log: {0}")]
    Log(#[from] LogError),
    /// Any other file system error.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A record has a version that this program does not support.
    #[error("control record {position} has format version {found}, this program reads versions up to {supported}")]
    UnsupportedRecord {
        /// Its position in the control log.
        position: u64,
        /// The version of the record.
        found: u32,
        /// The version that this program writes, which is the latest that it reads.
        supported: u32,
    },
    /// A record is intact, but its contents are invalid.
    #[error("control record {position} can't be read: {message}")]
    BadRecord {
        /// Its position in the control log.
        position: u64,
        /// The problem.
        message: String,
    },
    /// A snapshot has a version that this program does not support.
    #[error("{} has format version {found}, this program reads versions up to {supported}", path.display())]
    UnsupportedSnapshot {
        /// The file.
        path: PathBuf,
        /// The version of the snapshot.
        found: u32,
        /// The version that this program writes, which is the latest that it reads.
        supported: u32,
    },
    /// No intact snapshot covers the records before the start of the log.
    #[error(
        "the control log begins at record {log_begins} and no intact snapshot covers what came before \
         (damaged: {damaged:?}): restore {} from a backup",
        dir.display()
    )]
    SnapshotLost {
        /// The directory of the control data.
        dir: PathBuf,
        /// The first record in the log.
        log_begins: u64,
        /// The damaged snapshots that were found.
        damaged: Vec<PathBuf>,
    },
    /// The log ends before the position of a snapshot: log files were removed.
    #[error(
        "the control log ends before record {log_ends} while a snapshot reflects all before {snapshot}: restore {} \
         from a backup",
        dir.display()
    )]
    LogLost {
        /// The directory of the control data.
        dir: PathBuf,
        /// The position after the last record of the log.
        log_ends: u64,
        /// The position after the last record that the snapshot covers.
        snapshot: u64,
    },
    /// Other machines have removed records that this machine has not applied.
    #[error(
        "the control log begins at record {log_begins}, and this machine has applied the records up to {applied}: \
         restart it, so that it starts from a shared snapshot"
    )]
    Compacted {
        /// The first record in the log.
        log_begins: u64,
        /// The last record that this machine has applied.
        applied: u64,
    },
    /// Another record changed the state after this record was checked.
    #[error("the control log's next record is {next}, not {expected}: the change was made to an outdated state")]
    Conflict {
        /// The position for which the record was checked.
        expected: u64,
        /// The next position of the log.
        next: u64,
    },
    /// The log did not answer in time whether it recorded the change. The next read or change finds
    /// out.
    #[error("whether the change was recorded is not known: {0}; look before you make it again")]
    Undecided(String),
    /// Documents that the nodes share can't be read or changed.
    #[error("shared documents: {0}")]
    Documents(String),
    /// A value can't be encoded as JSON. It never happens; the variant avoids a panic.
    #[error("can't be written as JSON: {0}")]
    Unencodable(serde_json::Error),
    /// The operating system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// An earlier change panicked, so memory may differ from disk until the next start.
    #[error("an earlier change was cut short: restart the program")]
    Interrupted,
}

impl ControlError {
    /// Returns the error of an operation on a file or directory.
    pub fn io(doing: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        ControlError::Io { doing, path: path.to_path_buf(), source }
    }
}
