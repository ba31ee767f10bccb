//! Classifies the errors of the storage crate as
//! [`FaultKind`](headcount_domain::fault::FaultKind)s.
//!
//! Every `match` is exhaustive, so that a new error does not compile without a kind.

use headcount_archive::ArchiveError;
use headcount_common::SharedArchiveError;
use headcount_domain::{Fault, FaultKind};
use headcount_storage::codec::CodecError;
use headcount_storage::external_ids::ExternalIdsError;
use headcount_storage::log::{LogError, RemoteFailure};
use headcount_storage::store::StoreError;

use crate::history::HistoryError;

/// The fault of an error of the store.
pub(crate) fn of_store(error: StoreError) -> Fault {
    let message = error.to_string();
    match error {
        StoreError::Damaged { .. } | StoreError::OtherFormat { .. } => Fault::damaged_store(message),
        StoreError::Io { .. } | StoreError::Stopped { .. } => Fault::io(message),
        StoreError::Key { .. } | StoreError::TooLarge { .. } | StoreError::Busy { .. } => Fault::defect(message),
    }
}

/// The fault of a stored value that can't be decoded although its checksum is right: another
/// version wrote it.
pub(crate) fn of_stored(error: CodecError) -> Fault {
    Fault::damaged_store(format!("a value in the store can't be decoded: {error}"))
}

/// The fault of a value that can't be encoded.
pub(crate) fn of_encoding(error: CodecError) -> Fault {
    Fault::defect(format!("a record can't be encoded: {error}"))
}

/// The fault of an error of the index of external ids.
pub(crate) fn of_index(error: ExternalIdsError) -> Fault {
    let message = error.to_string();
    match error {
        ExternalIdsError::Damaged { .. } | ExternalIdsError::OtherIncarnation { .. } => Fault::damaged_index(message),
        ExternalIdsError::Io { .. } => Fault::io(message),
        ExternalIdsError::Stopped => Fault::defect(message),
    }
}

/// The fault of an error of the event log.
pub(crate) fn of_log(error: LogError) -> Fault {
    let message = error.to_string();
    match error {
        LogError::Damaged { .. } | LogError::UnsupportedVersion { .. } | LogError::Removed { .. } => Fault::damaged_log(message),
        LogError::Full { .. } | LogError::Io { .. } => Fault::io(message),
        LogError::TooLarge { .. } | LogError::Empty => Fault::defect(message),
        LogError::Remote { kind, .. } => match kind {
            RemoteFailure::Damaged => Fault::damaged_log(message),
            RemoteFailure::Full | RemoteFailure::Unavailable => Fault::io(message),
            RemoteFailure::TooLarge => Fault::defect(message),
        },
    }
}

/// The fault of an error of reading recorded events.
pub(crate) fn of_history(error: HistoryError) -> Fault {
    match error {
        HistoryError::Log(error) => of_log(error),
        HistoryError::Decode(_) | HistoryError::Missing { .. } => Fault::damaged_log(error.to_string()),
        HistoryError::Archive { error, .. } => of_archive(error),
        HistoryError::Deleted { .. } => Fault::io(error.to_string()),
    }
}

/// The fault of an error of a shared archive. It may disappear by itself.
pub(crate) fn of_shared_archive(error: &SharedArchiveError) -> Fault {
    match error {
        SharedArchiveError::NotOwner(_)
        | SharedArchiveError::Local(_)
        | SharedArchiveError::Unavailable(_)
        | SharedArchiveError::Stopped => Fault::io(error.to_string()),
    }
}

/// The fault of an error of the archive.
pub(crate) fn of_archive(error: ArchiveError) -> Fault {
    let message = error.to_string();
    match error {
        ArchiveError::Damaged { .. } => Fault::new(FaultKind::DamagedArchive, message),
        ArchiveError::Io { .. } | ArchiveError::Stopped => Fault::io(message),
        ArchiveError::Refused { .. } | ArchiveError::Encode(_) => Fault::defect(message),
    }
}
