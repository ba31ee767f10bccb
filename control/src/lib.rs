//! Control data: organizations, projects, public keys, API tokens, shares, browser sessions.
//!
//! # Entry points
//! [`Registry::open`] opens the control data. Each request calls [`Registry::authenticate`],
//! [`Registry::authenticate_cookie`] or [`Registry::public_key`]. Before the first event of a
//! project, call [`Registry::pin_calendar`]. All other functions are for management.
//!
//! # Code map
//! - `record` is a change in the control log, and `state` the result of all changes.
//! - `journal` keeps both on disk, as the control log and `snapshot`s. `shared_snapshot` passes
//!   snapshots on to other machines of a cluster.
//! - `audit` derives the entries of the audit log and keeps them.
//! - `cache` serves lookups, and `limiter` counts the events of a key.
//! - `organizations`, `projects`, `members`, `tokens`, `shares`, `definitions`, `browser_sessions`
//!   and `audit_log` are the operations, one file each.
//!
//! # Invariants
//! - A change is on disk before any reader sees it. Every request that begins after its answer sees
//!   it.
//! - Only one change is made at a time. The holder of the journal's lock applies the records of
//!   other writers, checks the change, records it, applies it, and updates the cache. If another
//!   writer records first, it starts again. Readers wait only for the applying.
//! - A change is answered when all other machines have applied every record up to it, because a
//!   revoked token must be refused everywhere then. Even a record of another writer counts: it may
//!   be the same change.
//! - A change is refused if its author's credential has lost rights since the request was admitted.
//! - Disk and memory hold secrets only as hashes, except at the moment when they are made.
//! - Items of another organization are never found.
//! - Timezone and currencies never change once an event may have been recorded with them
//!   ([`Registry::pin_calendar`]). A change during the first event either comes before its pin and
//!   applies to it, or is refused. The pin is part of the configuration, so no reader sees it
//!   beside an earlier timezone.

mod action_entry;
mod actions;
mod audit;
mod audit_entry;
mod audit_log;
#[cfg(feature = "cluster")]
mod backed_up;
mod browser_session;
mod browser_sessions;
mod build_run;
mod builds;
mod cache;
mod change_limit;
mod contents;
mod definition;
mod definitions;
mod documents;
mod erasures;
mod error;
mod ids;
mod journal;
mod limiter;
mod members;
mod model;
#[cfg(feature = "cluster")]
mod moved_records;
mod names;
mod organizations;
mod projects;
mod record;
mod secret;
mod share;
#[cfg(feature = "cluster")]
mod shared_snapshot;
mod shares;
mod sign_in_codes;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod touched;
mod validate;
mod website;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use headcount_common::{ControlError, ControlLog};
use headcount_domain::{Instant, OrganizationId, ProjectId};
use headcount_storage::log::LogFile;
use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use tokio::sync::watch;

