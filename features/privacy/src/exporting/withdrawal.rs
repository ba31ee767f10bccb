//! The end of artifacts: their time is over, or they have somebody who was erased, or a project
//! that was deleted.

use std::time::Duration;

use headcount_actors::SubjectKeys;
use headcount_control::RegistryError;
use headcount_domain::OrganizationId;

use crate::export_state::{ArtifactGone, PrivacyFailure};
use crate::privacy::Privacy;
use crate::request::PrivacyRequest;

impl Privacy {
    /// Has the exports about erased identities fail, or lose their artifacts. So do others whose
    /// artifacts have one of their ids.
    pub(crate) fn withdraw_exports(&self, organization: OrganizationId, erased: &SubjectKeys) -> Result<(), RegistryError> {
        let _alone = self.requests.jobs.alone();
        let now = self.parts.clock().now();
        for request in self.requests.exports(organization) {
            if request.is_open() && request.keys.meets(erased) {
                self.requests.change(&request.id, |request| {
                    if request.is_open() {
                        request.fail(now, PrivacyFailure::SubjectErased);
                    }
                })?;
                self.requests.jobs.stop(|id, _| *id == request.id);
            } else if request.keeps_artifact() && request.names_any_of(erased) {
                self.remove_artifact(&request, ArtifactGone::Erased)?;
            }
        }
        Ok(())
    }

    /// Removes the artifacts whose time is over, and those of deleted projects. Returns the time
    /// until the next one is due.
    pub(crate) fn expire_exports(&self) -> Result<Option<Duration>, RegistryError> {
        let now = self.parts.known_now();
        let mut next: Option<i64> = None;
        let mut kept = self.requests.artifacts();
        kept.retain(|request| self.requests.is_home(request.organization));
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
        request.artifact_projects().iter().any(|project| self.parts.registry().policy(*project).is_none())
    }

    /// Removes a file, then notes it: a request that is not noted is found again, also by the next
    /// start.
    fn remove_artifact(&self, request: &PrivacyRequest, gone: ArtifactGone) -> Result<(), RegistryError> {
        self.requests.artifacts.remove(&request.id)?;
        let now = self.parts.clock().now();
        self.requests.change(&request.id, |request| request.lose_artifact(now, gone))
    }
}
