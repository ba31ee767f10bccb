//! Operations on organizations.

use std::sync::Arc;

use headcount_domain::intake::policy::Rates;
use headcount_domain::{Currency, OrganizationId, ProjectId, Timezone};

use super::record::ControlRecord;
use super::secret::{SecretHash, random_u64};
use super::state::State;
use super::{
    ActionEntry, ActionReason, Author, Change, Initial, MAX_ACTIONS, NewOrganization, NewProject, NewToken,
    ORGANIZATION_NOT_FOUND, Organization, OrganizationKeys, OrganizationPatch, ROOT_TOKEN_PREFIX, Registry, RegistryError,
    Result, Role, Scope, Secret, validate,
};

/// The name of the first organization, and of the first project and token of every organization.
const DEFAULT_NAME: &str = "default";

impl Registry {
    /// Creates the first organization, its project, its token, and the root token.
    ///
    /// # Errors
    /// Returns [`RegistryError::Conflict`] `already_initialized` if an organization exists;
    /// [`RegistryError::Storage`].
    pub fn initialize(&self, by: impl Into<Author>) -> Result<Initial> {
        self.initialize_as(NewOrganization::default(), by)
    }

    /// Like [`Registry::initialize`], with the given settings. The project gets the organization's
    /// currency.
    ///
    /// # Errors
    /// Returns the same errors as [`Registry::initialize`], or [`RegistryError::Invalid`] for an
    /// invalid name; then nothing is created.
    pub fn initialize_as(&self, new: NewOrganization, by: impl Into<Author>) -> Result<Initial> {
        self.initialize_kept(new, by, |_| Ok(()))
    }

    /// Like [`Registry::initialize_as`], but passes the keys to `keep` before anything is created,
    /// so that they survive the process. If another writer records first, `keep` is called again,
    /// with other keys.
    ///
    /// # Errors
    /// Returns the same errors as [`Registry::initialize_as`], and the errors of `keep`; then
    /// nothing is created.
    pub fn initialize_kept<E: From<RegistryError>>(
        &self,
        new: NewOrganization,
        by: impl Into<Author>,
        mut keep: impl FnMut(&Initial) -> Result<(), E>,
    ) -> Result<Initial, E> {
        let author = by.into();
        self.change(Some(&author), |change| {
            if !change.state().tenants.is_empty() {
                let message = "there is an organization already";
                return Err(RegistryError::conflict("already_initialized", message).into());
            }
            let root_token = Secret::random(ROOT_TOKEN_PREFIX).map_err(RegistryError::from)?;
            let (record, keys) = change.draw_organization(new.clone(), Some(SecretHash::of(root_token.expose())), &author)?;
            let OrganizationKeys { organization_id, project_id, public_key, api_token } = keys;
            let initial = Initial { organization_id, project_id, public_key, api_token, root_token };
            keep(&initial)?;
            change.commit(record, &author)?;
            Ok(initial)
        })
    }

    /// Creates a further organization, its project and its token, on behalf of a root token.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] for an invalid name; [`RegistryError::Storage`].
    pub fn create_organization(&self, name: &str, by: impl Into<Author>) -> Result<OrganizationKeys> {
        let new = NewOrganization { name: Some(name.to_owned()), ..NewOrganization::default() };
        let author = by.into();
        self.change(Some(&author), |change| {
            let (record, keys) = change.draw_organization(new.clone(), None, &author)?;
            change.commit(record, &author)?;
            Ok(keys)
        })
    }

    /// Returns the current state of an organization.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`].
    pub fn organization(&self, id: OrganizationId) -> Result<Arc<Organization>> {
        let state = self.state();
        let tenant = state.tenants.get(&id).ok_or(ORGANIZATION_NOT_FOUND)?;
        Ok(Arc::clone(&tenant.organization))
    }

    /// Returns all organizations in order of id.
    pub fn organizations(&self) -> Vec<Arc<Organization>> {
        self.state().tenants.values().map(|tenant| Arc::clone(&tenant.organization)).collect()
    }

    /// Changes an organization atomically, and returns its new state.
    ///
    /// The timezone is fixed by the first recorded event, because days are counted in it. So is the
    /// currency, because amounts were converted to it at the rates of their time and can't be
    /// converted again. Setting either to its current value is always allowed.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`], [`RegistryError::Storage`],
    /// or [`RegistryError::Conflict`] `timezone_fixed` or `currency_fixed`.
    pub fn update_organization(
        &self,
        id: OrganizationId,
        patch: OrganizationPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Organization>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.organization(id)?;
            let changed = patched(&current, patch.clone())?;
            change.commit_organization(&current, changed, ActionReason::Set, &author)
        })
    }

    /// Sets the timezone of an organization after its days have been counted again in it.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn set_reindexed_timezone(&self, id: OrganizationId, timezone: Timezone, by: impl Into<Author>) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.organization(id)?;
            let changed = Organization { timezone, ..Organization::clone(&current) };
            change.commit_organization(&current, changed, ActionReason::Set, &author).map(drop)
        })
    }
}

