//! One attempt to make an artifact: whether it goes on, and why it did not.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_actors::engine::{AskError, ErasureError};
use headcount_control::RegistryError;
use headcount_domain::{Fault, FaultKind};
use headcount_storage::codec::CodecError;

use crate::export_state::PrivacyFailure;
use crate::privacy::Privacy;

/// Why an attempt has no artifact.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// The engine is being closed, or the request is over.
    Stopped,
    /// It failed.
    Failed(PrivacyFailure, String),
}

impl From<io::Error> for AttemptError {
    fn from(error: io::Error) -> Self {
        let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let failure = if is_full { PrivacyFailure::DiskFull } else { PrivacyFailure::Io };
        Self::Failed(failure, error.to_string())
    }
}

impl From<RegistryError> for AttemptError {
    fn from(error: RegistryError) -> Self {
        Self::Failed(PrivacyFailure::Io, error.to_string())
    }
}

impl From<Fault> for AttemptError {
    fn from(fault: Fault) -> Self {
        let failure = match fault.kind {
            FaultKind::Io => PrivacyFailure::Io,
            FaultKind::DamagedArchive => PrivacyFailure::ArchiveDamaged,
            FaultKind::DamagedStore | FaultKind::DamagedIndex => PrivacyFailure::Unavailable,
            FaultKind::DamagedLog | FaultKind::Defect => PrivacyFailure::Internal,
        };
        Self::Failed(failure, fault.to_string())
    }
}

impl From<AskError> for AttemptError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Lost(fault) => fault.into(),
            AskError::Busy
            | AskError::NoAnswer
            | AskError::TimedOut(_)
            | AskError::BelowFloor(_)
            | AskError::NoOwner
            | AskError::Node(_) => Self::Failed(PrivacyFailure::Unavailable, error.to_string()),
        }
    }
}

impl From<ErasureError> for AttemptError {
    fn from(error: ErasureError) -> Self {
        let failure = match error {
            ErasureError::Failed(fault) => return fault.into(),
            // It was known when the request was made.
            ErasureError::Unknown => PrivacyFailure::SubjectErased,
            ErasureError::TooMany | ErasureError::Full(_) => PrivacyFailure::TooManyIds,
            ErasureError::Unavailable(_) => PrivacyFailure::Unavailable,
            ErasureError::Registry(_) => PrivacyFailure::Internal,
        };
        Self::Failed(failure, error.to_string())
    }
}

impl From<CodecError> for AttemptError {
    fn from(error: CodecError) -> Self {
        Self::Failed(PrivacyFailure::Internal, error.to_string())
    }
}

impl From<serde_json::Error> for AttemptError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { io::Error::from(error).into() } else { Self::Failed(PrivacyFailure::Internal, error.to_string()) }
    }
}

/// Says whether an attempt goes on.
#[derive(Clone)]
pub(super) struct Course {
    privacy: Arc<Privacy>,
    is_over: Arc<AtomicBool>,
}

impl Course {
    pub(super) fn new(privacy: &Arc<Privacy>, is_over: &Arc<AtomicBool>) -> Self {
        Self { privacy: Arc::clone(privacy), is_over: Arc::clone(is_over) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.privacy.parts.is_closing()
    }

    /// Whether exports may use more of the disk.
    pub(super) fn has_space(&self) -> bool {
        self.privacy.subjects.has_space()
    }

    /// Whether the attempt goes on.
    pub(super) fn check(&self) -> Result<(), AttemptError> {
        if self.is_over() {
            return Err(AttemptError::Stopped);
        }
        if !self.has_space() {
            return Err(AttemptError::Failed(PrivacyFailure::DiskFull, "the disk is nearly full".to_owned()));
        }
        Ok(())
    }
}
