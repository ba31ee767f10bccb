//! The ids of a subject: its users, and the anonymous ids and visitors that are its own or linked
//! to it.

use std::collections::{BTreeSet, HashMap};

use headcount_common::Owner;
use headcount_control::Erasure;
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};
use headcount_domain::intake::event::Position;
use headcount_domain::queries::{EmailKeysQuery, KnownIdentitiesQuery, Query};
use tokio::runtime::Handle;

use super::questions::{AboutSubject, SubjectLinks, SubjectLinksQuestion, ask_patiently};
use crate::engine::erasing::{ErasureError, ErasureSubject};
use crate::engine::handle::Engine;
use crate::privacy::PrivacyKeys;
use crate::shard::AskError;

/// The most ids of a subject. Anybody can link any number of anonymous ids to a user.
pub(super) const MAX_IDS: usize = 250_000;
/// The most identities with an e-mail address that are exported together, as of those that are
/// erased.
const MAX_OWNERS: usize = 10_000;
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
    /// Those of a subject that no project knows.
    pub(super) fn nobody() -> Self {
        Self { projects: Vec::new(), users: BTreeSet::new(), others: HashMap::new() }
    }

    pub(super) fn is_nobody(&self) -> bool {
        self.count() == 0
    }

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

    /// The keys of the identities, without ids that are linked to them: an erasure of such an id is
    /// one of its user, too.
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

    /// The keys of anonymous ids and visitors of a project.
    pub(super) fn others_of(&self, project: ProjectId) -> Vec<RecordKey> {
        self.others.keys().filter(|(of, _)| *of == project).map(|(_, key)| *key).collect()
    }

    /// The keys of users.
    pub(super) fn users(&self) -> Vec<RecordKey> {
        self.users.iter().copied().collect()
    }

    fn links_question(&self, project: ProjectId) -> SubjectLinksQuestion {
        SubjectLinksQuestion { users: self.users(), others: self.others_of(project) }
    }

    /// Adds what a project knows. Returns its identities.
    fn add(&mut self, project: ProjectId, found: SubjectLinks) -> Result<Vec<SubjectOwner>, ErasureError> {
        let SubjectLinks::Found { links, known } = found else { return Err(ErasureError::TooMany) };
        for (key, user) in links {
            self.users.insert(user);
            self.others.insert((project, key), Some(user));
        }
        if self.count() > MAX_IDS {
            return Err(ErasureError::TooMany);
        }
        Ok(known.into_iter().map(|key| ((!key.is_user()).then_some(project), key)).collect())
    }
}

impl Engine {
    /// The keys of the identities that a project knows of a subject. Ids that are linked stand for
    /// their users.
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
                for identity in self.ask_for_subject((organization, *project), query)?.into_iter().flatten() {
                    match identity.key.is_user() {
                        true => known.users.push(identity.key),
                        false => known.others.push((*project, identity.key)),
                    }
                }
            }
        }
        known.users.sort_unstable();
        known.users.dedup();
        let erasures = self.erasures_of(organization, &known);
        if erasures.iter().any(Erasure::only_suppresses) {
            return Err(ErasureError::Unavailable("an erasure of the subject begins, or is given up"));
        }
        let is_being_erased = erasures.iter().any(|erasure| !erasure.is_done);
        if is_being_erased || (known.users.is_empty() && known.others.is_empty()) {
            return Err(ErasureError::Unknown);
        }
        Ok(known)
    }

    /// Asks a project, wherever it is. Blocks.
    fn ask_for_subject<Q>(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        query: Q,
    ) -> Result<Q::Answer, ErasureError>
    where
        Q: AboutSubject<Answer = <Q as Query>::Partial> + Query,
    {
        // On a thread without a runtime, too.
        if self.owners().of_project(project) == Owner::Here {
            return self.ask_to_erase(project, query);
        }
        let answer = Handle::try_current().map(|handle| handle.block_on(self.ask_about_subject((organization, project), query)));
        answer.ok().and_then(Result::ok).ok_or(ErasureError::Unavailable("a project's figures are not available now"))
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
        let email = self.hasher().email(&email);
        for project in projects {
            let query = EmailKeysQuery { email, most: MAX_OWNERS + 1 };
            let owners = self.ask_for_subject((organization, *project), query)?;
            if owners.len() + keys.users.len() + keys.others.len() > MAX_OWNERS {
                return Err(ErasureError::TooMany);
            }
            for owner in owners {
                if owner.is_user() { keys.users.push(owner) } else { keys.others.push((*project, owner)) }
            }
        }
        Ok(keys)
    }

    /// All ids of a subject. Reads the ids of all identities, until `is_over`. Call it where a
    /// runtime is.
    pub(super) fn subject_ids(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectIds, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        // Before the links are read, so that every event of a linked id is found.
        let with_last = self.last_positions(organization, &projects, is_over)?;
        let sent = self.sent_keys(organization, subject, &projects)?;
        let others = sent.others.iter().map(|id| (*id, None)).collect();
        let mut ids = SubjectIds { projects: with_last, users: sent.users.into_iter().collect(), others };
        // An id of one project may be linked to a user who has other ids elsewhere.
        loop {
            let users = ids.users.len();
            let mut known = BTreeSet::new();
            for project in &projects {
                let question = ids.links_question(*project);
                known.extend(ids.add(*project, self.find_links((organization, *project), &question, is_over)?)?);
            }
            if users == ids.users.len() {
                ids.users.retain(|user| known.contains(&(None, *user)));
                ids.others.retain(|(project, key), link| link.is_some() || known.contains(&(Some(*project), *key)));
                break;
            }
        }
        if ids.count() == 0 { Err(ErasureError::Unknown) } else { Ok(ids) }
    }

    /// The last position of each project.
    fn last_positions(
        &self,
        organization: OrganizationId,
        projects: &[ProjectId],
        is_over: &dyn Fn() -> bool,
    ) -> Result<Vec<(ProjectId, Position)>, ErasureError> {
        let unavailable = |_| ErasureError::Unavailable("a project's data is not available now");
        let versions = ask_patiently(is_over, || self.versions_of(organization, projects)).map_err(unavailable)?;
        Ok(projects.iter().copied().zip(versions.iter().map(|version| version.position)).collect())
    }

    /// Finds out what a project knows of a subject.
    fn find_links(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        question: &SubjectLinksQuestion,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectLinks, ErasureError> {
        match ask_patiently(is_over, || self.ask_about_subject((organization, project), question.clone())) {
            _ if is_over() => Err(ErasureError::Unavailable("the export is over")),
            Ok(found) => Ok(found),
            Err(AskError::Lost(fault)) => Err(fault.into()),
            Err(_) => Err(ErasureError::Unavailable("a partition is being rebuilt, or moves")),
        }
    }
}
