//! The erasure of an identity.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fault::Fault;
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};

use super::handle::Engine;
use crate::archiver::ShardBarrier;
use crate::checkpoint_writer::for_each_identity;
use crate::partitions::partition_of;
use crate::registry::{Erasure, RegistryError};
use headcount_domain::identity::IdentitySlot;

/// How long the state may take to be saved, so that all links are known.
const SAVE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Whom to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureSubject {
    /// A user of the organization.
    User(String),
    /// An anonymous id of a project; if it is linked to a user, that user.
    Anonymous(ProjectId, String),
}

/// Why an identity was not erased. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// Nobody has this id.
    #[error("nobody has this id")]
    Unknown,
    /// The state of a project goes on from a base, which can't lose an identity.
    #[error("{0} no longer keeps all events, so that its figures can't be computed anew")]
    LacksEvents(ProjectId),
    /// A partition is being rebuilt, or events under way take too long.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The state could not be read.
    #[error("{0}")]
    Failed(#[from] Fault),
    /// The erasure could not be recorded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureState {
    /// Its events count, or are somewhere, still.
    Running,
    /// Nothing is left.
    Done,
}

impl Engine {
    /// Erases an identity, and returns the number of the erasure in its organization. When this returns, that is durable, and no event with its ids is
    /// recorded any more. What is recorded is removed in the background: see [`Engine::erasure`].
    ///
    /// Waits for the disk, and reads the ids of all identities: in async code it belongs on a thread that may block.
    ///
    /// # Errors
    /// See [`ErasureError`].
    pub fn erase(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<u64, ErasureError> {
        // One at a time: what is suppressed while an erasure is given up must be that of the others.
        let _alone = self.inner.erasures.alone();
        let erased = self.begin_erasure(organization, subject);
        if erased.is_err() {
            self.inner.erasures.suppress_only(&self.registry().erasures());
        }
        erased
    }

    /// Has events with the ids of an erased identity recorded again, from now on. What was erased stays erased.
    ///
    /// Waits for the disk.
    ///
    /// # Errors
    /// [`ErasureError::Unknown`] if no erasure has this id; [`ErasureError::Registry`].
    pub fn opt_in(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<(), ErasureError> {
        let _alone = self.inner.erasures.alone();
        let all = self.registry().erasures();
        let is_theirs = |erasure: &&Erasure| match subject {
            ErasureSubject::User(user) => erasure.users.contains(&self.hasher().user(user)),
            ErasureSubject::Anonymous(project, id) => erasure.others.contains(&(*project, self.hasher().anonymous(id))),
        };
        let of_organization = all.iter().filter(|erasure| erasure.organization == organization);
        let theirs: Vec<&Erasure> = of_organization.filter(is_theirs).collect();
        if theirs.is_empty() {
            return Err(ErasureError::Unknown);
        }
        for erasure in theirs.into_iter().filter(|erasure| !erasure.is_lifted) {
            self.registry().lift_erasure(erasure)?;
        }
        self.inner.erasures.suppress_only(&self.registry().erasures());
        Ok(())
    }

    /// Returns how far an erasure is; `None` if there is no such one.
    #[must_use]
    pub fn erasure(&self, organization: OrganizationId, number: u64) -> Option<ErasureState> {
        let erasures = self.registry().erasures();
        let found = erasures.iter().find(|erasure| (erasure.organization, erasure.number) == (organization, number))?;
        Some(if found.is_done { ErasureState::Done } else { ErasureState::Running })
    }

    fn begin_erasure(&self, organization: OrganizationId, subject: &ErasureSubject) -> Result<u64, ErasureError> {
        let projects: Vec<ProjectId> = self.registry().projects(organization)?.iter().map(|project| project.id).collect();
        let mut erasure = Erasure {
            number: 0,
            organization,
            users: Vec::new(),
            others: Vec::new(),
            projects: Vec::new(),
            until: 0,
            is_done: false,
            is_lifted: false,
        };
        match subject {
            ErasureSubject::Anonymous(project, _) if !projects.contains(project) => return Err(ErasureError::Unknown),
            subject => self.add_subject(subject, &mut erasure),
        }
        let was_known = self.inner.erasures.knows(organization, &erasure.users, &erasure.others);
        // A link that is recorded meanwhile adds an id, which is suppressed in the next turn.
        loop {
            let known = (erasure.users.len(), erasure.others.len());
            self.suppress(&erasure)?;
            self.find_ids(&projects, &mut erasure)?;
            if known == (erasure.users.len(), erasure.others.len()) {
                break;
            }
        }
        if erasure.projects.is_empty() && !was_known {
            return Err(ErasureError::Unknown);
        }
        for project in &erasure.projects {
            if self.has_base(*project)? {
                return Err(ErasureError::LacksEvents(*project));
            }
        }
        erasure.until = self.inner.log_reader.last_position();
        // Nothing was recorded since it was erased.
        erasure.is_done = erasure.projects.is_empty();
        let erasure = self.registry().add_erasure(erasure)?;
        let number = erasure.number;
        if !erasure.is_done {
            self.inner.erasures.begin(erasure);
        }
        Ok(number)
    }

    fn add_subject(&self, subject: &ErasureSubject, erasure: &mut Erasure) {
        match subject {
            ErasureSubject::User(user) => erasure.users.push(self.hasher().user(user)),
            ErasureSubject::Anonymous(project, id) => erasure.others.push((*project, self.hasher().anonymous(id))),
        }
    }

    fn suppress(&self, erasure: &Erasure) -> Result<(), ErasureError> {
        match self.inner.erasures.suppress(erasure) {
            true => Ok(()),
            false => Err(ErasureError::Unavailable("events under way take too long")),
        }
    }

    /// Adds the ids that are linked to those of an erasure, and the projects that know one.
    fn find_ids(&self, projects: &[ProjectId], erasure: &mut Erasure) -> Result<(), ErasureError> {
        self.save_state()?;
        let mut users: BTreeSet<RecordKey> = erasure.users.iter().copied().collect();
        let mut others: BTreeSet<(ProjectId, RecordKey)> = erasure.others.iter().copied().collect();
        let mut known: BTreeSet<ProjectId> = BTreeSet::new();
        for project in projects {
            let partition = partition_of(*project);
            let place = self.inner.shards.ask_partition(partition, move |shard| Ok(shard.store_of(partition)));
            let (store, stored_as) = place.ok().flatten().ok_or(ErasureError::Unavailable("a partition is being rebuilt"))?;
            for_each_identity(&*store, stored_as, *project, &mut |key, slot| {
                let owner = match slot {
                    IdentitySlot::Alias { user, .. } => user,
                    IdentitySlot::Canonical(_) => key,
                };
                let is_theirs = users.contains(&key) || users.contains(&owner) || others.contains(&(*project, key));
                if is_theirs {
                    known.insert(*project);
                    for one in [key, owner] {
                        let _known = if one.is_user() { users.insert(one) } else { others.insert((*project, one)) };
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        (erasure.users, erasure.others) = (users.into_iter().collect(), others.into_iter().collect());
        erasure.projects = known.into_iter().collect();
        Ok(())
    }

    /// Has everything saved that was recorded before the call.
    fn save_state(&self) -> Result<(), ErasureError> {
        let (shards, delivered) = (&self.inner.shards, &self.inner.delivered);
        let (target, began) = (self.inner.log_reader.last_position(), Stopwatch::now());
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

    fn has_base(&self, project: ProjectId) -> Result<bool, ErasureError> {
        let Some(last) = self.inner.sealed.catalog().last_of(project) else { return Ok(false) };
        let archive = self.inner.sealed.list(project, last).map_err(crate::fault::of_archive)?;
        Ok(archive.manifest().base().is_some())
    }
}
