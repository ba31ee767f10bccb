//! Changes of privacy requests: each is made to the request as it is, in the order of all changes.

use std::sync::Arc;

use headcount_common::{ControlError, DocumentSet, NOT_HERE, follow_made};
use headcount_control::{PrivacyRequestId, RegistryError};

use super::request::{PrivacyRequest, PrivacyRequestKind};
use super::requests::PrivacyRequests;

/// The most linked anonymous ids in the document of an erasure or an opt-in. The records of its
/// erasures have all of them.
pub(super) const MAX_OTHERS: usize = 5_000;

type Requests = DocumentSet<PrivacyRequest>;

impl PrivacyRequests {
    /// Reads all changes since the last call.
    ///
    /// # Errors
    /// The documents can't be read.
    pub(super) fn follow(&self) -> Result<u64, ControlError> {
        self.items.follow(|id, request| {
            let mut all = self.all.write();
            match request {
                Some(request) => drop(all.insert(id.clone(), Arc::new(request))),
                None => drop(all.remove(id)),
            }
            Ok(())
        })
    }

    /// Records a new request, durably.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: the request could not be written, or is there all the same. An
    /// erasure that was begun for it goes on without it.
    pub(crate) fn add(&self, request: PrivacyRequest) -> Result<Arc<PrivacyRequest>, RegistryError> {
        let _one = self.changes.lock();
        let added = self.write(&mut || {
            self.check_room(request.organization)?;
            Ok(Some(request.clone()))
        });
        if added.is_err() {
            self.note_unsure();
        }
        self.made.notify_one();
        added?;
        Ok(self.get(request.organization, &request.id).unwrap_or_else(|| Arc::new(request)))
    }

    /// Changes a request, durably. Does nothing if `change` leaves the request as it is, or if
    /// there is none. `change` may be called more than once, each time for the request as it is
    /// then.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: the change could not be written; it may be made all the same.
    pub(crate) fn change(&self, id: &PrivacyRequestId, mut change: impl FnMut(&mut PrivacyRequest)) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        self.write(&mut || {
            let Some(current) = self.all.read().get(id).cloned() else { return Ok(None) };
            let mut changed = PrivacyRequest::clone(&current);
            change(&mut changed);
            Ok((changed != *current).then_some(changed))
        })
    }

    /// Writes the request that `plan` returns for the requests as they are; `None`: nothing is to
    /// be changed. If another change comes first, `plan` is asked again.
    fn write(&self, plan: &mut dyn FnMut() -> Result<Option<PrivacyRequest>, RegistryError>) -> Result<(), RegistryError> {
        Requests::attempt(
            || self.follow(),
            |expected| {
                let Some(request) = plan()? else { return Ok(Some(())) };
                // A machine that was halted may have lost the home meanwhile.
                if !self.owns(request.organization) {
                    return Err(not_here());
                }
                let request = shortened(request);
                let is_made = self.items.put(expected, &request.id, Some(&request))?;
                Ok(if is_made { follow_made(|| self.follow()).map(|_| Some(()))? } else { None })
            },
        )
    }

    /// Reads everything that was written before. A broker that is behind may say that there is
    /// nothing more: only a change of one's own shows it.
    pub(super) fn prove(&self, partition: u16) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        let by = format!("home.{partition:03}");
        let attempt = |expected| self.items.prove(expected, &by).map(|is_last| is_last.then_some(()));
        Requests::attempt(|| self.follow(), attempt)?;
        self.follow()?;
        Ok(())
    }
}

/// The request as a document, whose size is bounded.
fn shortened(mut request: PrivacyRequest) -> PrivacyRequest {
    // Only an export itself says whom it is about, who may be erased later. It has at most 10,000
    // ids.
    if request.kind != PrivacyRequestKind::Export {
        request.keys.others.truncate(MAX_OTHERS);
    }
    request
}

pub(super) fn not_here() -> RegistryError {
    ControlError::Documents(NOT_HERE.to_owned()).into()
}
