//! All privacy requests, in memory and on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use headcount_actors::SubjectKeys;
use headcount_common::{ControlError, DocumentSet, Documents, Owners};
use headcount_control::{PrivacyRequestId, RegistryError, check_room};
use headcount_domain::{OrganizationId, RecordKey};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::artifacts::Artifacts;
use super::export_jobs::ExportJobs;
use super::request::{PrivacyRequest, PrivacyRequestKind, PrivacyStatus};

/// The most privacy requests of an organization.
pub const MAX_PRIVACY_REQUESTS: usize = 10_000;

/// The requests to list.
#[derive(Debug, Clone, Default)]
pub struct PrivacyQuery {
    /// The most requests.
    pub limit: usize,
    /// Only requests that are older than this one.
    pub starting_after: Option<PrivacyRequestId>,
    /// Only requests of this kind.
    pub kind: Option<PrivacyRequestKind>,
    /// Only requests that are this far.
    pub status: Option<PrivacyStatus>,
}

/// A part of the list of privacy requests.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacyPage {
    /// The requests, newest first.
    pub requests: Vec<Arc<PrivacyRequest>>,
    /// Whether older ones follow.
    pub truncated: bool,
}

/// The partitions whose organizations this machine looks after.
#[derive(Debug)]
pub(super) struct Homes {
    /// The partitions of which this machine knows everything that other machines have done.
    pub(super) begun: BTreeSet<u16>,
    /// How often a partition was given up.
    pub(super) given_up: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PrivacyRequests {
    pub(super) items: DocumentSet<PrivacyRequest>,
    pub(super) owners: Arc<Owners>,
    pub(super) homes: Mutex<Homes>,
    /// Whether a request may be missing whose erasure is recorded.
    pub(super) is_unsure: AtomicBool,
    /// How many changes of erasures were applied at the last look.
    pub(super) erasures_seen: AtomicU64,
    pub(super) all: RwLock<BTreeMap<PrivacyRequestId, Arc<PrivacyRequest>>>,
    /// Held while a request changes.
    pub(super) changes: Mutex<()>,
    /// Notified when a request was made.
    pub(crate) made: Arc<Notify>,
    /// What exports made.
    pub(crate) artifacts: Artifacts,
    pub(crate) jobs: ExportJobs,
}

impl PrivacyRequests {
    /// Opens the requests that are kept as `documents`, and the artifacts in `exports`. Reads the
    /// requests if this machine owns their homes already: it keeps their artifacts.
    /// [`PrivacyRequests::recover`] comes next.
    ///
    /// Removes all other artifacts: another machine may have withdrawn them meanwhile.
    ///
    /// # Errors
    /// The requests can't be read, the directory of artifacts can't be read or written, or a file
    /// can't be removed.
    pub(crate) fn open(documents: Arc<dyn Documents>, owners: Arc<Owners>, exports: &Path) -> Result<Self, ControlError> {
        let begun: BTreeSet<u16> = owners.here().collect();
        let is_at_home = !begun.is_empty();
        let requests = Self {
            items: DocumentSet::new(documents),
            owners,
            homes: Mutex::new(Homes { begun, given_up: 0 }),
            is_unsure: AtomicBool::new(false),
            erasures_seen: AtomicU64::new(0),
            all: RwLock::default(),
            changes: Mutex::default(),
            made: Arc::default(),
            artifacts: Artifacts::open(exports).map_err(|error| ControlError::io("open", exports, error))?,
            jobs: ExportJobs::default(),
        };
        if is_at_home {
            requests.follow()?;
        }
        requests.remove_strays()?;
        Ok(requests)
    }

    /// Checks that an organization may make another request.
    ///
    /// # Errors
    /// [`RegistryError::Conflict`] `limit_reached`.
    pub(crate) fn check_room(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        let count = self.all.read().values().filter(|request| request.organization == organization).count();
        check_room(count, MAX_PRIVACY_REQUESTS, "privacy requests")
    }

