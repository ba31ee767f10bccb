//! The erasure of an identity.

use headcount_common::partition_of;
use headcount_control::{Erasure, MadeFor, RegistryError};
use headcount_domain::company::normalise_email;
use headcount_domain::fault::Fault;
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};
use headcount_domain::queries::{EmailKeysQuery, Query, SubjectFigures};

use super::handle::Engine;
use crate::erasure_turns::ErasureTurn;
use crate::privacy::PrivacyKeys;

/// The maximum number of identities with the same e-mail address that are erased together. Any
/// client can send events with any address.
pub(super) const MAX_OWNERS: usize = 10_000;

/// The person to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureSubject {
    /// A user of the organization.
    User(String),
    /// An anonymous id of a project; if it is linked to a user, that user.
    Anonymous(ProjectId, String),
    /// An anonymous id in all projects; if it is linked to a user, that user.
    AnonymousAnywhere(String),
    /// All identities that ever had an e-mail address.
    Email(String),
}

/// The reason why an identity was not erased. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// No identity has this id.
    #[error("nobody has this id")]
    Unknown,
    /// Too many identities have the e-mail address.
    #[error("more than {MAX_OWNERS} identities have this e-mail address; erase them by their ids")]
    TooMany,
    /// The organization has reached the limit of erased ids.
    #[error("an organization can erase at most {0} ids, those of former erasures included")]
    Full(usize),
    /// A partition is being rebuilt or overloaded, or events in flight take too long.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The state could not be read.
    #[error("{0}")]
    Failed(#[from] Fault),
    /// The erasure could not be recorded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// The state of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureState {
    /// Answers still count its events, or files still have them.
    Running,
    /// No data of the identity are left.
    Done,
}

/// An erasure that is about to begin.
pub(super) struct NewErasure {
    /// All projects of the organization.
    pub(super) projects: Vec<ProjectId>,
    /// The keys of its subject.
    pub(super) keys: PrivacyKeys,
    pub(super) erasure: Erasure,
}

/// An erasure that is durable.
#[derive(Debug)]
pub(super) struct BegunErasure {
    pub(super) number: u64,
    /// The numbers of the unfinished erasures of the same subject.
    pub(super) unfinished: Vec<u64>,
    /// The keys of its subject.
    pub(super) keys: PrivacyKeys,
    /// The figures of its projects with the subject, and the figures of the subject.
    pub(super) figures: Vec<(ProjectId, SubjectFigures)>,
}

impl Engine {
    /// Erases an identity, and returns the number of the erasure in its organization. On return,
    /// the erasure is durable, and no event with its ids is recorded any more. Recorded data are
    /// removed in the background: see [`Engine::erasure`].
    ///
    /// Waits for the disk, and reads the ids of all identities, so async code must call it on a
    /// thread that may block.
    ///
    /// # Errors
    /// See [`ErasureError`].
    pub fn erase(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<u64, ErasureError> {
        let begun = self.erase_for(organization, subject, None)?;
        let withdrawn = self.withdraw_exports(organization, &begun.keys);
        withdrawn.map_err(|error| Fault::io(format!("exports of an erased identity could not be removed: {error}")))?;
        Ok(begun.number)
    }

    /// Like [`Engine::erase`], for a privacy request.
    pub(super) fn erase_for(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        made_for: Option<&MadeFor>,
    ) -> Result<BegunErasure, ErasureError> {
        let _turn = self.erasure_turn(organization)?;
        self.begin_erasure(organization, subject, made_for)
    }

    /// Waits for the turn to erase, or to opt in.
    fn erasure_turn(&self, organization: OrganizationId) -> Result<ErasureTurn<'_>, ErasureError> {
        let turn = self.questions.erasures.turn(organization);
        turn.ok_or(ErasureError::Unavailable("another erasure or opt-in is under way; nothing was changed"))
    }

