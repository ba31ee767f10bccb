//! The limit on the changes of an organization in a cluster, whose control log keeps all records.
//!
//! One machine needs no limit, because it trims its log. In a cluster, any client that may make
//! changes could fill the disks of all machines.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::Result;
use headcount_domain::OrganizationId;
use parking_lot::Mutex;

use super::error::RegistryError;
use super::record::ControlRecord;

/// The number of changes that an organization may make at once, at each machine.
const BURST: u32 = 10_000;
/// The time after which one more change is allowed.
const EVERY: Duration = Duration::from_secs(10);

/// A bucket of changes for each organization, which fills up at a constant rate.
#[derive(Debug)]
pub(super) struct ChangeLimit {
    burst: u32,
    every: Duration,
    /// The time at which the bucket of an organization is full again. Organizations that are absent
    /// have a full bucket.
    full_at: Mutex<HashMap<OrganizationId, Instant>>,
}

impl Default for ChangeLimit {
    fn default() -> Self {
        Self::new(BURST, EVERY)
    }
}

impl ChangeLimit {
    pub(super) fn new(burst: u32, every: Duration) -> Self {
        Self { burst, every, full_at: Mutex::default() }
    }

    /// Takes one change from the bucket of the organization of `record`. Changes that end a right,
    /// or continue an operation, are free.
    ///
    /// # Errors
    /// Returns [`RegistryError::TooManyChanges`].
    pub(super) fn take(&self, record: &ControlRecord, now: Instant) -> Result<()> {
        if !is_limited(record) {
            return Ok(());
        }
        let mut full_at = self.full_at.lock();
        let full = full_at.entry(record.organization()).or_insert(now);
        let missing = full.saturating_duration_since(now);
        let wait = (missing + self.every).saturating_sub(self.every * self.burst);
        if !wait.is_zero() {
            return Err(RegistryError::TooManyChanges { retry_after: wait });
        }
        *full = now + missing + self.every;
        Ok(())
    }
}

fn is_limited(record: &ControlRecord) -> bool {
    match record {
        ControlRecord::OrganizationChanged(_)
        | ControlRecord::ActionsChanged { .. }
        | ControlRecord::ProjectCreated(_)
        | ControlRecord::ProjectChanged(_)
        | ControlRecord::TokenCreated(_)
        | ControlRecord::TokenChanged(_)
        | ControlRecord::ShareCreated(_)
        | ControlRecord::DefinitionPut(_)
        | ControlRecord::SessionBegun(_)
        | ControlRecord::MemberCreated(_)
        | ControlRecord::MemberChanged(_)
        | ControlRecord::DocumentChanging { .. } => true,
        // An erasure that begins, or is given up, was limited before.
        ControlRecord::IdentityErased(erasure) => erasure.only_suppresses() || (erasure.is_lifted && !erasure.is_given_up()),
        // There are no more of these than of the others, and only operators create organizations.
        ControlRecord::OrganizationCreated { .. }
        | ControlRecord::BuildRunChanged { .. }
        | ControlRecord::TokenRevoked { .. }
        | ControlRecord::EventsRecorded { .. }
        | ControlRecord::ProjectDeleted { .. }
        | ControlRecord::DeletionFinished { .. }
        | ControlRecord::ErasureProgressed { .. }
        | ControlRecord::ShareRevoked { .. }
        | ControlRecord::DefinitionRemoved { .. }
        | ControlRecord::SessionEnded { .. }
        | ControlRecord::MemberRemoved { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_that_changes_much_waits_and_others_do_not() {
        let (limit, began) = (ChangeLimit::new(3, Duration::from_secs(10)), Instant::now());
        let change = |organization| ControlRecord::DocumentChanging { organization: OrganizationId(organization) };
        let wait =
            |organization, after_seconds| match limit.take(&change(organization), began + Duration::from_secs(after_seconds)) {
                Ok(()) => None,
                Err(RegistryError::TooManyChanges { retry_after }) => Some(retry_after.as_secs()),
                Err(error) => panic!("{error}"),
            };
        assert_eq!([wait(1, 0), wait(1, 0), wait(1, 0), wait(1, 0), wait(1, 4)], [None, None, None, Some(10), Some(6)]);
        assert_eq!(wait(2, 4), None);
        assert_eq!([wait(1, 10), wait(1, 10), wait(1, 20)], [None, Some(10), None]);
        assert_eq!([wait(1, 1_000), wait(1, 1_000), wait(1, 1_000), wait(1, 1_000)], [None, None, None, Some(10)]);
        let ended =
            ControlRecord::DeletionFinished { organization: OrganizationId(1), project: headcount_domain::ids::ProjectId(1) };
        assert!(limit.take(&ended, began).is_ok());
    }
}