pub use action_entry::{ActionEntry, ActionsPage, ActionsQuery, MAX_ACTION_ENTRIES, MAX_ACTIONS};
pub use audit::changes::field_changes;
pub use audit_entry::{Actor, AuditEntry, AuditPage, AuditQuery, AuditTarget, Author, FieldChange};
#[cfg(feature = "cluster")]
pub use backed_up::{BackedUpLog, ControlMoment};
pub use browser_session::{BrowserSession, MAX_SESSIONS, MAX_SESSIONS_OF_TOKEN, SESSION_SECONDS};
pub use build_run::{BuildError, BuildOutcome, BuildRun, MAX_BUILD_RUNS, NewBuild};
pub use cache::{Principal, ProjectConfig, PublicKey, TokenHolder};
pub use definition::{BadDefinitionId, Definition, DefinitionId, DefinitionPatch, MAX_DEFINITION_BYTES};
pub use definitions::{DefinitionPlace, MAX_DEFINITIONS};
pub use documents::{PlannedChange, check_room};
pub use erasures::MadeFor;
pub use error::{AuthError, RegistryError, Result, SignInError};
pub use ids::{
    ActionId, AuditId, BadActionId, BadAuditId, BadBuildRunId, BadCompanyProfileId, BadMemberId, BadPrivacyRequestId,
    BadSessionId, BadShareId, BadTokenId, BadWebhookId, BuildRunId, CompanyProfileId, MemberId, PrivacyRequestId, SessionId,
    ShareId, TokenId, WebhookId,
};
pub use limiter::{LimitUsedUp, Limiter, Standing};
pub use model::{
    ApiToken, Erasure, ErasureEnd, ErasureStage, Initial, Member, MemberPatch, NewMember, NewOrganization, NewProject, NewToken,
    Organization, OrganizationKeys, OrganizationPatch, OwnQuotas, Project, ProjectPatch, RateLimit, RateLimitPatch, TokenPatch,
};
pub use names::{ActionReason, ActorKind, AuditAction, Capability, DefinitionKind, Role, Scope, TargetType};
pub use projects::RemovedAfter;
pub use secret::{
    Authority, KEY_CHARACTERS, OPERATOR_FILE, OperatorToken, PUBLIC_KEY_PREFIX, ROOT_TOKEN_PREFIX, SESSION_PREFIX, SHARE_PREFIX,
    SIGN_IN_CODE_PREFIX, Secret, TOKEN_PREFIX,
};
pub use share::{MAX_EMBED_ORIGINS, MAX_SHARES, MAX_SHARES_OF_PROJECT, NewShare, Share, ShareHolder};
pub use sign_in_codes::{MAX_SIGN_IN_CODES, MAX_SIGN_IN_CODES_OF_TOKEN, SIGN_IN_CODE_SECONDS};
pub use validate::{
    MAX_ALLOWED_ORIGINS, MAX_EMAIL_BYTES, MAX_MEMBERS, MAX_NAME_CHARACTERS, MAX_ORIGIN_BYTES, MAX_PROJECTS, MAX_PUBLIC_KEYS,
    MAX_QUOTA, MAX_RATE_LIMIT, MAX_RETENTION_DAYS, MAX_TOKENS, normal_origin,
};
pub use website::Website;

use audit::changes::changes_of;
use cache::Cache;
use change_limit::ChangeLimit;
use journal::{Journal, JournalOptions};
use record::ControlRecord;
use secret::SecretHash;
use sign_in_codes::SignInCodes;
use state::{State, Tenant};

/// The directory of the control data in a data directory.
pub const CONTROL_DIR: &str = "control";

/// Organizations, projects, keys and tokens, on disk and in memory. Share it in an [`Arc`].
///
/// Changes wait for the disk, so async code must make them on a thread that may block. Lookups
/// never block.
#[derive(Debug)]
pub struct Registry {
    /// Locked during a change, from the first check to the last update of the cache.
    journal: Mutex<Journal>,
    /// Written only by the holder of `journal`, while it applies a record.
    state: RwLock<State>,
    cache: Cache,
    codes: SignInCodes,
    /// Waits until other machines have applied a change.
    propagation: OnceLock<Propagation>,
    /// The position of the last record that all other machines are known to have applied.
    propagated: AtomicU64,
    /// Limits changes that are propagated.
    change_limit: ChangeLimit,
    /// The number of deletions of projects applied since the start.
    deletions_applied: AtomicU64,
    /// The number of changes of erasures applied since the start.
    erasures_applied: AtomicU64,
}

/// Waits until all other machines that answer requests have applied a record.
struct Propagation(Box<dyn Fn(u64) + Send + Sync>);

impl std::fmt::Debug for Propagation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Propagation").finish_non_exhaustive()
    }
}

impl Registry {
    /// Opens the control data in [`CONTROL_DIR`] of `data_dir`, or creates it. The caller holds the
    /// lock of the data directory, so that only one process does so at a time.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] names the file that can't be read, is damaged, is
    /// missing, or was written by a later version.
    pub fn open(data_dir: &Path) -> Result<Self> {
        Self::open_with(data_dir, JournalOptions::default())
    }

