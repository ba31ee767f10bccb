//! The ids of a subject: its users, and the anonymous ids and visitors that are its own or linked to it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use headcount_domain::identity::IdentitySlot;
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};
use headcount_domain::intake::event::Position;
use headcount_domain::queries::KnownIdentitiesQuery;
use tokio::runtime::Handle;

use crate::checkpoint_writer::for_each_identity;
use crate::engine::erasing::{ErasureError, ErasureSubject};
use crate::engine::handle::Engine;
use crate::partitions::partition_of;
use crate::privacy::PrivacyKeys;

/// The most ids of a subject. Anybody can link any number of anonymous ids to a user.
const MAX_IDS: usize = 250_000;
/// How many ids a shard is asked about at a time.
const IDS_A_QUESTION: usize = 256;

/// An identity: a user of the organization, or another id of one project.
pub(super) type SubjectOwner = (Option<ProjectId>, RecordKey);

/// See the module.
pub(super) struct SubjectIds {
    /// The projects, each with its last position.
    pub(super) projects: Vec<(ProjectId, Position)>,
    users: BTreeSet<RecordKey>,
    /// Each with the user that it is linked to.
    others: HashMap<(ProjectId, RecordKey), Option<RecordKey>>,
}

impl SubjectIds {
    /// Returns the identity of an event that names this id, if the identity is the subject.
    pub(super) fn owner(&self, project: ProjectId, named: RecordKey) -> Option<SubjectOwner> {
        if named.is_user() {
            return self.users.contains(&named).then_some((None, named));
        }
        let link = self.others.get(&(project, named))?;
        Some(link.map_or((Some(project), named), |user| (None, user)))
    }

    /// The identities, in order.
    pub(super) fn owners(&self) -> Vec<SubjectOwner> {
        let alone = self.others.iter().filter(|(_, link)| link.is_none());
        let users = self.users.iter().map(|user| (None, *user));
        let mut owners: Vec<SubjectOwner> = users.chain(alone.map(|((project, key), _)| (Some(*project), *key))).collect();
        owners.sort_unstable();
        owners
    }

    /// The keys of the identities, without ids that are linked to them: an erasure of such an id is one of its user, too.
    pub(super) fn keys(&self) -> PrivacyKeys {
        let mut keys = PrivacyKeys::default();
        for (project, key) in self.owners() {
            match project {
                None => keys.users.push(key),
                Some(project) => keys.others.push((project, key)),
            }
        }
        keys
    }

    fn count(&self) -> usize {
        self.users.len() + self.others.len()
    }
}

impl Engine {
    /// The keys of the identities that a project knows of a subject. Ids that are linked stand for their users.
    ///
    /// # Errors
    /// [`ErasureError::Unknown`] if there is none, or if it is being erased.
    pub(in crate::engine) fn known_subject(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
    ) -> Result<PrivacyKeys, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        let sent = self.sent_keys(organization, subject, &projects)?;
        let mut known = PrivacyKeys::default();
        for project in &projects {
            let others = sent.others.iter().filter(|(of, _)| of == project).map(|(_, key)| *key);
            let keys: Vec<RecordKey> = sent.users.iter().copied().chain(others).collect();
            for keys in keys.chunks(IDS_A_QUESTION) {
                let query = KnownIdentitiesQuery { keys: keys.to_vec() };
                for identity in self.ask_to_erase(*project, query)?.into_iter().flatten() {
                    match identity.key.is_user() {
                        true => known.users.push(identity.key),
                        false => known.others.push((*project, identity.key)),
                    }
                }
            }
        }
        known.users.sort_unstable();
        known.users.dedup();
        let is_being_erased = self.erasures_of(organization, &known).iter().any(|erasure| !erasure.is_done);
        if is_being_erased || (known.users.is_empty() && known.others.is_empty()) {
            return Err(ErasureError::Unknown);
        }
        Ok(known)
    }

    /// The keys of the ids of a subject. Of those that an erasure once had with an address, none.
    fn sent_keys(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        projects: &[ProjectId],
    ) -> Result<PrivacyKeys, ErasureError> {
        let ErasureSubject::Email(email) = subject else { return self.keys_of(organization, subject, projects) };
        let mut keys = PrivacyKeys::default();
        let email = headcount_domain::company::normalise_email(email).ok_or(ErasureError::Unknown)?;
        self.add_owners(self.hasher().email(&email), projects, &mut keys)?;
        Ok(keys)
    }

    /// All ids of a subject. Reads the ids of all identities, until `is_over`.
    pub(super) fn subject_ids(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectIds, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        let last = |project: &ProjectId| {
            let last = Handle::current().block_on(self.last(*project));
            Ok((*project, last.map_err(|_| ErasureError::Unavailable("a project's data is not available now"))?))
        };
        // Before the links are read, so that every event of a linked id is found.
        let with_last = projects.iter().map(last).collect::<Result<_, ErasureError>>()?;
        let sent = self.sent_keys(organization, subject, &projects)?;
        let others = sent.others.iter().map(|id| (*id, None)).collect();
        let mut ids = SubjectIds { projects: with_last, users: sent.users.into_iter().collect(), others };
        self.save_state()?;
        // An id of one project may be linked to a user who has other ids elsewhere.
        loop {
            let users = ids.users.len();
            let known = projects
                .iter()
                .try_fold(BTreeSet::new(), |known, project| self.find_links(*project, &mut ids, known, is_over))?;
            if users == ids.users.len() {
                ids.users.retain(|user| known.contains(&(None, *user)));
                ids.others.retain(|(project, key), link| link.is_some() || known.contains(&(Some(*project), *key)));
                break;
            }
        }
        if ids.count() == 0 { Err(ErasureError::Unknown) } else { Ok(ids) }
    }

    /// Adds what a project knows of a subject to `ids`, and its identities to `known`.
    fn find_links(
        &self,
        project: ProjectId,
        ids: &mut SubjectIds,
        mut known: BTreeSet<SubjectOwner>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeSet<SubjectOwner>, ErasureError> {
        let partition = partition_of(project);
        let place = self.inner.shards.ask_partition(partition, move |shard| Ok(shard.store_of(partition)));
        let (store, stored_as) = place.ok().flatten().ok_or(ErasureError::Unavailable("a partition is being rebuilt"))?;
        for_each_identity(&*store, stored_as, project, &mut |key, slot| {
            match slot {
                IdentitySlot::Alias { user, .. } => {
                    let is_sent = ids.others.contains_key(&(project, key));
                    if is_sent || ids.users.contains(&user) {
                        ids.users.insert(user);
                        ids.others.insert((project, key), Some(user));
                    }
                }
                IdentitySlot::Canonical(_) if key.is_user() => drop(ids.users.contains(&key) && known.insert((None, key))),
                IdentitySlot::Canonical(_) => {
                    let _is_new = ids.others.contains_key(&(project, key)) && known.insert((Some(project), key));
                }
            }
            if ids.count() > MAX_IDS || is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match ids.count() {
            0..=MAX_IDS if is_over() => Err(ErasureError::Unavailable("the export is over")),
            0..=MAX_IDS => Ok(known),
            _ => Err(ErasureError::TooMany),
        }
    }
}
