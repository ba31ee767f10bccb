//! Homes: the organizations whose privacy requests this machine looks after (ADR 17). Each has one
//! home, the owner of one partition.
//!
//! Only the home changes a request, and only the home has the artifacts of exports. One machine
//! alone is the home of all organizations from its start on.

use std::sync::atomic::Ordering;

use headcount_common::{ControlError, home_of};
use headcount_control::RegistryError;
use headcount_domain::OrganizationId;

use super::changes::not_here;
use super::recovery::AtStart;
use super::requests::PrivacyRequests;

impl PrivacyRequests {
    /// Whether this machine owns the partition that an organization's requests go with.
    pub(super) fn owns(&self, organization: OrganizationId) -> bool {
        self.owners.is_here(home_of(organization))
    }

    /// Whether this machine looks after the requests of an organization, and knows them all.
    pub(crate) fn is_home(&self, organization: OrganizationId) -> bool {
        self.owns(organization) && self.homes.lock().begun.contains(&home_of(organization))
    }

    /// Checks that this machine looks after the requests of an organization.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: another one does, or takes that over.
    pub(crate) fn check_home(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        if self.is_home(organization) { Ok(()) } else { Err(not_here()) }
    }

    /// Begins to look after the organizations of a partition that this machine owns: learns what
    /// others have done, removes what it has of a former time, and ends what was begun. `None`:
    /// there are none yet. Does nothing if it has begun before. Returns whether it begins.
    ///
    /// # Errors
    /// The documents can't be read, or a file can't be removed.
    pub(crate) fn take_up(&self, partition: u16, known: Option<&AtStart<'_>>) -> Result<bool, RegistryError> {
        let given_up = {
            let homes = self.homes.lock();
            if homes.begun.contains(&partition) {
                return Ok(false);
            }
            homes.given_up
        };
        if let Some(known) = known {
            self.prove(partition)?;
            self.remove_files_of(&|organization| home_of(organization) == partition)?;
            self.recover(known)?;
        }
        let mut homes = self.homes.lock();
        let is_still = homes.given_up == given_up && self.owners.is_here(partition);
        Ok(is_still && homes.begun.insert(partition))
    }

    fn remove_files_of(&self, is_of: &dyn Fn(OrganizationId) -> bool) -> Result<(), ControlError> {
        let _alone = self.jobs.alone();
        for id in self.artifacts.ids()? {
            let organization = self.all.read().get(&id).map(|request| request.organization);
            if organization.is_some_and(is_of) {
                self.artifacts.remove(&id)?;
            }
        }
        Ok(())
    }

