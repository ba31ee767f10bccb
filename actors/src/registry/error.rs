//! The errors of the registry, grouped by who has to act on them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use headcount_storage::log::LogError;

/// Why a request to the registry failed. No variant leaves a partial change.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It does not exist, or it belongs to another organization: the two are indistinguishable.
    #[error("no such {what}")]
    NotFound {
        /// The kind of thing: `organization`, `project`, `public key`, `API token`.
        what: &'static str,
    },
    /// The request is valid, but conflicts with the current state.
    #[error("{message}")]
    Conflict {
        /// A stable code: `timezone_fixed`, `currency_fixed`, `last_public_key`, `limit_reached`, `already_initialized`.
        code: &'static str,
        /// The conflict.
        message: String,
    },
    /// A value is not allowed.
    #[error("{param}: {message}")]
    Invalid {
        /// The field, spelled as in the management API: `name`, `allowed_origins[1]`.
        param: String,
        /// The problem, and the allowed values.
        message: String,
    },
    /// The author may no longer make the change.
    #[error(transparent)]
    Refused(AuthError),
    /// A balance is too small for the request.
    #[error("{message}")]
    Exhausted {
        /// A stable code: `actions_exhausted`.
        code: &'static str,
        /// The balance, and the requested amount.
        message: String,
    },
    /// The organization has made too many changes, where several machines keep all of them for ever.
    #[error("the organization has made too many changes")]
    TooManyChanges {
        /// When the next one may be made.
        retry_after: Duration,
    },
    /// The change could not be made durable, or the registry could not be opened.
    #[error(transparent)]
    Storage(#[from] ControlError),
}

impl RegistryError {
    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        RegistryError::Conflict { code, message: message.into() }
    }

    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        RegistryError::Invalid { param: param.into(), message: message.into() }
    }
}

/// Why a credential was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Malformed, unknown, revoked or expired; the caller does not learn which.
    #[error("the credential is not valid")]
    Unknown,
    /// The holder's role was lowered after the request was let in.
    #[error("the role was lowered while the request was under way")]
    Lowered,
}

/// Why a browser was not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The token or code is malformed, unknown, used, revoked or expired; the caller does not learn which.
    #[error("the token or code is not valid")]
    Refused,
    /// The session could not be recorded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

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
    /// Another record changed the state after this record was checked.
    #[error("the control log's next record is {next}, not {expected}: the change was made to an outdated state")]
    Conflict {
        /// The position for which the record was checked.
        expected: u64,
        /// The next position of the log.
        next: u64,
    },
    /// The log did not say in time whether it recorded the change. What is read or changed next shows it.
    #[error("whether the change was recorded is not known: {0}; look before you make it again")]
    Undecided(String),
    /// Documents that members share can't be read or changed.
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
    pub(super) fn io(doing: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        ControlError::Io { doing, path: path.to_path_buf(), source }
    }
}
