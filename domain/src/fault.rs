//! Why state could not be read back or brought up to date.

/// What a [`Fault`] is due to, which decides what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The operating system refused. Nothing is known to be wrong with what is stored: a later attempt may succeed.
    Io,
    /// The store does not hold what was written. A rebuild from the log helps.
    DamagedStore,
    /// The index of external ids does not hold what was written. A rebuild from the log helps.
    DamagedIndex,
    /// A part of the log is missing, damaged or of an unknown version. A rebuild would fail in the same place.
    DamagedLog,
    /// The program contradicts itself. Nothing is known to be wrong with what is stored.
    Defect,
}

/// State could not be read back or brought up to date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What it is due to.
    pub kind: FaultKind,
    /// What happened, and where.
    pub message: String,
}

impl Fault {
    /// A fault of this kind.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A fault of the kind [`FaultKind::Io`].
    pub fn io(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Io, message)
    }

    /// A fault of the kind [`FaultKind::DamagedStore`].
    pub fn damaged_store(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedStore, message)
    }

    /// A fault of the kind [`FaultKind::DamagedIndex`].
    pub fn damaged_index(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedIndex, message)
    }

    /// A fault of the kind [`FaultKind::DamagedLog`].
    pub fn damaged_log(message: impl Into<String>) -> Self {
        Self::new(FaultKind::DamagedLog, message)
    }

    /// A fault of the kind [`FaultKind::Defect`].
    pub fn defect(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Defect, message)
    }
}
