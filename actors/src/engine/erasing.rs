//! The erasure of an identity.

use std::time::{Duration, Instant as Stopwatch};

use headcount_common::{Owner, partition_of};
use headcount_control::{Erasure, MadeFor};
use headcount_domain::company::normalise_email;
use headcount_domain::queries::{EmailKeysQuery, Query};
use headcount_domain::{Fault, OrganizationId, ProjectId, RecordKey};

use super::handle::Engine;
use crate::subject::{ErasureError, ErasureSubject, MAX_OWNERS, SubjectKeys};

/// How long a question waits for a project that is held: a little longer than it is.
const HELD_FOR: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

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
    pub(super) keys: SubjectKeys,
    pub(super) erasure: Erasure,
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
        let begun = self.begin_erasure(organization, subject, None)?;
        let withdrawn = self.features().iter().try_for_each(|feature| feature.erased(organization, &begun.keys));
        withdrawn.map_err(|error| Fault::io(format!("exports of an erased identity could not be removed: {error}")))?;
        Ok(begun.number)
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
    pub(super) fn erasures_of(&self, organization: OrganizationId, keys: &SubjectKeys) -> Vec<Erasure> {
        self.registry().erasures_of(organization, |erasure| keys.are_of(erasure))
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
    ) -> Result<SubjectKeys, ErasureError> {
        let hasher = self.hasher();
        let mut keys = SubjectKeys::default();
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
                // First: another erasure may remove them from the state, after it is recorded.
                self.add_owners(email, projects, &mut keys)?;
                let known = self.features().iter().map(|feature| feature.erased_with(organization, email));
                known.for_each(|known| keys.add(known));
                for erasure in self.registry().erasures_of(organization, |former| former.emails.contains(&email)) {
                    keys.add(SubjectKeys::of(&erasure));
                }
                keys.emails = vec![email];
            }
        }
        keys.add(SubjectKeys::default());
        Ok(keys)
    }

    /// Adds the keys of the identities that have an e-mail address.
    pub(super) fn add_owners(
        &self,
        email: RecordKey,
        projects: &[ProjectId],
        keys: &mut SubjectKeys,
    ) -> Result<(), ErasureError> {
        let question = EmailKeysQuery { email, most: MAX_OWNERS + 1 };
        for (project, owners) in projects.iter().zip(self.owners_of(question, projects)?) {
            keys.add_owners(*project, owners)?;
        }
        Ok(())
    }

    /// Asks a project of this machine. Waits while the project is held, because another person is
    /// erased from it.
    pub(super) fn ask_to_erase<Q: Query + Clone>(&self, project: ProjectId, query: Q) -> Result<Q::Partial, ErasureError> {
        let began = Stopwatch::now();
        loop {
            let query = query.clone();
            let answer = self.questions.shards.ask_partition(partition_of(project), move |shard| shard.answer(project, &query));
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) if began.elapsed() >= HELD_FOR || self.owners().of_project(project) != Owner::Here => {
                    tracing::info!(%error, "a project can't be asked about somebody");
                    return Err(ErasureError::Unavailable("a project's figures are not available now"));
                }
                Err(_) => std::thread::sleep(POLL),
            }
        }
    }
}
