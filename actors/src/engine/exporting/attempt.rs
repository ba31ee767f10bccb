//! One attempt to make an artifact: whether it goes on, and why it did not.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_control::RegistryError;
use headcount_domain::fault::{Fault, FaultKind};
use headcount_storage::codec::CodecError;

use crate::engine::erasing::ErasureError;
use crate::engine::handle::Engine;
use crate::privacy::PrivacyFailure;
use crate::shard::AskError;

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
    engine: Engine,
    is_over: Arc<AtomicBool>,
}

impl Course {
    pub(super) fn new(engine: &Engine, is_over: &Arc<AtomicBool>) -> Self {
        Self { engine: engine.clone(), is_over: Arc::clone(is_over) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.engine.is_closing()
    }

    /// Whether exports may use more of the disk. They leave twice of what events need, so that an
    /// export alone never makes the disk too full for those.
    pub(super) fn has_space(&self) -> bool {
        let least = self.engine.inner.config.min_free_bytes.saturating_mul(2);
        self.engine.inner.admission.disk.free_bytes() >= least
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