    /// A request of an organization.
    pub(crate) fn get(&self, organization: OrganizationId, id: &PrivacyRequestId) -> Option<Arc<PrivacyRequest>> {
        self.all.read().get(id).filter(|request| request.organization == organization).cloned()
    }

    /// All requests, of any organization, that something is to be done for.
    pub(crate) fn open_ones(&self) -> Vec<Arc<PrivacyRequest>> {
        self.all.read().values().filter(|request| request.is_open()).cloned().collect()
    }

    /// Whether there is something to be done for a request.
    pub(crate) fn is_open(&self, id: &PrivacyRequestId) -> bool {
        self.all.read().get(id).is_some_and(|request| request.is_open())
    }

    /// The exports of an organization that are not done, or keep an artifact.
    pub(crate) fn exports(&self, organization: OrganizationId) -> Vec<Arc<PrivacyRequest>> {
        let all = self.all.read();
        let exports = all.values().filter(|request| request.organization == organization);
        let exports = exports.filter(|request| request.kind == PrivacyRequestKind::Export);
        exports.filter(|request| request.is_open() || request.keeps_artifact()).cloned().collect()
    }

    /// The exports, of any organization, that keep an artifact.
    pub(crate) fn artifacts(&self) -> Vec<Arc<PrivacyRequest>> {
        self.all.read().values().filter(|request| request.keeps_artifact()).cloned().collect()
    }

    /// The requests of an organization about an identity of `keys` that still name it.
    pub(crate) fn naming(&self, organization: OrganizationId, keys: &SubjectKeys) -> Vec<PrivacyRequestId> {
        let all = self.all.read();
        let naming = all.values().filter(|request| request.organization == organization && !request.subject.is_erased());
        naming.filter(|request| request.keys.meets(keys)).map(|request| request.id.clone()).collect()
    }

    /// The erasures that requests wait for, or waited for.
    pub(super) fn requested_erasures(&self) -> BTreeSet<(OrganizationId, u64)> {
        let all = self.all.read();
        all.values().flat_map(|request| request.erasures.iter().map(move |number| (request.organization, *number))).collect()
    }

    /// The keys of the identities that had an e-mail address when they were erased.
    pub(crate) fn erased_with(&self, organization: OrganizationId, email: RecordKey) -> SubjectKeys {
        let mut keys = SubjectKeys::default();
        let is_of = |request: &&Arc<PrivacyRequest>| {
            request.organization == organization
                && request.kind == PrivacyRequestKind::Erasure
                && request.keys.emails.contains(&email)
        };
        for request in self.all.read().values().filter(is_of) {
            keys.users.extend(&request.keys.users);
            keys.others.extend(&request.keys.others);
        }
        keys
    }

