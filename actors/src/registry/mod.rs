//! The registry: organizations, projects, public keys, API tokens.
//!
//! # Entry points
//! [`Registry::open`]; for each request [`Registry::authenticate`] or [`Registry::public_key`]; before the
//! first event of a project [`Registry::pin_calendar`]; everything else is management.
//!
//! # Code map
//! `record` is what the control log holds, `state` what its records lead to, `journal` keeps both on disk (`control_log`
//! and `snapshot`s), `cache` is what requests look up, `limiter` what counts
//! the events of a key. `organizations`, `projects` and `tokens` are the operations, one file each.
//!
//! # Invariants
//! - A change is on disk before anybody can see it, and seen by every request that begins after it was answered.
//! - One change at a time: whoever holds the journal checks, records, applies, and brings the cache up to date before
//!   letting go. Readers wait for none of it but the applying.
//! - Secrets are on disk as hashes only, and in memory too, but for the moment of their making.
//! - What belongs to another organization is not found.
//! - Timezone and currencies never change once an event may have been recorded with them ([`Registry::pin_calendar`]).

mod cache;
mod control_log;
mod error;
mod journal;
mod limiter;
mod model;
mod names;
mod organizations;
mod projects;
mod record;
mod secret;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod validate;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use headcount_domain::ids::ProjectId;
use headcount_domain::time::Instant;

pub use cache::{Principal, ProjectConfig, PublicKey};
pub use error::{AuthError, ControlError, RegistryError};
pub use limiter::{LimitUsedUp, Limiter, Standing};
pub use model::{
    ApiToken, BadTokenId, Initial, NewOrganization, NewProject, NewToken, Organization, OrganizationKeys, OrganizationPatch,
    Project, ProjectPatch, RateLimit, RateLimitPatch, TokenId,
};
pub use names::{Capability, Role, Scope, UnknownName};
pub use secret::{KEY_CHARACTERS, PUBLIC_KEY_PREFIX, ROOT_TOKEN_PREFIX, Secret, TOKEN_PREFIX};
pub use validate::{
    MAX_ALLOWED_ORIGINS, MAX_NAME_CHARACTERS, MAX_ORIGIN_BYTES, MAX_PROJECTS, MAX_PUBLIC_KEYS, MAX_RATE_LIMIT, MAX_TOKENS,
};

use cache::Cache;
use journal::{Journal, JournalOptions};
use record::ControlRecord;
use secret::SecretHash;
use state::State;

/// Where the control data lies in a data directory.
pub const CONTROL_DIR: &str = "control";

/// Organizations, projects, keys and tokens, on disk and at hand. Share it in an [`Arc`].
///
/// Changes wait for the disk: in async code they belong on a thread that may block. Lookups never do.
#[derive(Debug)]
pub struct Registry {
    /// Held by whoever makes a change, from the first check to the last update of the cache.
    journal: Mutex<Journal>,
    /// Written by the holder of `journal` only, for the moment of applying a record.
    state: RwLock<State>,
    cache: Cache,
}

impl Registry {
    /// Opens the control data in [`CONTROL_DIR`] of `data_dir`, or makes an empty one there. One process at a time may
    /// do so: the caller holds the lock of the data directory.
    ///
    /// # Errors
    /// [`RegistryError::Storage`] names what can't be read, is damaged, is missing, or was written by a later version.
    pub fn open(data_dir: &Path) -> Result<Self, RegistryError> {
        Self::open_with(data_dir, JournalOptions::default())
    }

    fn open_with(data_dir: &Path, options: JournalOptions) -> Result<Self, RegistryError> {
        let (journal, state) = Journal::open(&data_dir.join(CONTROL_DIR), options)?;
        let cache = Cache::of(&state);
        Ok(Registry { journal: Mutex::new(journal), state: RwLock::new(state), cache })
    }