    /// Opens the control log in [`CONTROL_DIR`] of `data_dir`, or creates one there.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`], as [`Registry::open`].
    pub fn local_log(data_dir: &Path) -> Result<Box<dyn ControlLog>> {
        Ok(Box::new(Journal::local_log(&data_dir.join(CONTROL_DIR), JournalOptions::default().segment_bytes)?))
    }

    /// Opens the control data in `log`. [`CONTROL_DIR`] of `data_dir` has snapshots and audit logs,
    /// which are written again if the directory is lost. The caller holds the lock of the
    /// directory, and has checked that they were made from this log.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`], as [`Registry::open`].
    pub fn open_on(data_dir: &Path, log: Box<dyn ControlLog>) -> Result<Self> {
        Self::of(Journal::open_on(&data_dir.join(CONTROL_DIR), log, JournalOptions::default())?)
    }

    fn open_with(data_dir: &Path, options: JournalOptions) -> Result<Self> {
        Self::of(Journal::open(&data_dir.join(CONTROL_DIR), options)?)
    }

    fn of((journal, state): (Journal, State)) -> Result<Self> {
        let cache = Cache::of(&state);
        let (journal, state) = (Mutex::new(journal), RwLock::new(state));
        let codes = SignInCodes::new(Self::codes_in_memory());
        let propagation = OnceLock::new();
        let (deletions_applied, erasures_applied) = (AtomicU64::new(0), AtomicU64::new(0));
        let change_limit = ChangeLimit::default();
        Ok(Registry {
            journal,
            state,
            cache,
            codes,
            propagation,
            propagated: AtomicU64::new(0),
            change_limit,
            deletions_applied,
            erasures_applied,
        })
    }

    /// Whether no organization exists yet.
    pub fn is_empty(&self) -> bool {
        self.state().tenants.is_empty()
    }

    /// Returns the principal of a credential (the part of `Authorization` after `Bearer `). Costs
    /// one SHA-256 and one lookup.
    ///
    /// # Errors
    /// Returns [`AuthError::Unknown`] if the credential is malformed, was never issued, was revoked
    /// or has expired.
    pub fn authenticate(&self, bearer: &str, now: Instant) -> Result<Principal, AuthError> {
        if ![TOKEN_PREFIX, ROOT_TOKEN_PREFIX, SHARE_PREFIX].iter().any(|prefix| secret::is_key(bearer, prefix)) {
            return Err(AuthError::Unknown);
        }
        self.cache.principal(&SecretHash::of(bearer), now).ok_or(AuthError::Unknown)
    }

    /// Returns the project of a public key and the key's rate limit, as of now. The caller enforces
    /// the limit; the engine does not.
    pub fn public_key(&self, public_key: &str) -> Option<PublicKey> {
        self.cache.by_key(public_key)
    }

    /// Returns the project with this id, of any organization, as of now.
    pub fn policy(&self, project: ProjectId) -> Option<Arc<ProjectConfig>> {
        self.cache.by_project(project)
    }

    /// Returns the configuration to evaluate and record an event of a project with: `held`, found
    /// by the request's key, if its timezone and currencies are pinned. Otherwise, once for each
    /// project, it pins them durably and returns the current configuration.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the project is gone; [`RegistryError::Storage`] if
    /// the pin can't be recorded: then the event must not be recorded either.
    pub fn pin_calendar(&self, held: &Arc<ProjectConfig>) -> Result<Arc<ProjectConfig>> {
        if held.is_calendar_pinned() {
            return Ok(Arc::clone(held));
        }
        let project = held.policy.project;
        // Other machines learn that a project has events before they change settings that depend on
        // it.
        let pinned = self.change_here(None, |change| {
            let current = self.policy(project).ok_or(PROJECT_NOT_FOUND)?;
            if current.is_calendar_pinned() {
                return Ok(current);
            }
            let organization = current.policy.organization;
            change.commit_unaudited(ControlRecord::EventsRecorded { organization, project })?;
            self.policy(project).ok_or(PROJECT_NOT_FOUND)
        });
        pinned?.0
    }

