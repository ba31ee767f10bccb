//! Downloads of artifacts.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use headcount_control::{PrivacyRequestId, RegistryError, TokenId};
use headcount_domain::OrganizationId;
use headcount_storage::files::File;

use crate::export_state::{ArtifactGone, PrivacyFailure};
use crate::privacy::Privacy;
use crate::request::{PrivacyAuditEvent, PrivacyRequestKind, PrivacyStatus};

/// Why there is nothing to download.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// There is no such export in the organization.
    #[error("there is no such export")]
    Unknown,
    /// It is not completed.
    #[error("the export is not completed")]
    NotReady,
    /// Another machine looks after it, or takes that over.
    #[error("another machine looks after the export, or takes that over")]
    Elsewhere,
    /// It is made once more, since the machine that looks after it now does not have the artifact.
    #[error("the export is being made again; ask again in a moment")]
    MadeAgain,
    /// It failed.
    #[error("the export failed: {0}")]
    Failed(PrivacyFailure),
    /// The artifact is gone.
    #[error("the artifact is gone")]
    Gone(ArtifactGone),
    /// The file can't be read.
    #[error("the artifact can't be read: {0}")]
    Unreadable(#[from] std::io::Error),
}

/// An artifact to download.
#[derive(Debug)]
pub struct Download {
    /// The open file. It can be read to its end also if the artifact is removed meanwhile.
    pub file: Arc<File>,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Privacy {
    /// Opens the artifact of an export.
    ///
    /// # Errors
    /// See [`DownloadError`].
    pub fn open_export(&self, organization: OrganizationId, id: &PrivacyRequestId) -> Result<Download, DownloadError> {
        if !self.requests.is_home(organization) {
            return Err(DownloadError::Elsewhere);
        }
        let request = self.requests.get(organization, id);
        let request = request.filter(|request| request.kind == PrivacyRequestKind::Export).ok_or(DownloadError::Unknown)?;
        match request.status {
            _ if request.is_made_again() => return Err(DownloadError::MadeAgain),
            PrivacyStatus::Pending | PrivacyStatus::Processing => return Err(DownloadError::NotReady),
            PrivacyStatus::Failed => {
                return Err(DownloadError::Failed(request.failure().unwrap_or(PrivacyFailure::Internal)));
            }
            PrivacyStatus::Completed => {}
        }
        if let Some(gone) = request.export.gone {
            return Err(DownloadError::Gone(gone));
        }
        let is_expired = request.expires_at().is_none_or(|until| self.parts.clock().now() >= until);
        match &request.export.artifact {
            _ if self.lost_project(&request) => Err(DownloadError::Gone(ArtifactGone::Erased)),
            Some(artifact) if !is_expired => {
                let file = self.requests.artifacts.read(id).map_err(|error| self.unreadable(organization, id, error))?;
                Ok(Download { file: Arc::new(file), bytes: artifact.bytes, sha256: artifact.sha256.clone() })
            }
            _ => Err(DownloadError::Gone(ArtifactGone::Expired)),
        }
    }

    /// Says why an artifact can't be opened. An export whose file is not there is made again, as at
    /// a start.
    fn unreadable(&self, organization: OrganizationId, id: &PrivacyRequestId, error: io::Error) -> DownloadError {
        let privacy = &self.requests;
        // It may be withdrawn this moment, and noted once the lock is free.
        let _alone = privacy.jobs.alone();
        if let Some(gone) = privacy.get(organization, id).and_then(|request| request.export.gone) {
            return DownloadError::Gone(gone);
        }
        if error.kind() != ErrorKind::NotFound {
            return DownloadError::Unreadable(error);
        }
        if let Err(error) = self.make_missing_again(organization, id) {
            tracing::warn!(request = %id, %error, "an export whose artifact is missing can't be made again yet");
        }
        DownloadError::MadeAgain
    }

    /// Has an export made again whose artifact is not there. Call it where no export is completed
    /// or withdrawn.
    fn make_missing_again(&self, organization: OrganizationId, id: &PrivacyRequestId) -> Result<(), RegistryError> {
        let privacy = &self.requests;
        let Some(request) = privacy.get(organization, id).filter(|request| request.keeps_artifact()) else { return Ok(()) };
        if privacy.artifacts.has(&request)? {
            return Ok(());
        }
        tracing::warn!(request = %id, "the artifact of an export is missing; the export is made again");
        privacy.change(id, |request| {
            if request.keeps_artifact() {
                request.make_again();
            }
        })?;
        privacy.made.notify_one();
        Ok(())
    }

    /// Notes in the audit view that an artifact, or a part of it, is being downloaded. When this
    /// returns, that is durable.
    ///
    /// # Errors
    /// [`RegistryError::Storage`].
    pub fn note_download(&self, id: &PrivacyRequestId, token_id: Option<TokenId>) -> Result<(), RegistryError> {
        let now = self.parts.clock().now();
        self.requests.change(id, |request| request.note(now, PrivacyAuditEvent::Downloaded { token_id: token_id.clone() }))
    }
}
