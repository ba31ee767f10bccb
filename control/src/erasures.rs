//! Operations on the erasures of identities.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use headcount_domain::{OrganizationId, ProjectId};
use serde_json::Value;

use super::audit_entry::Audited;
use super::record::ControlRecord;
use super::{
    AuditAction, AuditTarget, Author, Change, Erasure, ErasureStage, FieldChange, ORGANIZATION_NOT_FOUND, Organization,
    PrivacyRequestId, Registry, Result, TargetType,
};

/// The privacy request that a change is made for. The audit log names the request, and not its
/// subject.
#[derive(Debug, Clone)]
pub struct MadeFor {
    /// The request's id.
    pub id: PrivacyRequestId,
    /// The kind of request.
    pub kind: &'static str,
    /// The author of the request.
    pub author: Author,
}

impl MadeFor {
    fn audited(&self) -> Audited {
        let kind = FieldChange { from: Value::Null, to: self.kind.into() };
        Audited {
            action: AuditAction::PrivacyRequestCreated,
            target: AuditTarget { kind: TargetType::PrivacyRequest, id: self.id.to_string() },
            changes: BTreeMap::from([("type".to_owned(), kind)]),
        }
    }
}

impl Change<'_> {
    /// Records a change of an erasure, and the audit entry for its privacy request.
    fn commit_for(&mut self, record: ControlRecord, made_for: Option<&MadeFor>) -> Result<()> {
        let entry = made_for.map(|made_for| made_for.audited().by(&made_for.author)).transpose()?;
        self.record(record, entry.as_slice())
    }
}

/// Adds ids in order.
fn add<K: Ord + Copy>(ids: &mut Vec<K>, more: &[K]) {
    ids.extend_from_slice(more);
    ids.sort_unstable();
    ids.dedup();
}

