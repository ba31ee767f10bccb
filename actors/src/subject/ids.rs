//! The ids of a subject: its users, and the anonymous ids and visitors that are its own or linked
//! to it.

use std::collections::{BTreeSet, HashMap};

use headcount_domain::{Position, ProjectId, RecordKey};

use super::keys::SubjectKeys;

/// An identity: a user of the organization, or another id of one project.
pub type SubjectOwner = (Option<ProjectId>, RecordKey);

/// See the module.
#[derive(Debug)]
pub struct SubjectIds {
    /// The projects, each with its last position.
    pub projects: Vec<(ProjectId, Position)>,
    pub(crate) users: BTreeSet<RecordKey>,
    /// The other ids, each with its linked user.
    pub(crate) others: HashMap<(ProjectId, RecordKey), Option<RecordKey>>,
}

impl SubjectIds {
    /// The ids of a person whom no project knows: none.
    #[must_use]
    pub fn nobody() -> Self {
        Self { projects: Vec::new(), users: BTreeSet::new(), others: HashMap::new() }
    }

    /// Whether no project knows the subject.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.count() == 0
    }

    /// Returns the identity of an event that names this id, if the identity is the subject.
    #[must_use]
    pub fn owner(&self, project: ProjectId, named: RecordKey) -> Option<SubjectOwner> {
        if named.is_user() {
            return self.users.contains(&named).then_some((None, named));
        }
        let link = self.others.get(&(project, named))?;
        Some(link.map_or((Some(project), named), |user| (None, user)))
    }

    /// The identities, in order.
    #[must_use]
    pub fn owners(&self) -> Vec<SubjectOwner> {
        let alone = self.others.iter().filter(|(_, link)| link.is_none());
        let users = self.users.iter().map(|user| (None, *user));
        let mut owners: Vec<SubjectOwner> = users.chain(alone.map(|((project, key), _)| (Some(*project), *key))).collect();
        owners.sort_unstable();
        owners
    }

    /// The keys of the identities, without ids that are linked to them: an erasure of such an id is
    /// one of its user, too.
    #[must_use]
    pub fn keys(&self) -> SubjectKeys {
        let mut keys = SubjectKeys::default();
        for (project, key) in self.owners() {
            match project {
                None => keys.users.push(key),
                Some(project) => keys.others.push((project, key)),
            }
        }
        keys
    }

    pub(crate) fn count(&self) -> usize {
        self.users.len() + self.others.len()
    }

    /// The keys of anonymous ids and visitors of a project.
    #[must_use]
    pub fn others_of(&self, project: ProjectId) -> Vec<RecordKey> {
        self.others.keys().filter(|(of, _)| *of == project).map(|(_, key)| *key).collect()
    }

    /// The keys of users.
    #[must_use]
    pub fn users(&self) -> Vec<RecordKey> {
        self.users.iter().copied().collect()
    }
}