    /// Lifts the erasure of an identity: events with its ids are recorded again from now on. Erased
    /// data stay erased.
    ///
    /// Waits for the disk.
    ///
    /// # Errors
    /// Returns [`ErasureError::Unknown`] if no erasure has this id; [`ErasureError::Unavailable`];
    /// [`ErasureError::Registry`].
    pub fn opt_in(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<(), ErasureError> {
        self.opt_in_for(organization, subject, None).map(drop)
    }

    /// Like [`Engine::opt_in`], for a privacy request. Returns the erasures of the subject.
    pub(super) fn opt_in_for(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        made_for: Option<&MadeFor>,
    ) -> Result<Vec<Erasure>, ErasureError> {
        let _turn = self.erasure_turn(organization)?;
        let projects = self.projects_to_erase_from(organization)?;
        let keys = self.keys_of(organization, subject, &projects)?;
        let mut theirs = self.erasures_of(organization, &keys);
        if theirs.is_empty() {
            return Err(ErasureError::Unknown);
        }
        // The first one is recorded even if it was lifted before, because its record carries the
        // audit entry of the request.
        theirs.sort_by_key(|erasure| erasure.is_lifted);
        for (place, erasure) in theirs.iter().enumerate() {
            match place {
                0 => self.registry().lift_erasure(erasure, made_for)?,
                _ if erasure.is_lifted => {}
                _ => self.registry().lift_erasure(erasure, None)?,
            }
        }
        self.partitions.follow_erasures()?;
        Ok(theirs)
    }

    /// Returns the state of an erasure; `None` if it doesn't exist.
    #[must_use]
    pub fn erasure(&self, organization: OrganizationId, number: u64) -> Option<ErasureState> {
        let is_done = self.registry().is_erasure_done(organization, number)?;
        Some(if is_done { ErasureState::Done } else { ErasureState::Running })
    }

    /// Returns an erasure of the known ids of a subject, without recording it.
    pub(super) fn new_erasure(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<NewErasure, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        let keys = self.keys_of(organization, subject, &projects)?;
        if keys.users.is_empty() && keys.others.is_empty() {
            return Err(ErasureError::Unknown);
        }
        let (users, others, emails) = (keys.users.clone(), keys.others.clone(), keys.emails.clone());
        let (ends, is_done, is_lifted) = (Vec::new(), false, false);
        let erasure = Erasure { number: 0, organization, users, others, emails, ends, is_done, is_lifted };
        Ok(NewErasure { projects, keys, erasure })
    }

    /// Checks that there is room for the ids of an erasure.
    pub(super) fn check_room(&self, erasure: &Erasure) -> Result<(), ErasureError> {
        let most = self.inner.config.max_erased_ids;
        let of_others = |other: &Erasure| if other.number == erasure.number { 0 } else { other.ids() };
        let former = self.registry().count_erased(erasure.organization, of_others);
        if former + erasure.ids() > most { Err(ErasureError::Full(most)) } else { Ok(()) }
    }

    /// Returns the erasures of an organization that have one of these ids or addresses, including
    /// lifted ones.
    pub(super) fn erasures_of(&self, organization: OrganizationId, keys: &PrivacyKeys) -> Vec<Erasure> {
        let is_theirs = |erasure: &Erasure| {
            let has_user = || erasure.users.iter().any(|user| keys.users.contains(user));
            let has_email = || erasure.emails.iter().any(|email| keys.emails.contains(email));
            has_user() || has_email() || erasure.others.iter().any(|other| keys.others.contains(other))
        };
        self.registry().erasures_of(organization, is_theirs)
    }

    pub(super) fn projects_to_erase_from(&self, organization: OrganizationId) -> Result<Vec<ProjectId>, ErasureError> {
        Ok(self.registry().projects(organization)?.iter().map(|project| project.id).collect())
    }

    /// Returns the sorted keys of a subject: of its ids and its e-mail address, without linked ids.
    pub(super) fn keys_of(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        projects: &[ProjectId],
    ) -> Result<PrivacyKeys, ErasureError> {
        let hasher = self.hasher();
        let mut keys = PrivacyKeys::default();
        match subject {
            ErasureSubject::User(user) => keys.users.push(hasher.user(user)),
            ErasureSubject::Anonymous(project, id) if projects.contains(project) => {
                keys.others.push((*project, hasher.anonymous(id)))
            }
            ErasureSubject::Anonymous(..) => return Err(ErasureError::Unknown),
            ErasureSubject::AnonymousAnywhere(id) => {
                keys.others.extend(projects.iter().map(|project| (*project, hasher.anonymous(id))));
            }
            ErasureSubject::Email(email) => {
                let email = hasher.email(&normalise_email(email).ok_or(ErasureError::Unknown)?);
                keys = self.inner.privacy.erased_with(organization, email);
                for erasure in self.registry().erasures_of(organization, |former| former.emails.contains(&email)) {
                    keys.users.extend(erasure.users);
                    keys.others.extend(erasure.others);
                }
                keys.emails = vec![email];
                self.add_owners(email, projects, &mut keys)?;
            }
        }
        keys.users.sort_unstable();
        keys.users.dedup();
        keys.others.sort_unstable();
        keys.others.dedup();
        Ok(keys)
    }

    /// Returns the key of a subject's id or e-mail address.
    pub(super) fn subject_key(&self, subject: &ErasureSubject) -> RecordKey {
        let hasher = self.hasher();
        match subject {
            ErasureSubject::User(user) => hasher.user(user),
            ErasureSubject::Anonymous(_, id) | ErasureSubject::AnonymousAnywhere(id) => hasher.anonymous(id),
            ErasureSubject::Email(email) => hasher.email(normalise_email(email).as_deref().unwrap_or(email)),
        }
    }

    /// Adds the keys of the identities that have an e-mail address.
    pub(super) fn add_owners(
        &self,
        email: RecordKey,
        projects: &[ProjectId],
        keys: &mut PrivacyKeys,
    ) -> Result<(), ErasureError> {
        let question = EmailKeysQuery { email, most: MAX_OWNERS + 1 };
        for (project, owners) in projects.iter().zip(self.owners_of(question, projects)?) {
            if owners.len() + keys.users.len() + keys.others.len() > MAX_OWNERS {
                return Err(ErasureError::TooMany);
            }
            for owner in owners {
                if owner.is_user() { keys.users.push(owner) } else { keys.others.push((*project, owner)) }
            }
        }
        Ok(())
    }

    pub(super) fn ask_to_erase<Q: Query>(&self, project: ProjectId, query: Q) -> Result<Q::Partial, ErasureError> {
        let answer = self.questions.shards.ask_partition(partition_of(project), move |shard| shard.answer(project, &query));
        answer.map_err(|_| ErasureError::Unavailable("a project's figures are not available now"))
    }
}
