//! Privacy requests of members of a cluster (ADR 62): documents that only the home of their organization changes. What exports made are files of the home alone.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use headcount_domain::ids::OrganizationId;

use super::artifacts::Artifacts;
use super::place::{PrivacyPlace, SharedPrivacy};
use super::recovery::AtStart;
use super::request::PrivacyRequest;
use super::requests::PrivacyRequests;
use crate::owners::NOT_HERE;
use crate::partitions::{PARTITIONS, home_of};
use crate::registry::{ControlError, PrivacyRequestId, RegistryError};

/// How many linked anonymous ids a document has at most: those of an erasure are in its own record, too.
const MAX_SHARED_OTHERS: usize = 5_000;

/// A change of a request, made to it as it is.
type PrivacyChange<'c> = dyn FnMut(&mut PrivacyRequest) + 'c;

impl PrivacyRequests {
    /// Opens those of a member, which knows of none yet. Removes all artifacts: another machine may have withdrawn them meanwhile.
    ///
    /// # Errors
    /// The directory of artifacts can't be read or written, or a file can't be removed.
    pub(crate) fn open_shared(shared: SharedPrivacy, exports: &Path) -> io::Result<Self> {
        let artifacts = Artifacts::open(exports, |_| false)?;
        Ok(Self::with(PrivacyPlace::Shared(shared), BTreeMap::new(), artifacts))
    }

    fn shared(&self) -> Option<&SharedPrivacy> {
        match &self.place {
            PrivacyPlace::Files(_) => None,
            PrivacyPlace::Shared(shared) => Some(shared),
        }
    }

