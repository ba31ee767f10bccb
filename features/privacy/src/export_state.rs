//! How far an export is, what it made, and why it failed.

use headcount_domain::{Instant, ProjectId, RecordKey};
use serde::{Deserialize, Serialize};

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PrivacyFailure {
    /// The subject was erased.
    #[error("the person was erased")]
    SubjectErased,
    /// There is not enough disk space.
    #[error("the disk is nearly full")]
    DiskFull,
    /// A file could not be written or read.
    #[error("a file could not be written or read")]
    Io,
    /// A file of the archive is damaged.
    #[error("a file of the archive is damaged")]
    ArchiveDamaged,
    /// A part of the state is being rebuilt, or has too much to do.
    #[error("the data of a project is not available now")]
    Unavailable,
    /// The subject has more ids than an export takes.
    #[error("the person has too many ids")]
    TooManyIds,
    /// A defect of the program.
    #[error("something went wrong on the server")]
    Internal,
}

impl PrivacyFailure {
    /// The code in answers.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::SubjectErased => "subject_erased",
            Self::DiskFull => "disk_full",
            Self::Io => "io",
            Self::ArchiveDamaged => "archive_damaged",
            Self::Unavailable => "unavailable",
            Self::TooManyIds => "too_many_ids",
            Self::Internal => "internal",
        }
    }
}

/// What an export has to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportState {
    /// How many attempts failed.
    pub(crate) failed_tries: u32,
    /// Why it failed, if it did.
    pub(crate) failure: Option<PrivacyFailure>,
    /// Until when the artifact is kept, from its completion on.
    pub(crate) expires_at: Option<Instant>,
    /// What was made, from its completion on.
    pub(crate) artifact: Option<Artifact>,
    /// Why there is no artifact any more.
    pub(crate) gone: Option<ArtifactGone>,
}

/// Why an artifact is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactGone {
    /// Its time was over.
    Expired,
    /// It had somebody who was erased, or a project that was deleted.
    Erased,
}

/// The file of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Artifact {
    /// Its length.
    pub(crate) bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub(crate) sha256: String,
    /// The projects with events in it.
    pub(crate) projects: Vec<ProjectId>,
    /// Anonymous ids in it that belong to somebody else.
    pub(crate) others: Vec<(ProjectId, RecordKey)>,
    /// Whether it has more such ids than are listed.
    pub(crate) has_more_others: bool,
}

impl Artifact {
    /// Whether it has, or may have, one of these anonymous ids.
    pub(crate) fn has_any_of(&self, others: &[(ProjectId, RecordKey)]) -> bool {
        (self.has_more_others && !others.is_empty()) || self.others.iter().any(|id| others.contains(id))
    }
}
