//! Operations on projects and their public keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use headcount_common::ControlError;
use headcount_domain::{Currency, Instant, OrganizationId, ProjectId};

use super::organizations::{currency_fixed, unused_project_id};
use super::record::ControlRecord;
use super::secret::random_key;
use super::state::State;
use super::{
    Author, Change, KEY_CHARACTERS, NewProject, ORGANIZATION_NOT_FOUND, OwnQuotas, PROJECT_NOT_FOUND, PUBLIC_KEY_PREFIX, Project,
    ProjectPatch, RateLimitPatch, Registry, RegistryError, Result, validate,
};

/// The data that records of the control log remove.
#[derive(Debug)]
pub struct RemovedAfter {
    /// The deleted projects.
    pub deleted: Vec<ProjectId>,
    /// The projects that lose an identity, each with the position of the record of the erasure.
    pub erased: Vec<(ProjectId, u64)>,
    /// The position of the last record read.
    pub until: u64,
}

impl RemovedAfter {
    /// The removals that have not ended in a state after the record at `until`.
    fn under_way(state: &State, until: u64) -> Self {
        let begun = state.erasures().filter(|erasure| erasure.has_begun() && !erasure.is_done);
        let erased = begun.flat_map(|erasure| erasure.projects().map(|project| (project, until)).collect::<Vec<_>>()).collect();
        Self { deleted: state.deletions().map(|(_, project)| project).collect(), erased, until }
    }
}