impl Registry {
    /// Records an erasure durably, and returns it with its number.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn add_erasure(&self, erasure: Erasure, made_for: Option<&MadeFor>) -> Result<Erasure> {
        self.change(made_for.map(|made_for| &made_for.author), |change| {
            let last = {
                let tenant = self.tenant(erasure.organization)?;
                tenant.erasures.last_key_value().map_or(0, |(number, _)| *number)
            };
            let erasure = Erasure { number: last + 1, ..erasure.clone() };
            change.commit_for(ControlRecord::IdentityErased(erasure.clone()), made_for)?;
            Ok(erasure)
        })
    }

    /// Records an erasure of another data directory durably, under its number there. It replaces
    /// the erasure with this number.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn put_erasure(&self, erasure: Erasure) -> Result<()> {
        self.change(None, |change| {
            if !change.state().tenants.contains_key(&erasure.organization) {
                return Err(ORGANIZATION_NOT_FOUND);
            }
            change.commit_for(ControlRecord::IdentityErased(erasure.clone()), None)
        })
    }

    /// Records a privacy request in the audit log, if it changes nothing else.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn note_privacy_request(&self, organization: OrganizationId, made_for: &MadeFor) -> Result<()> {
        self.change(Some(&made_for.author), |change| {
            // An entry of the audit log needs a control record. This one changes nothing.
            let unchanged = Organization::clone(&self.tenant(organization)?.organization);
            change.commit_for(ControlRecord::OrganizationChanged(unchanged), Some(made_for))
        })
    }

    /// Lifts an erasure: events with the ids of the identity are recorded again.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn lift_erasure(&self, erasure: &Erasure, made_for: Option<&MadeFor>) -> Result<()> {
        let lift = |erasure: &mut Erasure| {
            erasure.is_lifted = true;
            // An erasure that only suppresses ids will not begin any more.
            erasure.is_done |= !erasure.has_begun();
        };
        self.change_erasure(erasure, made_for, lift).map(drop)
    }

    /// Suppresses more ids by an erasure that has not begun. Returns its current value, including
    /// changes of other writers; `None` if it was given up.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn suppress_more(&self, erasure: &Erasure) -> Result<Option<Erasure>> {
        self.change_erasure(erasure, None, |current| {
            if !current.has_begun() && !current.is_done {
                add(&mut current.users, &erasure.users);
                add(&mut current.others, &erasure.others);
                add(&mut current.emails, &erasure.emails);
            }
        })
    }

    /// Begins an erasure that only suppressed its ids. Its events are erased from now on. If no
    /// project knows the ids, it is done. Returns its current value, including changes of other
    /// writers; `None` if it was given up.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn begin_erasure(&self, erasure: &Erasure, made_for: Option<&MadeFor>) -> Result<Option<Erasure>> {
        self.change_erasure(erasure, made_for, |current| {
            if !current.has_begun() && !current.is_done && !current.is_lifted {
                current.ends.clone_from(&erasure.ends);
                current.is_done = erasure.ends.is_empty();
            }
        })
    }

    /// Gives up an erasure that has not begun: its ids are no longer suppressed, and it loses them.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn give_erasure_up(&self, erasure: &Erasure) -> Result<()> {
        let given_up = self.change_erasure(erasure, None, |current| {
            if !current.has_begun() && !current.is_done {
                (current.users, current.others, current.emails) = (Vec::new(), Vec::new(), Vec::new());
                (current.is_done, current.is_lifted) = (true, true);
            }
        });
        given_up.map(drop)
    }

    /// Gives up all erasures that have not begun.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn give_erasures_up(&self) -> Result<()> {
        self.erasures().iter().filter(|erasure| erasure.only_suppresses()).try_for_each(|erasure| self.give_erasure_up(erasure))
    }

    /// Records the stage of some erasures in a project. Does nothing if they have
    /// reached it.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn progress_erasures(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        numbers: &[u64],
        stage: ErasureStage,
    ) -> Result<()> {
        self.change(None, |change| {
            let behind = {
                let state = change.state();
                let tenant = state.tenants.get(&organization);
                let is_behind = |number: &&u64| {
                    let erasure = tenant.and_then(|tenant| tenant.erasures.get(number));
                    erasure.is_some_and(|erasure| erasure.stage_in(project) < stage)
                };
                numbers.iter().filter(is_behind).copied().collect::<Vec<_>>()
            };
            match behind.is_empty() {
                true => Ok(()),
                false => {
                    change.commit_unaudited(ControlRecord::ErasureProgressed { organization, project, numbers: behind, stage })
                }
            }
        })
    }

    /// The number of changes of erasures applied since the start.
    pub fn erasures_applied(&self) -> u64 {
        self.erasures_applied.load(Ordering::Acquire)
    }

    /// Changes the current value of an erasure, and returns it. Records nothing if the value stays
    /// the same and there is no request. Returns `None` without a change if the erasure was given
    /// up before it began.
    fn change_erasure(
        &self,
        erasure: &Erasure,
        made_for: Option<&MadeFor>,
        change_it: impl Fn(&mut Erasure),
    ) -> Result<Option<Erasure>> {
        self.change(made_for.map(|made_for| &made_for.author), |change| {
            let current = {
                let state = change.state();
                let tenant = state.tenants.get(&erasure.organization);
                tenant.and_then(|tenant| tenant.erasures.get(&erasure.number).cloned())
            };
            let Some(current) = current else { return Ok(None) };
            let mut changed = current.clone();
            change_it(&mut changed);
            if changed != current || made_for.is_some() {
                change.commit_for(ControlRecord::IdentityErased(changed.clone()), made_for)?;
            }
            Ok(Some(changed))
        })
    }

    /// All erasures.
    pub fn erasures(&self) -> Vec<Erasure> {
        self.state().erasures().cloned().collect()
    }

    /// Returns the erasures of an organization that `is_wanted` selects.
    pub fn erasures_of(&self, organization: OrganizationId, is_wanted: impl Fn(&Erasure) -> bool) -> Vec<Erasure> {
        let state = self.state();
        let theirs = state.tenants.get(&organization).into_iter().flat_map(|tenant| tenant.erasures.values());
        theirs.filter(|erasure| is_wanted(erasure)).cloned().collect()
    }

    /// Returns the sum of `count` over the erasures of an organization.
    pub fn count_erased(&self, organization: OrganizationId, count: impl Fn(&Erasure) -> usize) -> usize {
        let state = self.state();
        state.tenants.get(&organization).map_or(0, |tenant| tenant.erasures.values().map(count).sum())
    }

    /// Whether an erasure is done. `None` if it doesn't exist.
    pub fn is_erasure_done(&self, organization: OrganizationId, number: u64) -> Option<bool> {
        Some(self.state().tenants.get(&organization)?.erasures.get(&number)?.is_done)
    }
}
