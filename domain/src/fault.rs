//! The errors of reading and updating state.

/// The cause of a [`Fault`], which decides the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The operating system reported an error. No stored data is known to be damaged: a later
    /// attempt may succeed.
    Io,
    /// The store has lost or changed data. A rebuild from the log repairs it.
    DamagedStore,
    /// The index of external ids has lost or changed data. A rebuild from the log repairs it.
    DamagedIndex,
    /// A part of the log is missing, damaged or of an unknown version. A rebuild would fail at the
    /// same position.
    DamagedLog,
    /// A file of the archive is missing or damaged. Operations that need the file work again once
    /// it is restored.
    DamagedArchive,
    /// The program violated an invariant. No stored data is known to be damaged.
    Defect,
}

/// The error of reading or updating state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The cause.
    pub kind: FaultKind,
    /// What failed and where.
    pub message: String,
}

impl Fault {
    /// Creates a fault of this kind.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Creates a fault of the kind [`FaultKind::Io`].
    pub fn io(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Io, message)
    }

    /// Creates a fault of the kind [`FaultKind::DamagedStore`].
    pub fn damaged_store(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedStore, message)
    }

    /// Creates a fault of the kind [`FaultKind::DamagedIndex`].
    pub fn damaged_index(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedIndex, message)
    }

    /// Creates a fault of the kind [`FaultKind::DamagedLog`].
    pub fn damaged_log(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedLog, message)
    }

    /// Creates a fault of the kind [`FaultKind::Defect`].
    pub fn defect(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Defect, message)
    }
}