    /// Returns a receiver of changes of tokens, keys, projects and definitions, so that holders can
    /// check again what is allowed, and what is asked.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.cache.changes()
    }

    /// Passes the files of the control data to `take`. Changes wait meanwhile.
    pub fn hold_files<R>(&self, take: impl FnOnce(&[LogFile]) -> R) -> Result<R> {
        let change = self.begin_change()?;
        let files = change.journal.files()?;
        Ok(take(&files))
    }

    /// Applies the records of other writers up to now. Returns the number of records.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] if the log can't be read. Records before the failure are
    /// applied.
    pub fn catch_up(&self) -> Result<u64> {
        let mut change = self.begin_change()?;
        change.journal.refresh()?;
        change.catch_up()
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Applying a record doesn't panic; if it did, the state would still follow the log record
        // by record.
        self.state.read()
    }

    /// Returns an organization with all that belongs to it. Changes wait until the guard is
    /// dropped.
    fn tenant(&self, organization: OrganizationId) -> Result<MappedRwLockReadGuard<'_, Tenant>> {
        RwLockReadGuard::try_map(self.state(), |state| state.tenants.get(&organization)).map_err(|_| ORGANIZATION_NOT_FOUND)
    }

    /// Makes a change. `attempt` checks the state, and commits or returns without a commit. It
    /// starts again if another writer records something in between. `by` is the author; `None` is
    /// the program itself. After [`ControlError::Undecided`], the change may show later.
    fn change<T, E: From<RegistryError>>(
        &self,
        by: Option<&Author>,
        attempt: impl FnMut(&mut Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (outcome, applied) = self.change_here(by, attempt)?;
        if let Some(Propagation(propagate)) = self.propagation.get()
            && self.propagated.load(Ordering::Acquire) < applied
        {
            propagate(applied);
            self.propagated.fetch_max(applied, Ordering::AcqRel);
        }
        outcome
    }

    /// Like [`Self::change`], without waiting for other machines. Also returns the position of the
    /// last applied record.
    fn change_here<T, E: From<RegistryError>>(
        &self,
        by: Option<&Author>,
        mut attempt: impl FnMut(&mut Change<'_>) -> Result<T, E>,
    ) -> Result<(Result<T, E>, u64), E> {
        let mut change = self.begin_change()?;
        change.catch_up()?;
        let outcome = loop {
            let outcome = match self.check_author(by) {
                Ok(()) => attempt(&mut change),
                Err(refused) => Err(RegistryError::Refused(refused).into()),
            };
            // If a log refuses and has no new records, it would refuse forever.
            if !std::mem::take(&mut change.was_overtaken) || change.catch_up()? == 0 {
                break outcome;
            }
        };
        let applied = change.journal.next_position() - 1;
        Ok((outcome, applied))
    }

    /// Makes each change wait, after it is recorded, until `propagate` returns. `propagate` gets
    /// the position of the record, and waits until all other machines that answer requests have
    /// applied it. Only the first call counts.
    pub fn propagate_with(&self, propagate: impl Fn(u64) + Send + Sync + 'static) {
        let _is_first = self.propagation.set(Propagation(Box::new(propagate))).is_ok();
    }

    /// Returns the position of the last applied record of the control log.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] after an interrupted change.
    pub fn applied(&self) -> Result<u64> {
        Ok(self.begin_change()?.journal.next_position() - 1)
    }

    /// Checks that a credential still has the rights that it had when its request was admitted.
    /// Scopes, project and organization never change.
    ///
    /// # Errors
    /// Returns an [`AuthError`].
    pub fn check_authority(&self, authority: &Authority, now: Instant) -> Result<(), AuthError> {
        match self.cache.principal(&authority.secret, now) {
            Some(Principal::Token(TokenHolder { token: rights, .. }) | Principal::Share(ShareHolder { rights, .. })) => {
                // Roles are ordered from the highest to the lowest.
                if rights.role > authority.role { Err(AuthError::Lowered) } else { Ok(()) }
            }
            Some(Principal::Root(_)) | None => Err(AuthError::Unknown),
        }
    }

    /// Checks that the author of a change may still make it. The caller holds the journal's lock,
    /// so nothing can be revoked before the change is made.
    fn check_author(&self, by: Option<&Author>) -> Result<(), AuthError> {
        let Some(Author { at, authority: Some(authority), .. }) = by else { return Ok(()) };
        self.check_authority(authority, *at)
    }

    /// Begins a change; other changes wait until it is dropped.
    fn begin_change(&self) -> Result<Change<'_>> {
        // A holder that panicked may have recorded a change without applying it. Only the next
        // start repairs that.
        let journal = self.journal.lock().map_err(|_| ControlError::Interrupted)?;
        Ok(Change { registry: self, journal, was_overtaken: false })
    }

    /// Applies a record that is on disk, and publishes it.
    fn apply(&self, record: ControlRecord) {
        let is_deletion = matches!(record, ControlRecord::ProjectDeleted { .. });
        let is_erasure = matches!(record, ControlRecord::IdentityErased(_) | ControlRecord::ErasureProgressed { .. });
        let touched = self.state.write().apply(record);
        if let Some(touched) = touched {
            self.cache.follow(&self.state(), touched);
        }
        if is_deletion {
            self.deletions_applied.fetch_add(1, Ordering::Release);
        }
        if is_erasure {
            self.erasures_applied.fetch_add(1, Ordering::Release);
        }
    }
}

