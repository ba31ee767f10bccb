//! The end of artifacts: their time is over, or they have somebody who was erased, or a project
//! that was deleted.

use std::time::Duration;

use headcount_control::RegistryError;
use headcount_domain::ids::OrganizationId;

use crate::engine::handle::Engine;
use crate::privacy::{ArtifactGone, PrivacyFailure, PrivacyKeys, PrivacyRequest};

impl Engine {
    /// Has the exports about erased identities fail, or lose their artifacts. So do others whose
    /// artifacts have one of their ids.
    pub(in crate::engine) fn withdraw_exports(
        &self,
        organization: OrganizationId,
        erased: &PrivacyKeys,
    ) -> Result<(), RegistryError> {
        let _alone = self.inner.privacy.jobs.alone();
        let now = self.clock().now();
        for request in self.inner.privacy.exports(organization) {
            if request.is_open() && request.keys.meets(erased) {
                self.inner.privacy.change(&request.id, |request| {
                    if request.is_open() {
                        request.fail(now, PrivacyFailure::SubjectErased);
                    }
                })?;
                self.inner.privacy.jobs.stop(&request.id);
            } else if request.keeps_artifact() && request.names_any_of(erased) {
                self.remove_artifact(&request, ArtifactGone::Erased)?;
            }
        }
        Ok(())
    }

    /// Removes the artifacts whose time is over, and those of deleted projects. Returns the time
    /// until the next one is due.
    pub(in crate::engine) fn expire_exports(&self) -> Result<Option<Duration>, RegistryError> {
        let now = self.known_now();
        let mut next: Option<i64> = None;
        let mut kept = self.inner.privacy.artifacts();
        kept.retain(|request| self.inner.privacy.is_home(request.organization));
        for request in kept {
            let Some(expires_at) = request.expires_at() else { continue };
            if expires_at <= now {
                self.remove_artifact(&request, ArtifactGone::Expired)?;
            } else if self.lost_project(&request) {
                self.remove_artifact(&request, ArtifactGone::Erased)?;
            } else {
                let left = expires_at.0.saturating_sub(now.0);
                next = Some(next.map_or(left, |next| next.min(left)));
            }
        }
        Ok(next.map(|left| Duration::from_millis(left.unsigned_abs())))
    }

    /// Whether a project with events in the artifact was deleted.
    pub(super) fn lost_project(&self, request: &PrivacyRequest) -> bool {
        request.artifact_projects().iter().any(|project| self.registry().policy(*project).is_none())
    }

    /// Removes a file, then notes it: a request that is not noted is found again, also by the next
    /// start.
    fn remove_artifact(&self, request: &PrivacyRequest, gone: ArtifactGone) -> Result<(), RegistryError> {
        self.inner.privacy.artifacts.remove(&request.id)?;
        let now = self.clock().now();
        self.inner.privacy.change(&request.id, |request| request.lose_artifact(now, gone))
    }
}