    /// Removes the artifacts that are not, or no longer, given out by this machine.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn remove_strays(&self) -> Result<(), ControlError> {
        let _alone = self.jobs.alone();
        for id in self.artifacts.ids()? {
            let request = self.all.read().get(&id).cloned();
            let is_kept = request.is_some_and(|request| {
                self.owns(request.organization) && (request.keeps_artifact() || self.jobs.is_running(&id))
            });
            if !is_kept {
                self.artifacts.remove(&id)?;
            }
        }
        Ok(())
    }

    /// Ends what this machine does for the organizations of a partition, which another one may own
    /// from now on. What exports made is removed soon.
    pub(crate) fn give_up(&self, partition: u16) {
        {
            let mut homes = self.homes.lock();
            homes.begun.remove(&partition);
            homes.given_up += 1;
        }
        self.jobs.stop(|_, organization| home_of(organization) == partition);
        self.note_unsure();
        self.made.notify_one();
    }

    /// The partitions that this machine owns, and whose organizations it does not look after yet.
    /// Forgets those that it has lost.
    pub(crate) fn new_homes(&self) -> Vec<u16> {
        let mut homes = self.homes.lock();
        let known = homes.begun.len();
        homes.begun.retain(|partition| self.owners.is_here(*partition));
        if homes.begun.len() < known {
            // Files of exports are left.
            self.note_unsure();
        }
        self.owners.here().filter(|partition| !homes.begun.contains(partition)).collect()
    }

    /// Has [`Self::recover`] called again.
    pub(crate) fn note_unsure(&self) {
        self.is_unsure.store(true, Ordering::Release);
    }

    /// Whether [`Self::recover`] is to be called again, once: a request could not be written, and
    /// its erasure may be recorded, or there are other erasures than at the last call. `applied`
    /// counts their changes.
    pub(crate) fn take_unsure(&self, applied: u64) -> bool {
        let has_changed = self.erasures_seen.swap(applied, Ordering::AcqRel) != applied;
        self.is_unsure.swap(false, Ordering::AcqRel) || has_changed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headcount_domain::{Instant, ProjectId, RecordKey};
    use parking_lot::Mutex;

    use super::super::changes::MAX_OTHERS;
    use super::super::export_state::Artifact;
    use super::super::request::tests::request;
    use super::super::request::{PrivacyRequest, PrivacyRequestKind, PrivacyStatus};
    use super::*;
    use headcount_common::{DocumentChange, DocumentVisitor, Documents, DocumentsError, Owners};
    use headcount_control::{Erasure, ErasureEnd, PrivacyRequestId};
    use std::sync::Arc;

    const ORGANIZATION: OrganizationId = OrganizationId(1);

    type Change = (String, Vec<u8>);

    /// The changes of all members, as one of them has seen them.
    #[derive(Debug, Default)]
    struct SeenChanges {
        all: Arc<Mutex<Vec<Change>>>,
        seen: Mutex<usize>,
        /// Whether brokers do not answer.
        is_silent: Mutex<bool>,
    }

    impl Documents for SeenChanges {
        fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
            let (all, mut seen) = (self.all.lock(), self.seen.lock());
            for (key, content) in &all[*seen..] {
                let _visited = visit(DocumentChange { key, content: Some(content) })?;
                *seen += 1;
            }
            Ok(*seen as u64)
        }

        fn read(&self, _: &str) -> Result<Option<Vec<u8>>, ControlError> {
            Ok(None)
        }

        fn put(&self, expected: u64, change: DocumentChange<'_>) -> Result<(), DocumentsError> {
            if *self.is_silent.lock() {
                return Err(DocumentsError::Unavailable("no answer".to_owned()));
            }
            let mut all = self.all.lock();
            if all.len() as u64 != expected {
                return Err(DocumentsError::Conflict);
            }
            all.push((change.key.to_owned(), change.content.unwrap_or_default().to_owned()));
            Ok(())
        }

        fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError> {
            self.put(expected, DocumentChange { key: by, content: Some(b"mark") })
        }
    }

    struct Member {
        dir: tempfile::TempDir,
        owners: Arc<Owners>,
        changes: Arc<SeenChanges>,
        requests: PrivacyRequests,
    }

    impl Member {
        fn new(all: &Arc<Mutex<Vec<Change>>>) -> Self {
            let (dir, owners) = (tempfile::tempdir().unwrap(), Arc::new(Owners::unknown()));
            let changes = Arc::new(SeenChanges { all: Arc::clone(all), ..SeenChanges::default() });
            let documents = Arc::clone(&changes) as Arc<dyn Documents>;
            let requests = PrivacyRequests::open(documents, Arc::clone(&owners), dir.path()).unwrap();
            Self { dir, owners, changes, requests }
        }

        fn owns(&self, owns: bool) {
            let until = Duration::MAX;
            if owns { self.owners.hold(home_of(ORGANIZATION), until) } else { self.owners.give_up(home_of(ORGANIZATION)) }
        }

        /// Begins with what is new, at the time 100, when `erasures` are known.
        fn looks(&self, erasures: &[Erasure]) -> Vec<u16> {
            let (is_of, has_project) = (|organization| organization == ORGANIZATION, |_: ProjectId| true);
            let known = AtStart { now: Instant(100), erasures, is_of: &is_of, has_project: &has_project };
            self.requests.remove_strays().unwrap();
            let mut new = self.requests.new_homes();
            new.retain(|partition| self.requests.take_up(*partition, Some(&known)).unwrap());
            new
        }

        /// Completes an export, whose file is here then.
        fn completes(&self, id: &PrivacyRequestId, expires_at: i64) {
            let (bytes, sha256) = self.requests.artifacts.create(id).unwrap().finish().unwrap();
            let artifact = Artifact { bytes, sha256, ..Artifact::default() };
            let complete =
                |request: &mut PrivacyRequest| request.complete_export(Instant(50), artifact.clone(), Instant(expires_at));
            self.requests.change(id, complete).unwrap();
        }

        fn files(&self) -> usize {
            std::fs::read_dir(self.dir.path()).unwrap().count()
        }

        fn shown(&self, id: &PrivacyRequestId) -> Arc<PrivacyRequest> {
            self.requests.get(ORGANIZATION, id).unwrap()
        }
    }

    fn export() -> PrivacyRequest {
        PrivacyRequest { kind: PrivacyRequestKind::Export, erasures: Vec::new(), ..request(1, 1, 7) }
    }

    fn home() -> Vec<u16> {
        vec![home_of(ORGANIZATION)]
    }

    #[test]
    fn a_home_that_was_halted_changes_nothing_and_keeps_nothing() {
        let all = Arc::default();
        let (a, b) = (Member::new(&all), Member::new(&all));
        a.owns(true);
        assert!(!a.requests.is_home(ORGANIZATION), "it does not know yet what others have done");
        assert_eq!((a.looks(&[]), a.looks(&[])), (home(), vec![]));
        assert!(a.requests.is_home(ORGANIZATION));
        let id = a.requests.add(export()).unwrap().id.clone();
        a.completes(&id, 200);
        assert_eq!((a.looks(&[]), a.files()), (vec![], 1));
        // Its lease is over, and it has not noticed.
        a.owns(false);
        b.owns(true);
        assert_eq!(b.looks(&[]), home());
        assert!(b.shown(&id).is_made_again() && b.shown(&id).expires_at().is_none());
        let refused = a.requests.change(&id, |request| request.complete(Instant(60)));
        assert!(matches!(refused, Err(RegistryError::Storage(ControlError::Documents(_)))), "{refused:?}");
        assert!(a.requests.add(export()).is_err() && a.requests.check_home(ORGANIZATION).is_err());
        b.completes(&id, 900);
        let expires_at = b.shown(&id).expires_at();
        assert_eq!((expires_at, b.files()), (Some(Instant(200)), 1), "it is kept for no longer");
        // It comes back to the first one, whose file is of a former time.
        b.owns(false);
        b.requests.give_up(home_of(ORGANIZATION));
        a.requests.give_up(home_of(ORGANIZATION));
        a.owns(true);
        assert_eq!((a.looks(&[]), a.files()), (home(), 0));
        assert!(a.shown(&id).is_made_again());
        b.looks(&[]);
        assert_eq!(b.files(), 0);
    }

    #[test]
    fn changes_of_two_homes_at_once_are_made_to_what_the_other_left() {
        let all = Arc::default();
        let (a, b) = (Member::new(&all), Member::new(&all));
        // As no two members do.
        [&a, &b].iter().for_each(|member| member.owns(true));
        [&a, &b].iter().for_each(|member| assert_eq!(member.looks(&[]), home()));
        let id = a.requests.add(export()).unwrap().id.clone();
        b.requests.change(&id, |request| request.fail(Instant(9), super::super::PrivacyFailure::SubjectErased)).unwrap();
        let complete = |request: &mut PrivacyRequest| {
            if request.is_open() {
                request.complete(Instant(10));
            }
        };
        a.requests.change(&id, complete).unwrap();
        assert_eq!((a.shown(&id).status, a.shown(&id)), (PrivacyStatus::Failed, b.shown(&id)));
    }

    #[test]
    fn an_erasure_whose_request_is_missing_is_looked_for() {
        let all = Arc::default();
        let (a, b) = (Member::new(&all), Member::new(&all));
        a.owns(true);
        a.looks(&[]);
        let id = a.requests.add(export()).unwrap().id.clone();
        *a.changes.is_silent.lock() = true;
        assert!(a.requests.add(request(1, 5, 7)).is_err());
        assert!(a.requests.take_unsure(0) && !a.requests.take_unsure(0) && a.requests.take_unsure(1));
        a.owns(false);
        b.owns(true);
        let erasure = Erasure {
            number: 1,
            organization: ORGANIZATION,
            users: vec![RecordKey(7)],
            others: Vec::new(),
            emails: Vec::new(),
            ends: vec![ErasureEnd::at(9, ProjectId(1))],
            is_done: true,
            is_lifted: false,
        };
        assert_eq!(b.looks(&[erasure]), home());
        assert_eq!((b.shown(&id).status, b.shown(&id).subject.is_erased()), (PrivacyStatus::Failed, true));
    }

    #[test]
    fn a_document_has_some_of_very_many_ids() {
        let all = Arc::default();
        let member = Member::new(&all);
        member.owns(true);
        member.looks(&[]);
        let mut many = request(1, 5, 7);
        many.keys.others = (0..100_000).map(|id| (ProjectId(1), RecordKey(id))).collect();
        let kept = member.requests.add(many).unwrap();
        assert_eq!((kept.keys.users.len(), kept.keys.others.len()), (1, MAX_OTHERS));
    }
}
