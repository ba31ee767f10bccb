//! What is finished when requests are opened: a kill, or a restored backup, may have left one half
//! of a change.

use headcount_actors::SubjectKeys;
use headcount_control::{Erasure, RegistryError};
use headcount_domain::{Instant, OrganizationId, ProjectId};

use super::export_state::{ArtifactGone, PrivacyFailure};
use super::request::{PrivacyRequest, PrivacyRequestKind};
use super::requests::PrivacyRequests;

/// What is known when requests are opened, or looked after from now on.
pub(crate) struct AtStart<'s> {
    pub(crate) now: Instant,
    /// The erasures that are not done, at least.
    pub(crate) erasures: &'s [Erasure],
    /// Whether an organization's requests are meant.
    pub(crate) is_of: &'s dyn Fn(OrganizationId) -> bool,
    /// Whether a project is there.
    pub(crate) has_project: &'s dyn Fn(ProjectId) -> bool,
}

impl PrivacyRequests {
    /// Ends the removals of artifacts that were begun. Other exports whose artifacts are not there
    /// are made again: a restored backup has none. An erasure may be recorded without its request:
    /// nothing names its subject any more.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: a file can't be read or removed, or a request can't be written.
    pub(crate) fn recover(&self, known: &AtStart<'_>) -> Result<(), RegistryError> {
        // No export is completed or withdrawn meanwhile.
        let _alone = self.jobs.alone();
        let meant = known.erasures.iter().filter(|erasure| (known.is_of)(erasure.organization));
        let erasures: Vec<(&Erasure, SubjectKeys)> = meant.map(|erasure| (erasure, SubjectKeys::of(erasure))).collect();
        for request in self.artifacts().iter().filter(|request| (known.is_of)(request.organization)) {
            match reason_to_lose(request, known, &erasures) {
                Some(gone) => {
                    self.artifacts.remove(&request.id)?;
                    self.change(&request.id, |request| request.lose_artifact(known.now, gone))?;
                }
                None if self.artifacts.has(request)? => {}
                None => self.change(&request.id, PrivacyRequest::make_again)?,
            }
        }
        let requested = self.requested_erasures();
        for (erasure, keys) in erasures.iter().filter(|(of, _)| !requested.contains(&(of.organization, of.number))) {
            for id in self.naming(erasure.organization, keys) {
                self.change(&id, |request| forget(request, known.now))?;
            }
        }
        Ok(())
    }
}

/// Why the artifact of an export is to go, if it is.
fn reason_to_lose(export: &PrivacyRequest, known: &AtStart<'_>, erasures: &[(&Erasure, SubjectKeys)]) -> Option<ArtifactGone> {
    if !export.has_artifact(known.now) {
        return Some(ArtifactGone::Expired);
    }
    let mut of_export = erasures.iter().filter(|(erasure, _)| erasure.organization == export.organization);
    let is_erased = of_export.any(|(_, keys)| export.names_any_of(keys));
    let is_lost = is_erased || export.artifact_projects().iter().any(|project| !(known.has_project)(*project));
    is_lost.then_some(ArtifactGone::Erased)
}