impl Registry {
    /// Creates a project with one public key.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if there is no such organization,
    /// [`RegistryError::Invalid`], [`RegistryError::Storage`], or [`RegistryError::Conflict`]
    /// `limit_reached` at [`super::MAX_PROJECTS`].
    pub fn create_project(&self, organization: OrganizationId, new: NewProject, by: impl Into<Author>) -> Result<Arc<Project>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let id = {
                let state = change.state();
                let tenant = state.tenants.get(&organization).ok_or(ORGANIZATION_NOT_FOUND)?;
                // A deleted project counts until its data are removed, so that deletions are
                // bounded, too.
                validate::room(tenant.projects.len() + tenant.deletions.len(), validate::MAX_PROJECTS, "projects")?;
                unused_project_id(&state)?
            };
            let project = new.clone().build(organization, id, author.at)?;
            change.commit(ControlRecord::ProjectCreated(project), &author)?;
            self.project(organization, id)
        })
    }

    /// Returns the projects of an organization, oldest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if there is no such organization.
    pub fn projects(&self, organization: OrganizationId) -> Result<Vec<Arc<Project>>> {
        let tenant = self.tenant(organization)?;
        let mut projects: Vec<_> = tenant.projects.values().cloned().collect();
        projects.sort_by_key(|project| (project.created_at, project.id));
        Ok(projects)
    }

    /// Returns the current state of a project of an organization.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if another organization owns the project.
    pub fn project(&self, organization: OrganizationId, id: ProjectId) -> Result<Arc<Project>> {
        let state = self.state();
        let project = state.tenants.get(&organization).and_then(|tenant| tenant.projects.get(&id));
        project.map(Arc::clone).ok_or(PROJECT_NOT_FOUND)
    }

    /// Returns the projects with a retention, and its days.
    pub fn retentions(&self) -> Vec<(ProjectId, u32)> {
        let state = self.state();
        let projects = state.tenants.values().flat_map(|tenant| tenant.projects.values());
        projects.filter_map(|project| Some((project.id, project.retention_days?))).collect()
    }

    /// Returns the projects with own quotas, and the quotas.
    pub fn own_quotas(&self) -> HashMap<ProjectId, OwnQuotas> {
        let state = self.state();
        let projects = state.tenants.values().flat_map(|tenant| tenant.projects.values());
        projects.filter(|project| project.quotas != OwnQuotas::default()).map(|project| (project.id, project.quotas)).collect()
    }

    /// Changes a project atomically, and returns its new state.
    ///
    /// The currency is fixed by the project's first recorded event, because amounts were converted
    /// to it at the rates of their time and can't be converted again. Setting it to its current
    /// value is always allowed.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`], [`RegistryError::Storage`],
    /// or [`RegistryError::Conflict`] `currency_fixed`.
    pub fn update_project(
        &self,
        organization: OrganizationId,
        id: ProjectId,
        patch: ProjectPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Project>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.project(organization, id)?;
            let changed = patched(&current, patch.clone())?;
            change.commit_project(&current, changed, &author)
        })
    }

    /// Deletes a project with its keys and tokens, durably. They are refused from the next request
    /// on. The recorded data are removed later, see [`Self::deletions`].
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] or [`RegistryError::Storage`].
    pub fn delete_project(&self, organization: OrganizationId, id: ProjectId, by: impl Into<Author>) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            self.project(organization, id)?;
            change.commit(ControlRecord::ProjectDeleted { organization, project: id }, &author)
        })
    }

    /// The deleted projects whose data may not yet be removed.
    pub fn deletions(&self) -> Vec<ProjectId> {
        self.state().deletions().map(|(_, project)| project).collect()
    }

    /// The number of deletions of projects applied since the start.
    pub fn deletions_applied(&self) -> u64 {
        self.deletions_applied.load(Ordering::Acquire)
    }

    /// Returns the data that the applied records after a position remove. If the log of one machine
    /// has lost records, these are the removals that the machine has not ended.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`]: [`ControlError::Compacted`] if a log
    /// of several machines has lost records.
    pub fn removed_after(&self, position: u64) -> Result<RemovedAfter> {
        let change = self.begin_change()?;
        let until = change.journal.next_position() - 1;
        let log_begins = change.journal.log().first_position();
        if position + 1 < log_begins {
            return match change.journal.log().is_shared() {
                true => Err(ControlError::Compacted { log_begins, applied: position }.into()),
                false => Ok(RemovedAfter::under_way(&change.state(), until)),
            };
        }
        let (mut deleted, mut erased, mut at) = (Vec::new(), Vec::new(), position);
        change.journal.read_again(position, &mut |record| {
            at += 1;
            match record {
                ControlRecord::ProjectDeleted { project, .. } => deleted.push(project),
                // A lifted erasure had begun before.
                ControlRecord::IdentityErased(erasure) if erasure.has_begun() && !erasure.is_done && !erasure.is_lifted => {
                    erased.extend(erasure.projects().map(|project| (project, at)));
                }
                _ => {}
            }
        })?;
        Ok(RemovedAfter { deleted, erased, until })
    }

    /// Records that all data of a deleted project are removed. Does nothing if that is already
    /// recorded.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn finish_deletion(&self, id: ProjectId) -> Result<()> {
        self.change(None, |change| {
            let found = change.state().deletions().find(|(_, project)| *project == id);
            let Some((organization, project)) = found else { return Ok(()) };
            change.commit_unaudited(ControlRecord::DeletionFinished { organization, project })
        })
    }

    /// Adds a public key to a project, and returns it. Existing keys stay valid.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`], or
    /// [`RegistryError::Conflict`] `limit_reached` at [`super::MAX_PUBLIC_KEYS`].
    pub fn add_public_key(&self, organization: OrganizationId, id: ProjectId, by: impl Into<Author>) -> Result<String> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.project(organization, id)?;
            validate::room(current.public_keys.len(), validate::MAX_PUBLIC_KEYS, "public keys")?;
            let key = new_public_key()?;
            let mut changed = Project::clone(&current);
            changed.public_keys.push(key.clone());
            change.commit_project(&current, changed, &author)?;
            Ok(key)
        })
    }

    /// Removes a public key from a project. Events sent with it are refused from the next request
    /// on.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`], or
    /// [`RegistryError::Conflict`] `last_public_key` if it is the project's only one.
    pub fn remove_public_key(
        &self,
        organization: OrganizationId,
        id: ProjectId,
        public_key: &str,
        by: impl Into<Author>,
    ) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.project(organization, id)?;
            let mut changed = Project::clone(&current);
            changed.public_keys.retain(|key| key != public_key);
            if changed.public_keys.len() == current.public_keys.len() {
                return Err(PUBLIC_KEY_NOT_FOUND);
            }
            changed.key_limits.remove(public_key);
            if changed.public_keys.is_empty() {
                let message = "a project's last public key can't be removed: add another one first";
                return Err(RegistryError::conflict("last_public_key", message));
            }
            change.commit_project(&current, changed, &author).map(drop)
        })
    }

    /// Changes or removes the rate limit of a public key, from the next request on. A key whose
    /// limit changed may send a whole burst at once. Returns the project's new state.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`] `rate_limit` and `burst`,
    /// and [`RegistryError::Storage`].
    pub fn limit_public_key(
        &self,
        organization: OrganizationId,
        id: ProjectId,
        public_key: &str,
        patch: RateLimitPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Project>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.project(organization, id)?;
            if !current.public_keys.iter().any(|key| key == public_key) {
                return Err(PUBLIC_KEY_NOT_FOUND);
            }
            let mut changed = Project::clone(&current);
            match validate::rate_limit(current.key_limits.get(public_key).copied(), patch)? {
                Some(limit) => drop(changed.key_limits.insert(public_key.to_owned(), limit)),
                None => drop(changed.key_limits.remove(public_key)),
            }
            change.commit_project(&current, changed, &author)
        })
    }
}

