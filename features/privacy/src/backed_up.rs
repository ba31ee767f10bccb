//! Privacy requests for the data directory of one machine: a backup of several machines.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_actors::{BackedUpControl, MovedDocuments, PositionMap, SubjectKeys};
use headcount_common::ControlError;
use headcount_common::local::{kind_dir, write_items};
use headcount_control::Erasure;
use parking_lot::Mutex;

use super::request::{KIND, PrivacyRequest, PrivacyRequestKind};
use super::requests::PrivacyRequests;

impl PrivacyRequests {
    /// Returns all requests as they are now. Blocks.
    ///
    /// # Errors
    /// The documents can't be read.
    pub(crate) fn now(&self) -> Result<Vec<PrivacyRequest>, ControlError> {
        let _one = self.changes.lock();
        self.follow()?;
        Ok(self.all.read().values().map(|request| PrivacyRequest::clone(request)).collect())
    }
}

/// Returns requests for a data directory that has these erasures, which are those of the same
/// moment or a later one.
fn fitted_to(requests: Vec<PrivacyRequest>, erasures: &[Erasure]) -> Vec<PrivacyRequest> {
    // Requests name people until the erasure's own one is completed.
    let open = requests.iter().filter(|request| request.kind == PrivacyRequestKind::Erasure && request.is_open());
    let open: BTreeSet<_> =
        open.flat_map(|request| request.erasures.iter().map(|number| (request.organization, *number))).collect();
    let is_under_way = |erasure: &Erasure| !erasure.is_done || open.contains(&(erasure.organization, erasure.number));
    requests.into_iter().map(|request| fitted(request, erasures, &is_under_way)).collect()
}

/// Returns a request that names nobody whose erasure is under way. The request of such an erasure
/// gets all its ids.
fn fitted(mut request: PrivacyRequest, erasures: &[Erasure], is_under_way: &dyn Fn(&Erasure) -> bool) -> PrivacyRequest {
    for erasure in erasures.iter().filter(|erasure| erasure.organization == request.organization) {
        let keys = SubjectKeys::of(erasure);
        let is_own = request.kind == PrivacyRequestKind::Erasure && request.erasures.contains(&erasure.number);
        if is_under_way(erasure) && (is_own || request.names_any_of(&keys)) {
            request.subject = request.subject.erased();
        }
        if is_own && request.is_open() {
            request.keys.add(keys);
        }
    }
    request
}

/// The requests for a backup, as they were last read.
#[derive(Debug)]
pub(crate) struct MovedRequests {
    requests: Arc<PrivacyRequests>,
    read: Mutex<Vec<PrivacyRequest>>,
}

impl MovedRequests {
    pub(crate) fn new(requests: &Arc<PrivacyRequests>) -> Self {
        Self { requests: Arc::clone(requests), read: Mutex::default() }
    }
}

impl MovedDocuments for MovedRequests {
    /// The control data, which are read later, have all erasures of the requests.
    fn refresh(&self) -> Result<(), ControlError> {
        *self.read.lock() = self.requests.now()?;
        Ok(())
    }

    fn write(&self, data_dir: &Path, control: &BackedUpControl<'_>, _: &PositionMap) -> io::Result<()> {
        let mut requests = fitted_to(self.read.lock().clone(), control.erasures);
        requests.retain(|request| (control.has_organization)(request.organization));
        write_items(&kind_dir(data_dir, KIND), requests.iter().map(|request| (&request.id, request)))
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::{OrganizationId, ProjectId, RecordKey};

    use super::super::request::tests::request;
    use super::super::requests::tests::open_local;
    use super::*;
    use headcount_control::ErasureEnd;

    fn erasure(number: u64, user: u128, is_done: bool) -> Erasure {
        Erasure {
            number,
            organization: OrganizationId(1),
            users: vec![RecordKey(user)],
            others: vec![(ProjectId(1), RecordKey(user + 100))],
            emails: Vec::new(),
            ends: vec![ErasureEnd::at(9, ProjectId(1))],
            is_done,
            is_lifted: false,
        }
    }

    #[test]
    fn nothing_names_somebody_whose_erasure_is_under_way() {
        let fitted = |request, erasures: &[Erasure]| fitted(request, erasures, &|erasure| !erasure.is_done);
        let erasures = [erasure(1, 7, false), erasure(2, 8, true)];
        let erasing = fitted(request(1, 5, 7), &erasures);
        assert!(erasing.subject.is_erased() && erasing.is_open());
        assert_eq!(erasing.keys.others, [(ProjectId(1), RecordKey(107))]);
        let export = PrivacyRequest { kind: PrivacyRequestKind::Export, erasures: Vec::new(), ..request(1, 5, 7) };
        assert!(fitted(export.clone(), &erasures).subject.is_erased());
        // Of somebody else, of another organization, and of somebody whose erasure was done before.
        for other in [request(1, 5, 9), request(2, 5, 7), PrivacyRequest { erasures: vec![2], ..request(1, 5, 8) }] {
            let other = PrivacyRequest { kind: PrivacyRequestKind::OptIn, erasures: Vec::new(), ..other };
            assert_eq!(fitted(other.clone(), &erasures), other);
        }
    }

    #[test]
    fn a_request_names_nobody_whose_erasure_is_done_before_the_request_is() {
        let dir = tempfile::tempdir().unwrap();
        let requests = open_local(&dir.path().join("privacy"), &dir.path().join("exports"));
        let erasure = erasure(2, 8, true);
        let open = PrivacyRequest { erasures: vec![2], ..request(1, 5, 8) };
        requests.all.write().insert(open.id.clone(), open.into());
        let backed_up = fitted_to(requests.now().unwrap(), &[erasure]);
        assert!(backed_up[0].subject.is_erased() && backed_up[0].is_open());
    }
}