const PROJECT_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "project" };
const ORGANIZATION_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "organization" };

/// The right to make changes.
struct Change<'a> {
    registry: &'a Registry,
    journal: MutexGuard<'a, Journal>,
    /// Whether a commit failed because another writer's commit came first.
    was_overtaken: bool,
}

impl Change<'_> {
    /// The state that the change applies to. It is constant until [`Self::commit`].
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.registry.state()
    }

    /// Records a change and its audit entries, then applies it, then publishes it.
    fn commit(&mut self, record: ControlRecord, author: &Author) -> Result<()> {
        let changes = changes_of(&self.state(), &record);
        let audit = changes.into_iter().map(|change| change.by(author)).collect::<Result<Vec<_>, _>>()?;
        self.record(record, &audit)
    }

    /// Like [`Self::commit`], for internal records without audit entries.
    fn commit_unaudited(&mut self, record: ControlRecord) -> Result<()> {
        self.record(record, &[])
    }

    fn record(&mut self, record: ControlRecord, audit: &[AuditEntry]) -> Result<()> {
        let position = self.journal.next_position();
        self.state().check(&record).map_err(|misfit| ControlError::BadRecord { position, message: misfit.to_owned() })?;
        if self.registry.propagation.get().is_some() {
            self.registry.change_limit.take(&record, std::time::Instant::now())?;
        }
        let appended = self.journal.append_at(position, &record, audit);
        self.was_overtaken = matches!(appended, Err(ControlError::Conflict { .. }));
        appended?;
        self.registry.apply(record);
        self.journal.roll(&self.registry.state());
        Ok(())
    }

    /// Applies the records of other writers. Returns their number.
    fn catch_up(&mut self) -> Result<u64> {
        let registry = self.registry;
        let caught_up = self.journal.catch_up(&mut |position, record| {
            registry.state().check(&record).map_err(|misfit| ControlError::BadRecord { position, message: misfit.to_owned() })?;
            registry.apply(record);
            Ok(())
        })?;
        if caught_up > 0 {
            self.journal.roll(&registry.state());
        }
        Ok(caught_up)
    }
}
