//! The keyed hashes of the ids of a person.

use headcount_control::Erasure;
use headcount_domain::{ProjectId, RecordKey};
use serde::{Deserialize, Serialize};

use super::error::{ErasureError, MAX_OWNERS};

/// The keyed hashes of the ids of a subject. They tell who it was when the ids are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectKeys {
    /// Of users.
    pub users: Vec<RecordKey>,
    /// Of anonymous ids, with their projects.
    pub others: Vec<(ProjectId, RecordKey)>,
    /// Of e-mail addresses.
    pub emails: Vec<RecordKey>,
}

fn add<K: Ord>(keys: &mut Vec<K>, more: Vec<K>) {
    keys.extend(more);
    keys.sort_unstable();
    keys.dedup();
}

impl SubjectKeys {
    /// The ids of an erasure, without addresses.
    #[must_use]
    pub fn of(erasure: &Erasure) -> Self {
        Self { users: erasure.users.clone(), others: erasure.others.clone(), emails: Vec::new() }
    }

    /// Adds others. All are in order then.
    pub fn add(&mut self, more: Self) {
        add(&mut self.users, more.users);
        add(&mut self.others, more.others);
        add(&mut self.emails, more.emails);
    }

    /// Adds the key of an identity of a project.
    pub(crate) fn push(&mut self, project: ProjectId, key: RecordKey) {
        if key.is_user() { self.users.push(key) } else { self.others.push((project, key)) }
    }

    /// Adds the identities of a project that have an e-mail address, unless there are too many.
    pub(crate) fn add_owners(&mut self, project: ProjectId, owners: Vec<RecordKey>) -> Result<(), ErasureError> {
        if owners.len() + self.users.len() + self.others.len() > MAX_OWNERS {
            return Err(ErasureError::TooMany);
        }
        owners.into_iter().for_each(|owner| self.push(project, owner));
        Ok(())
    }

    /// Whether an erasure has one of these ids or addresses.
    #[must_use]
    pub fn are_of(&self, erasure: &Erasure) -> bool {
        let has_user = || erasure.users.iter().any(|user| self.users.contains(user));
        let has_email = || erasure.emails.iter().any(|email| self.emails.contains(email));
        has_user() || has_email() || erasure.others.iter().any(|other| self.others.contains(other))
    }

    /// Whether both are about the same identity.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.users.iter().any(|user| other.users.contains(user)) || self.others.iter().any(|id| other.others.contains(id))
    }
}
