//! The erasure of an identity.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_control::{ErasedUntil, Erasure, MadeFor, RegistryError};
use headcount_domain::company::normalise_email;
use headcount_domain::fault::Fault;
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};
use headcount_domain::queries::{EmailKeysQuery, Query, SubjectFigures, SubjectFiguresQuery};

use super::handle::Engine;
use super::open::last_position;
use crate::checkpoint_writer::for_each_identity;
use crate::erasure_turns::ErasureTurn;
use crate::privacy::PrivacyKeys;
use headcount_domain::identity::IdentitySlot;

/// How long saving the state may take, so that all links are known.
pub(super) const SAVE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
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

/// Checks that no append has an unknown outcome: the log could have events of the identity after
/// its known end.
pub(super) fn check_known(before: Option<u64>, after: Option<u64>) -> Result<(), ErasureError> {
    match before.is_some() && before == after {
        true => Ok(()),
        false => Err(ErasureError::Unavailable("events may be in the log that are not known yet")),
    }
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
        if !self.owners().is_alone() {
            return self.begin_everywhere(organization, subject, made_for);
        }
        let erased = self.begin_erasure(organization, subject, made_for);
        if erased.is_err() {
            self.inner.erasures.suppress_only(&self.registry().erasures());
        }
        erased
    }

    /// Waits for the turn to erase, or to opt in. In a cluster, the control log has the suppressed
    /// ids of each organization, so other organizations don't matter. On a single machine, giving
    /// an erasure up restores the suppressed ids of all organizations.
    fn erasure_turn(&self, organization: OrganizationId) -> Result<ErasureTurn<'_>, ErasureError> {
        let erasures = &self.inner.erasures;
        let turn = if self.owners().is_alone() { erasures.turn_of_all() } else { erasures.turn(organization) };
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
        match self.owners().is_alone() {
            true => self.inner.erasures.suppress_only(&self.registry().erasures()),
            false => self.follow_erasures()?,
        }
        Ok(theirs)
    }

    /// Returns the state of an erasure; `None` if it doesn't exist.
    #[must_use]
    pub fn erasure(&self, organization: OrganizationId, number: u64) -> Option<ErasureState> {
        let is_done = self.registry().is_erasure_done(organization, number)?;
        Some(if is_done { ErasureState::Done } else { ErasureState::Running })
    }

    /// Returns an erasure of the known ids of a subject, without recording it.
    pub(super) fn new_erasure(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        until: ErasedUntil,
    ) -> Result<NewErasure, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        let keys = self.keys_of(organization, subject, &projects)?;
        if keys.users.is_empty() && keys.others.is_empty() {
            return Err(ErasureError::Unknown);
        }
        let (users, others, emails) = (keys.users.clone(), keys.others.clone(), keys.emails.clone());
        let (projects_known, is_done, is_lifted) = (Vec::new(), false, false);
        let erasure =
            Erasure { number: 0, organization, users, others, emails, projects: projects_known, until, is_done, is_lifted };
        Ok(NewErasure { projects, keys, erasure })
    }

    fn begin_erasure(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        made_for: Option<&MadeFor>,
    ) -> Result<BegunErasure, ErasureError> {
        let NewErasure { projects, mut keys, mut erasure } =
            self.new_erasure(organization, subject, ErasedUntil::Everywhere(0))?;
        let former = self.erasures_of(organization, &keys);
        let mut emails: BTreeSet<RecordKey> = keys.emails.iter().copied().collect();
        let unknown = self.inner.unknown.all_found_anywhere();
        // If a link or an e-mail address is recorded meanwhile, its id is added, and suppressed in
        // the next round.
        loop {
            let known = (erasure.users.len(), erasure.others.len());
            self.suppress(&erasure)?;
            if let ErasureSubject::Email(_) = subject {
                let now = self.keys_of(organization, subject, &projects)?;
                erasure.users.extend(now.users);
                erasure.others.extend(now.others);
            }
            self.find_ids(&projects, &mut erasure, &mut emails)?;
            if known == (erasure.users.len(), erasure.others.len()) {
                break;
            }
        }
        if erasure.projects.is_empty() && former.is_empty() {
            return Err(ErasureError::Unknown);
        }
        self.check_room(&erasure)?;
        // No base is listed until the project is marked as having an erased identity. So a base
        // with the identity ends at `until` or earlier.
        let _bases = self.inner.history.bases();
        let figures = self.figures_of(&erasure)?;
        erasure.until = ErasedUntil::Everywhere(last_position(&*self.inner.history));
        check_known(unknown, self.inner.unknown.all_found_anywhere())?;
        // Nothing was recorded since it was erased.
        erasure.is_done = erasure.projects.is_empty();
        let erasure = self.registry().add_erasure(erasure, made_for)?;
        if !erasure.is_done {
            self.inner.erasures.begin(erasure.clone());
        }
        (keys.users, keys.others) = (erasure.users.clone(), erasure.others.clone());
        keys.emails = emails.into_iter().collect();
        let number = erasure.number;
        let unfinished = former.into_iter().chain([erasure]).filter(|erasure| !erasure.is_done);
        Ok(BegunErasure { number, unfinished: unfinished.map(|erasure| erasure.number).collect(), keys, figures })
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
        for (project, owners) in projects.iter().zip(self.owners_of(email, projects)?) {
            if owners.len() + keys.users.len() + keys.others.len() > MAX_OWNERS {
                return Err(ErasureError::TooMany);
            }
            for owner in owners {
                if owner.is_user() { keys.users.push(owner) } else { keys.others.push((*project, owner)) }
            }
        }
        Ok(())
    }

    /// Returns the keys of the identities of each project that have an e-mail address.
    fn owners_of(&self, email: RecordKey, projects: &[ProjectId]) -> Result<Vec<Vec<RecordKey>>, ErasureError> {
        let question = EmailKeysQuery { email, most: MAX_OWNERS + 1 };
        match self.owners().is_alone() {
            true => projects.iter().map(|project| self.ask_to_erase(*project, question.clone())).collect(),
            false => self.owners_everywhere(question, projects),
        }
    }

    /// Returns the figures of an erasure's projects with the subject, and the figures of the
    /// subject. Both are of the same moment, so they differ only by the subject.
    fn figures_of(&self, erasure: &Erasure) -> Result<Vec<(ProjectId, SubjectFigures)>, ErasureError> {
        let figures = |project: &ProjectId| {
            let others = erasure.others.iter().filter(|(of, _)| of == project).map(|(_, other)| *other);
            let keys = erasure.users.iter().copied().chain(others).collect();
            Ok((*project, self.ask_to_erase(*project, SubjectFiguresQuery { keys })?))
        };
        erasure.projects.iter().map(figures).collect()
    }

    pub(super) fn ask_to_erase<Q: Query>(&self, project: ProjectId, query: Q) -> Result<Q::Partial, ErasureError> {
        let answer = self.questions.shards.ask_partition(partition_of(project), move |shard| shard.answer(project, &query));
        answer.map_err(|_| ErasureError::Unavailable("a project's figures are not available now"))
    }

    fn suppress(&self, erasure: &Erasure) -> Result<(), ErasureError> {
        match self.inner.erasures.suppress(erasure) {
            true => Ok(()),
            false => Err(ErasureError::Unavailable("events under way take too long")),
        }
    }

    /// Adds the ids that are linked to those of an erasure, their latest e-mail addresses, and the
    /// projects that know any of them.
    fn find_ids(
        &self,
        projects: &[ProjectId],
        erasure: &mut Erasure,
        emails: &mut BTreeSet<RecordKey>,
    ) -> Result<(), ErasureError> {
        self.save_state()?;
        let mut users: BTreeSet<RecordKey> = erasure.users.iter().copied().collect();
        let mut others: BTreeSet<(ProjectId, RecordKey)> = erasure.others.iter().copied().collect();
        let mut known: BTreeSet<ProjectId> = BTreeSet::new();
        for project in projects {
            self.find_ids_in(*project, (&mut users, &mut others), &mut known, emails)?;
        }
        (erasure.users, erasure.others) = (users.into_iter().collect(), others.into_iter().collect());
        erasure.projects = known.into_iter().collect();
        Ok(())
    }

    /// Like [`Engine::find_ids`], for the saved state of one project.
    pub(super) fn find_ids_in(
        &self,
        project: ProjectId,
        (users, others): (&mut BTreeSet<RecordKey>, &mut BTreeSet<(ProjectId, RecordKey)>),
        known: &mut BTreeSet<ProjectId>,
        emails: &mut BTreeSet<RecordKey>,
    ) -> Result<(), ErasureError> {
        let partition = partition_of(project);
        let place = self.questions.shards.ask_partition(partition, move |shard| Ok(shard.store_of(partition)));
        let (store, stored_as) = place.ok().flatten().ok_or(ErasureError::Unavailable("a partition is being rebuilt"))?;
        for_each_identity(&*store, stored_as, project, &mut |key, slot| {
            let owner = match &slot {
                IdentitySlot::Alias { user, .. } => *user,
                IdentitySlot::Canonical(_) => key,
            };
            if users.contains(&key) || users.contains(&owner) || others.contains(&(project, key)) {
                known.insert(project);
                if let IdentitySlot::Canonical(identity) = &slot {
                    emails.extend(identity.emails.iter().map(|(email, _)| self.hasher().email(email)));
                }
                for one in [key, owner] {
                    let _known = if one.is_user() { users.insert(one) } else { others.insert((project, one)) };
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Saves everything that was recorded before the call.
    pub(super) fn save_state(&self) -> Result<(), ErasureError> {
        let (shards, delivered) = (&self.questions.shards, &self.inner.delivered);
        let (target, began) = (last_position(&*self.inner.history), Stopwatch::now());
        let mut asked: Option<Stopwatch> = None;
        loop {
            if asked.is_none_or(|at| at.elapsed() >= Duration::from_secs(1)) {
                shards.want_checkpoints();
                asked = Some(Stopwatch::now());
            }
            if shards.durable_until(delivered.load(Ordering::Acquire)).is_some_and(|until| until >= target) {
                return Ok(());
            }
            if began.elapsed() > SAVE_TIMEOUT {
                return Err(ErasureError::Unavailable("the state can't be saved"));
            }
            std::thread::sleep(POLL);
        }
    }
}