impl Change<'_> {
    fn commit_organization(
        &mut self,
        current: &Arc<Organization>,
        changed: Organization,
        reason: ActionReason,
        author: &Author,
    ) -> Result<Arc<Organization>> {
        if **current == changed {
            return Ok(Arc::clone(current));
        }
        let id = changed.id;
        let record = match ActionEntry::of(current.actions_balance, changed.actions_balance, reason, author)? {
            Some(entry) => ControlRecord::ActionsChanged { organization: changed, entry },
            None => ControlRecord::OrganizationChanged(changed),
        };
        self.commit(record, author)?;
        self.registry.organization(id)
    }

    /// Draws the ids and keys of a new organization, its project and its token. Returns the record
    /// that creates them.
    fn draw_organization(
        &self,
        new: NewOrganization,
        root_token: Option<SecretHash>,
        author: &Author,
    ) -> Result<(ControlRecord, OrganizationKeys)> {
        let organization = Organization {
            id: unused_organization_id(&self.state())?,
            name: validate::name(new.name.as_deref().unwrap_or(DEFAULT_NAME))?,
            timezone: new.timezone.unwrap_or(Timezone::UTC),
            currency: new.currency.unwrap_or(Currency::USD),
            fx_rates: Rates::new(),
            capabilities: Vec::new(),
            actions_balance: 0,
            created_at: author.at,
            events_recorded: false,
        };
        let organization_id = organization.id;
        let project = NewProject { name: DEFAULT_NAME.to_owned(), currency: new.currency, ..NewProject::default() };
        let project = project.build(organization_id, unused_project_id(&self.state())?, author.at)?;
        let token = NewToken {
            name: DEFAULT_NAME.to_owned(),
            role: Role::Owner,
            scopes: Scope::ALL.to_vec(),
            project: None,
            expires_at: None,
            member: None,
        };
        let (token, api_token) = token.build(organization_id, author.at)?;
        let keys = OrganizationKeys {
            organization_id,
            project_id: project.id,
            public_key: project.public_keys.first().cloned().unwrap_or_default(),
            api_token,
        };
        Ok((ControlRecord::OrganizationCreated { organization, project, token, root_token }, keys))
    }
}

fn patched(current: &Organization, patch: OrganizationPatch) -> Result<Organization> {
    let OrganizationPatch { name, timezone, currency, fx_rates, capabilities, actions_balance } = patch;
    let mut changed = current.clone();
    if let Some(name) = name {
        changed.name = validate::name(&name)?;
    }
    if let Some(fx_rates) = fx_rates {
        changed.fx_rates = validate::rates(fx_rates)?;
    }
    if let Some(capabilities) = capabilities {
        changed.capabilities = validate::capabilities(capabilities);
    }
    changed.timezone = timezone.unwrap_or(changed.timezone);
    changed.currency = currency.unwrap_or(changed.currency);
    changed.actions_balance = actions_balance.unwrap_or(changed.actions_balance);
    if changed.actions_balance > MAX_ACTIONS.max(current.actions_balance) {
        return Err(RegistryError::invalid("actions_balance", format!("`actions_balance` must be at most {MAX_ACTIONS}")));
    }
    if current.events_recorded && changed.timezone != current.timezone {
        let message = format!("the timezone stays {} once an event was recorded, until `headcount reindex`", current.timezone);
        return Err(RegistryError::conflict("timezone_fixed", message));
    }
    if current.events_recorded && changed.currency != current.currency {
        return Err(currency_fixed(current.currency));
    }
    Ok(changed)
}

/// The error for a change of currency after amounts were converted to the current one.
pub(super) fn currency_fixed(current: Currency) -> RegistryError {
    let message = format!("the currency stays {current} once an event was recorded: amounts are converted to it for good");
    RegistryError::conflict("currency_fixed", message)
}

/// Returns a random unused organization id.
fn unused_organization_id(state: &State) -> Result<OrganizationId> {
    loop {
        let id = OrganizationId(random_u64()?);
        if !state.tenants.contains_key(&id) {
            return Ok(id);
        }
    }
}

/// Returns a random project id that no organization uses.
pub(super) fn unused_project_id(state: &State) -> Result<ProjectId> {
    loop {
        let id = ProjectId(random_u64()?);
        if !state.has_project(id) {
            return Ok(id);
        }
    }
}