    /// Whether other machines may look after requests, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared().is_some()
    }

    /// Whether this machine looks after the requests of an organization, and knows them all.
    pub(crate) fn is_home(&self, organization: OrganizationId) -> bool {
        self.shared().is_none_or(|shared| shared.is_home(organization))
    }

    /// Checks that this machine looks after the requests of an organization.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: another one does, or takes that over.
    pub(crate) fn check_home(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        if self.is_home(organization) { Ok(()) } else { Err(not_here()) }
    }

    /// Reads what others have changed.
    fn follow(&self, shared: &SharedPrivacy) -> Result<u64, ControlError> {
        shared.items.follow(|id, request| {
            let mut all = self.all.write();
            match request {
                Some(request) => drop(all.insert(id.clone(), Arc::new(request))),
                None => drop(all.remove(id)),
            }
            Ok(())
        })
    }

    /// As [`PrivacyRequests::add`]. After an error, the request may be there all the same.
    pub(super) fn add_shared(
        &self,
        shared: &SharedPrivacy,
        request: PrivacyRequest,
    ) -> Result<Arc<PrivacyRequest>, RegistryError> {
        let _one = self.changes.lock();
        let added = self.write(shared, &mut || {
            self.check_room(request.organization)?;
            Ok(Some(request.clone()))
        });
        if added.is_err() {
            // Its erasure, if it has one, goes on without it.
            self.note_unsure();
        }
        self.made.notify_one();
        added?;
        Ok(self.get(request.organization, &request.id).unwrap_or_else(|| Arc::new(request)))
    }

    /// As [`PrivacyRequests::record`].
    pub(super) fn change_shared(
        &self,
        shared: &SharedPrivacy,
        id: &PrivacyRequestId,
        change: &mut PrivacyChange<'_>,
    ) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        self.write(shared, &mut || {
            let Some(current) = self.all.read().get(id).cloned() else { return Ok(None) };
            let mut changed = PrivacyRequest::clone(&current);
            change(&mut changed);
            Ok((changed != *current).then_some(changed))
        })
    }

    /// Writes a request that `plan` returns for the requests as they are; `None`: nothing is to be changed. If another change comes first, `plan` is asked again.
    fn write(
        &self,
        shared: &SharedPrivacy,
        plan: &mut dyn FnMut() -> Result<Option<PrivacyRequest>, RegistryError>,
    ) -> Result<(), RegistryError> {
        let mut last = None;
        loop {
            let expected = self.follow(shared)?;
            check_progress(&mut last, expected)?;
            let Some(request) = plan()? else { return Ok(()) };
            // A machine that was halted may have lost the home meanwhile.
            if !shared.owns(request.organization) {
                return Err(not_here());
            }
            if shared.items.put(expected, &request.id, Some(&shortened(&request)))? {
                self.follow(shared)?;
                return Ok(());
            }
        }
    }

    /// Begins to look after the organizations of a partition that this machine owns: learns what others have done, removes what it has of a former time, and ends what was
    /// begun. `None`: there are none yet. Does nothing if it has begun before. Returns whether it begins.
    ///
    /// # Errors
    /// The brokers do not answer, or a file can't be removed.
    pub(crate) fn take_up(&self, partition: u16, known: Option<&AtStart<'_>>) -> Result<bool, RegistryError> {
        let Some(shared) = self.shared() else { return Ok(false) };
        let given_up = {
            let homes = shared.homes.lock();
            if homes.begun.contains(&partition) {
                return Ok(false);
            }
            homes.given_up
        };
        if let Some(known) = known {
            self.prove(shared, partition)?;
            let removed = self.remove_files_of(&|organization| home_of(organization) == partition);
            removed.and_then(|()| self.recover(known)).map_err(unusable)?;
        }
        let mut homes = shared.homes.lock();
        let is_still = homes.given_up == given_up && shared.owners.is_here(partition);
        Ok(is_still && homes.begun.insert(partition))
    }

    /// Reads everything that was written before. A broker that is behind may say that there is nothing more: only a change of one's own shows it.
    fn prove(&self, shared: &SharedPrivacy, partition: u16) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        let mut last = None;
        loop {
            let expected = self.follow(shared)?;
            check_progress(&mut last, expected)?;
            if shared.items.mark(expected, &format!("home.{partition:03}"))? {
                self.follow(shared)?;
                return Ok(());
            }
        }
    }

    fn remove_files_of(&self, is_of: &dyn Fn(OrganizationId) -> bool) -> io::Result<()> {
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
    pub(crate) fn remove_strays(&self) -> io::Result<()> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let _alone = self.jobs.alone();
        for id in self.artifacts.ids()? {
            let request = self.all.read().get(&id).cloned();
            let is_kept = request.is_some_and(|request| {
                shared.owns(request.organization) && (request.keeps_artifact() || self.jobs.is_running(&id))
            });
            if !is_kept {
                self.artifacts.remove(&id)?;
            }
        }
        Ok(())
    }

    /// Ends what this machine does for the organizations of a partition, which another one may own from now on. What exports made is removed soon.
    pub(crate) fn give_up(&self, partition: u16) {
        let Some(shared) = self.shared() else { return };
        {
            let mut homes = shared.homes.lock();
            homes.begun.remove(&partition);
            homes.given_up += 1;
        }
        self.jobs.stop_of(|organization| home_of(organization) == partition);
        self.made.notify_one();
    }

    /// The partitions that this machine owns, and whose organizations it does not look after yet. Forgets those that it has lost.
    pub(crate) fn new_homes(&self) -> Vec<u16> {
        let Some(shared) = self.shared() else { return Vec::new() };
        let mut homes = shared.homes.lock();
        homes.begun.retain(|partition| shared.owners.is_here(*partition));
        let owned = (0..PARTITIONS).filter(|partition| shared.owners.is_here(*partition));
        owned.filter(|partition| !homes.begun.contains(partition)).collect()
    }

    /// Has [`Self::recover`] called again.
    pub(crate) fn note_unsure(&self) {
        if let Some(shared) = self.shared() {
            shared.is_unsure.store(true, Ordering::Release);
        }
    }

    /// Whether [`Self::recover`] is to be called again: a request could not be written, and its erasure may be recorded.
    pub(crate) fn is_unsure(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_unsure.load(Ordering::Acquire))
    }

    /// As [`Self::is_unsure`], once.
    pub(crate) fn take_unsure(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_unsure.swap(false, Ordering::AcqRel))
    }
}

/// The request as a document, whose size is bounded.
fn shortened(request: &PrivacyRequest) -> PrivacyRequest {
    let mut shortened = request.clone();
    shortened.keys.others.truncate(MAX_SHARED_OTHERS);
    shortened
}

/// Checks that another change is there when one was refused.
fn check_progress(last: &mut Option<u64>, expected: u64) -> Result<(), ControlError> {
    if last.replace(expected) == Some(expected) {
        let message = "a change of a privacy request is refused, and no other is there";
        return Err(ControlError::Documents(message.to_owned()));
    }
    Ok(())
}

fn not_here() -> RegistryError {
    ControlError::Documents(NOT_HERE.to_owned()).into()
}

fn unusable(source: io::Error) -> RegistryError {
    ControlError::Io { doing: "remove or make anew", path: super::EXPORTS_DIR.into(), source }.into()
}