    /// Returns requests of an organization, newest first. `None`: it has no request
    /// `starting_after`.
    pub(crate) fn page(&self, organization: OrganizationId, query: &PrivacyQuery) -> Option<PrivacyPage> {
        let mut requests: Vec<Arc<PrivacyRequest>> =
            self.all.read().values().filter(|request| request.organization == organization).cloned().collect();
        requests.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let begin = match &query.starting_after {
            None => 0,
            Some(id) => requests.iter().position(|request| request.id == *id)? + 1,
        };
        let is_wanted = |request: &Arc<PrivacyRequest>| {
            query.kind.is_none_or(|kind| kind == request.kind) && query.status.is_none_or(|status| status == request.status)
        };
        let mut wanted = requests.drain(begin..).filter(is_wanted);
        let requests = wanted.by_ref().take(query.limit).collect();
        let truncated = wanted.next().is_some();
        Some(PrivacyPage { requests, truncated })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use headcount_common::local::{LocalDocuments, item_names};
    use headcount_domain::Instant;
    use headcount_storage::files::switch::{Plan, Switch};

    use super::super::request::tests::request;
    use super::*;

    const ORGANIZATION: OrganizationId = OrganizationId(1);

    pub(in super::super) fn open_local(dir: &Path, exports: &Path) -> PrivacyRequests {
        let documents = Arc::new(LocalDocuments::open(dir).unwrap());
        PrivacyRequests::open(documents, Arc::new(Owners::alone()), exports).unwrap()
    }

    fn open(dir: &Path) -> PrivacyRequests {
        open_local(dir, &dir.join("exports"))
    }

    #[test]
    fn requests_are_listed_newest_first_and_stay_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open(dir.path());
        let ids: Vec<_> = (0..5).map(|at| requests.add(request(1, at, 7)).unwrap().id.clone()).collect();
        requests.add(request(2, 9, 7)).unwrap();
        requests.change(&ids[1], |request| request.complete(Instant(50))).unwrap();
        let requests = open(dir.path());
        let page = |query: PrivacyQuery| {
            let page = requests.page(ORGANIZATION, &query)?;
            Some((page.requests.iter().map(|request| request.id.clone()).collect::<Vec<_>>(), page.truncated))
        };
        let some = |ids: &[&PrivacyRequestId], truncated| Some((ids.iter().map(|id| (*id).clone()).collect(), truncated));
        let query = PrivacyQuery { limit: 2, ..PrivacyQuery::default() };
        assert_eq!(page(query.clone()), some(&[&ids[4], &ids[3]], true));
        let rest = PrivacyQuery { limit: 3, starting_after: Some(ids[3].clone()), ..query.clone() };
        assert_eq!(page(rest), some(&[&ids[2], &ids[1], &ids[0]], false));
        let done = PrivacyQuery { status: Some(PrivacyStatus::Completed), ..query.clone() };
        assert_eq!(page(done), some(&[&ids[1]], false));
        assert_eq!(page(PrivacyQuery { starting_after: Some(PrivacyRequestId::random().unwrap()), ..query }), None);
        assert_eq!((requests.open_ones().len(), requests.get(OrganizationId(2), &ids[0])), (5, None));
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_a_cut_one_removed() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open(dir.path());
        let [kept, damaged] = [1, 2].map(|at| requests.add(request(1, at, 7)).unwrap().id.clone());
        let path = dir.path().join(format!("{damaged}.json"));
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap().replace("pending", "failed!")).unwrap();
        let cut = dir.path().join(format!("{kept}.json.tmp"));
        std::fs::write(&cut, "{").unwrap();
        let requests = open(dir.path());
        assert_eq!((requests.open_ones().len(), requests.open_ones().first().map(|request| &request.id)), (1, Some(&kept)));
        assert!(path.with_extension("json.damaged").exists() && !path.exists() && !cut.exists());
        assert_eq!(item_names(dir.path()).unwrap(), [format!("{kept}.json")]);
    }

    /// After a failure the request is as it was, here and after a restart, or, there, as it was to
    /// become.
    #[test]
    fn every_operation_may_fail() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open(dir.path());
        let id = requests.add(request(1, 1, 7)).unwrap().id.clone();
        let mut failed = 0;
        for at in 1..50 {
            let switch = Switch::arm(dir.path(), Plan { at, ..Plan::default() });
            let now = Instant(i64::try_from(at).unwrap());
            let changed = requests.change(&id, |request| request.completed_at = Some(now));
            let is_clean = switch.failed().is_empty();
            drop(switch);
            assert_eq!(changed.is_ok(), requests.get(ORGANIZATION, &id).unwrap().completed_at == Some(now));
            let reopened = open(dir.path()).get(ORGANIZATION, &id).unwrap().completed_at;
            assert!(changed.is_err() || reopened == Some(now), "what was answered is durable");
            requests.change(&id, |request| request.completed_at = None).unwrap();
            failed += u64::from(!is_clean);
            if is_clean {
                break;
            }
        }
        assert!(failed >= 3, "{failed}");
    }
}