    /// Whether there is no organization yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state().tenants.is_empty()
    }

    /// Who sends this credential (the part of `Authorization` after `Bearer `). One SHA-256 and one lookup.
    ///
    /// # Errors
    /// [`AuthError::Unknown`], whether it is malformed, was never issued, was revoked or has expired.
    pub fn authenticate(&self, bearer: &str, now: Instant) -> Result<Principal, AuthError> {
        if !secret::is_key(bearer, TOKEN_PREFIX) && !secret::is_key(bearer, ROOT_TOKEN_PREFIX) {
            return Err(AuthError::Unknown);
        }
        match self.cache.principal(&SecretHash::of(bearer)) {
            Some(Principal::Token(token)) if token.is_expired(now) => Err(AuthError::Unknown),
            Some(principal) => Ok(principal),
            None => Err(AuthError::Unknown),
        }
    }

    /// The project of a public key, as it is at this moment, and the key's rate limit. The caller enforces the limit; the
    /// engine does not.
    #[must_use]
    pub fn public_key(&self, public_key: &str) -> Option<PublicKey> {
        self.cache.by_key(public_key)
    }

    /// The project of this id, of whatever organization, as it is at this moment.
    #[must_use]
    pub fn policy(&self, project: ProjectId) -> Option<Arc<ProjectConfig>> {
        self.cache.by_project(project)
    }

    /// Gives the picture of a project that an event may be recorded with: `held` itself if its timezone and currencies
    /// are settled, else the current one, after marking durably that the project has events.
    ///
    /// The protocol of intake is `let keyed = registry.pin_calendar(&keyed)?`, with whatever picture the request found
    /// by its key; then everything about the event is decided by the picture that was returned. A change of the
    /// timezone that meets the first event thus comes either before the mark, and the event gets the new timezone, or
    /// after it, and is refused with `timezone_fixed`. The mark is in the picture, and not in a flag that pictures share, so that
    /// nobody can see the mark beside a timezone from before it.
    ///
    /// Costs nothing when [`ProjectConfig::is_calendar_pinned`]; else, once in a project's life, it waits for the disk.
    /// The mark stays if the event is not recorded after all.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`] if the project is gone; [`RegistryError::Storage`] if the mark can't be recorded:
    /// then the event must not be either.
    pub fn pin_calendar(&self, held: &Arc<ProjectConfig>) -> Result<Arc<ProjectConfig>, RegistryError> {
        if held.is_calendar_pinned() {
            return Ok(Arc::clone(held));
        }
        let project = held.policy.project;
        let mut change = self.change()?;
        let current = self.policy(project).ok_or(PROJECT_NOT_FOUND)?;
        if current.is_calendar_pinned() {
            return Ok(current);
        }
        let organization = current.policy.organization;
        change.commit(ControlRecord::EventsRecorded { organization, project })?;
        self.policy(project).ok_or(PROJECT_NOT_FOUND)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Applying a record doesn't panic; if it did, what the log says would still be applied record by record.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a change; until it is dropped nobody else makes one.
    fn change(&self) -> Result<Change<'_>, RegistryError> {
        // A holder that panicked may have recorded what it did not apply: the next start puts that right, nothing else.
        let journal = self.journal.lock().map_err(|_| ControlError::Interrupted)?;
        Ok(Change { registry: self, journal })
    }
}

const PROJECT_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "project" };
const ORGANIZATION_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "organization" };

/// The right to make changes.
struct Change<'a> {
    registry: &'a Registry,
    journal: MutexGuard<'a, Journal>,
}

impl Change<'_> {
    /// The state that the change is made to. It stays as it is until [`Self::commit`].
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.registry.state()
    }

    /// Records a change, then applies it, then lets it be seen.
    fn commit(&mut self, record: ControlRecord) -> Result<(), RegistryError> {
        let position = self.journal.next_position();
        self.state().check(&record).map_err(|misfit| ControlError::BadRecord { position, message: misfit.to_owned() })?;
        self.journal.append_at(position, &record)?;
        let touched = self.registry.state.write().unwrap_or_else(PoisonError::into_inner).apply(record);
        let state = self.registry.state();
        if let Some(touched) = touched {
            self.registry.cache.follow(&state, touched);
        }
        self.journal.roll(&state);
        Ok(())
    }
}