const PUBLIC_KEY_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "public key" };

impl Change<'_> {
    fn commit_project(&mut self, current: &Arc<Project>, changed: Project, author: &Author) -> Result<Arc<Project>> {
        if **current == changed {
            return Ok(Arc::clone(current));
        }
        let (organization, id) = (changed.organization, changed.id);
        self.commit(ControlRecord::ProjectChanged(changed), author)?;
        self.registry.project(organization, id)
    }
}

impl NewProject {
    /// Builds the project to store, with a new public key.
    pub(super) fn build(self, organization: OrganizationId, id: ProjectId, now: Instant) -> Result<Project> {
        Ok(Project {
            id,
            organization,
            name: validate::name(&self.name)?,
            currency: self.currency.unwrap_or(Currency::USD),
            allowed_origins: validate::origins(
                "allowed_origins",
                validate::MAX_ALLOWED_ORIGINS,
                &self.allowed_origins.unwrap_or_default(),
            )?,
            cookieless: self.cookieless.unwrap_or(true),
            bots: self.bots.unwrap_or_default(),
            signals_policy: self.signals_policy.unwrap_or_default(),
            server_only_revenue: self.server_only_revenue.unwrap_or(false),
            retention_days: validate::retention_days(self.retention_days)?,
            rate_limit: None,
            quotas: OwnQuotas::default(),
            own_domains: validate::hosts("own_domains", &self.own_domains.unwrap_or_default())?,
            ignored_referrers: validate::hosts("ignored_referrers", &self.ignored_referrers.unwrap_or_default())?,
            public_keys: vec![new_public_key()?],
            key_limits: BTreeMap::new(),
            created_at: now,
            events_recorded: false,
        })
    }
}

fn new_public_key() -> Result<String> {
    Ok(random_key(PUBLIC_KEY_PREFIX, KEY_CHARACTERS)?)
}

fn patched(current: &Project, patch: ProjectPatch) -> Result<Project> {
    let ProjectPatch { name, currency, allowed_origins, cookieless, bots, signals_policy, server_only_revenue, .. } = patch;
    let mut changed = current.clone();
    if let Some(name) = name {
        changed.name = validate::name(&name)?;
    }
    if let Some(allowed_origins) = allowed_origins {
        changed.allowed_origins = validate::origins("allowed_origins", validate::MAX_ALLOWED_ORIGINS, &allowed_origins)?;
    }
    for (name, patch, list) in [
        ("own_domains", patch.own_domains, &mut changed.own_domains),
        ("ignored_referrers", patch.ignored_referrers, &mut changed.ignored_referrers),
    ] {
        if let Some(hosts) = patch {
            *list = validate::hosts(name, &hosts)?;
        }
    }
    changed.currency = currency.unwrap_or(changed.currency);
    changed.cookieless = cookieless.unwrap_or(changed.cookieless);
    changed.bots = bots.unwrap_or(changed.bots);
    changed.signals_policy = signals_policy.unwrap_or(changed.signals_policy);
    changed.server_only_revenue = server_only_revenue.unwrap_or(changed.server_only_revenue);
    changed.retention_days = validate::retention_days(patch.retention_days.unwrap_or(changed.retention_days))?;
    changed.rate_limit = validate::rate_limit(current.rate_limit, patch.rate_limit)?;
    changed.quotas = validate::quotas(current.quotas, patch.quotas)?;
    if current.events_recorded && changed.currency != current.currency {
        return Err(currency_fixed(current.currency));
    }
    Ok(changed)
}