/// Takes the subject from a request. An export ends.
fn forget(request: &mut PrivacyRequest, now: Instant) {
    request.subject = request.subject.erased();
    if request.kind == PrivacyRequestKind::Export && request.is_open() {
        request.fail(now, PrivacyFailure::SubjectErased);
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::RecordKey;

    use super::super::export_state::Artifact;
    use super::super::request::tests::request;
    use super::super::request::{PrivacyStatus, PrivacySubject};
    use super::super::requests::tests::open_local;
    use super::*;
    use headcount_control::{ErasureEnd, PrivacyRequestId};

    const ORGANIZATION: OrganizationId = OrganizationId(1);

    /// At the time 100, when there are the projects 1 and 2, and `users` are being erased.
    fn open(dir: &std::path::Path, users: &[u128]) -> PrivacyRequests {
        let requests = open_local(dir, &dir.join("exports"));
        let erasure = |(number, user): (u64, &u128)| Erasure {
            number,
            organization: ORGANIZATION,
            users: vec![RecordKey(*user)],
            others: Vec::new(),
            emails: Vec::new(),
            ends: vec![ErasureEnd::at(9, ProjectId(1))],
            is_done: false,
            is_lifted: false,
        };
        let erasures: Vec<Erasure> = (1..).zip(users).map(erasure).collect();
        let has_project = |project: ProjectId| project.0 <= 2;
        let known = AtStart { now: Instant(100), erasures: &erasures, is_of: &|_| true, has_project: &has_project };
        requests.recover(&known).unwrap();
        requests
    }

    fn export(user: u128) -> PrivacyRequest {
        PrivacyRequest { kind: PrivacyRequestKind::Export, erasures: Vec::new(), ..request(1, 1, user) }
    }

    /// An export of `user` that was completed, with events of `project`, and whose artifact is not
    /// there.
    fn without_file(requests: &PrivacyRequests, user: u128, project: u64, expires_at: i64) -> PrivacyRequestId {
        let mut export = export(user);
        export.begin(Instant(2), false);
        let artifact = Artifact { bytes: 7, projects: vec![ProjectId(project)], ..Artifact::default() };
        export.complete_export(Instant(3), artifact, Instant(expires_at));
        requests.add(export).unwrap().id.clone()
    }

    /// A kill comes between the removal of an artifact and its note in the request.
    #[test]
    fn artifacts_that_were_being_removed_are_not_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open(dir.path(), &[]);
        let expired = without_file(&requests, 8, 1, 100);
        let erased = without_file(&requests, 7, 1, 200);
        let deleted = without_file(&requests, 8, 3, 200);
        let restored = without_file(&requests, 8, 2, 200);
        let requests = open(dir.path(), &[7]);
        let shown = |id: &PrivacyRequestId| {
            let request = requests.get(ORGANIZATION, id).unwrap();
            (request.status, request.audit.last().unwrap().event.name(), request.export.gone)
        };
        assert_eq!(shown(&expired), (PrivacyStatus::Completed, "expired", Some(ArtifactGone::Expired)));
        assert_eq!(shown(&erased), (PrivacyStatus::Completed, "artifact_erased", Some(ArtifactGone::Erased)));
        assert_eq!(shown(&deleted), (PrivacyStatus::Completed, "artifact_erased", Some(ArtifactGone::Erased)));
        assert_eq!(shown(&restored), (PrivacyStatus::Processing, "completed", None), "to be made again");
        let read_again = open(dir.path(), &[7]);
        for id in [&expired, &erased, &deleted, &restored] {
            assert_eq!(read_again.get(ORGANIZATION, id), requests.get(ORGANIZATION, id), "it is noted once");
        }
    }

    /// A kill comes between the record of an erasure and its request.
    #[test]
    fn an_erasure_without_its_request_takes_the_subject_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open(dir.path(), &[]);
        let [under_way, of_another] = [7, 8].map(|user| requests.add(export(user)).unwrap().id.clone());
        let known_request = requests.add(request(1, 5, 9)).unwrap();
        let requests = open(dir.path(), &[9]);
        assert_eq!(requests.get(ORGANIZATION, &known_request.id).as_ref(), Some(&known_request), "it goes on itself");
        let requests = open(dir.path(), &[0, 7]);
        let failed = requests.get(ORGANIZATION, &under_way).unwrap();
        assert_eq!((failed.status, failed.failure()), (PrivacyStatus::Failed, Some(PrivacyFailure::SubjectErased)));
        assert!(failed.subject.is_erased(), "{failed:?}");
        let other = requests.get(ORGANIZATION, &of_another).unwrap();
        assert_eq!((other.status, &other.subject), (PrivacyStatus::Pending, &PrivacySubject::UserId("ada".to_owned())));
    }
}
