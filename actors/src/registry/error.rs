//! What can go wrong, sorted by who has to do something about it.

use std::io;
use std::path::PathBuf;

use headcount_storage::log::LogError;

/// Why a request to the registry was not done. Nothing changed, whatever the variant.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It does not exist, or belongs to another organization: the two are never told apart.
    #[error("no such {what}")]
    NotFound {
        /// What was asked for: `organization`, `project`, `public key`, `API token`.
        what: &'static str,
    },
    /// The request is fine by itself, and contradicts what is there.
    #[error("{message}")]
    Conflict {
        /// A stable code: `timezone_fixed`, `currency_fixed`, `last_public_key`, `limit_reached`, `already_initialized`.
        code: &'static str,
        /// What stands against it.
        message: String,
    },
    /// A value is not allowed.
    #[error("{param}: {message}")]
    Invalid {
        /// The field, spelled as in the management API: `name`, `allowed_origins[1]`.
        param: String,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// Something that is counted down is used up: allowed as such, but not any more.
    #[error("{message}")]
    Exhausted {
        /// A stable code: `actions_exhausted`.
        code: &'static str,
        /// What is left, and what was asked for.
        message: String,
    },
    /// The change could not be made durable, or the registry could not be opened.
    #[error(transparent)]
    Storage(#[from] ControlError),
}

impl RegistryError {
    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        RegistryError::Conflict { code, message: message.into() }
    }

    pub(super) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        RegistryError::Invalid { param: param.into(), message: message.into() }
    }
}

/// Why a credential was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Malformed, never issued, revoked or expired: whoever holds it learns nothing more.
    #[error("the credential is not valid")]
    Unknown,
}

/// What is wrong with the control data on disk, or with the disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The control log can't be opened, read or written.
    #[error("control log: {0}")]
    Log(#[from] LogError),
    /// Any other failure of the file system.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A record was written by a version of the program that this one does not know.
    #[error("control record {position} has format version {found}, this program reads versions up to {supported}")]
    UnsupportedRecord {
        /// Its position in the control log.
        position: u64,
        /// The version that it carries.
        found: u32,
        /// The version that this program writes, and the latest that it reads.
        supported: u32,
    },
    /// A record is intact but says nothing that this program understands.
    #[error("control record {position} can't be read: {message}")]
    BadRecord {
        /// Its position in the control log.
        position: u64,
        /// What is wrong with it.
        message: String,
    },
    /// A snapshot was written by a version of the program that this one does not know.
    #[error("{} has format version {found}, this program reads versions up to {supported}", path.display())]
    UnsupportedSnapshot {
        /// The file.
        path: PathBuf,
        /// The version that it carries.
        found: u32,
        /// The version that this program writes, and the latest that it reads.
        supported: u32,
    },
    /// No intact snapshot reaches back to where the log begins.
    #[error(
        "the control log begins at record {log_begins} and no intact snapshot covers what came before \
         (damaged: {damaged:?}): restore {} from a backup",
        dir.display()
    )]
    SnapshotLost {
        /// The directory of the control data.
        dir: PathBuf,
        /// The first record that the log still has.
        log_begins: u64,
        /// Snapshots that are there, and damaged.
        damaged: Vec<PathBuf>,
    },
    /// The log ends before what a snapshot has already seen: log files were removed.
    #[error(
        "the control log ends before record {log_ends} while a snapshot reflects all before {snapshot}: restore {} \
         from a backup",
        dir.display()
    )]
    LogLost {
        /// The directory of the control data.
        dir: PathBuf,
        /// One past the last record of the log.
        log_ends: u64,
        /// One past the last record that the snapshot reflects.
        snapshot: u64,
    },
    /// A record was checked against a state that another record has changed since.
    #[error("the control log's next record is {next}, not {expected}: the change was made to an outdated state")]
    Conflict {
        /// The position that the record was to get.
        expected: u64,
        /// The position that is next.
        next: u64,
    },
    /// A value can't be written as JSON. Never seen; it is here so that it would not be a panic.
    #[error("can't be written as JSON: {0}")]
    Unencodable(serde_json::Error),
    /// The operating system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// An earlier change panicked half-way: memory may differ from disk until the next start.
    #[error("an earlier change was cut short: restart the program")]
    Interrupted,
}

impl ControlError {
    pub(super) fn io(doing: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        ControlError::Io { doing, path: path.to_path_buf(), source }
    }
}
