//! Definitions: segments, goals, funnels, annotations and alerts of a project, and channels of an
//! organization. Questions refer to them by id, or the page shows them. Each is a name and fields
//! of JSON that only its readers understand.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_domain::{OrganizationId, ProjectId};

use super::definition::{Definition, DefinitionId, DefinitionPatch, MAX_DEFINITION_BYTES};
use super::record::ControlRecord;
use super::{Author, DefinitionKind, PROJECT_NOT_FOUND, Registry, RegistryError, Result, validate};

/// The place of a definition: its organization, and its project if it is one's.
pub type DefinitionPlace = (OrganizationId, Option<ProjectId>);

/// The maximum number of definitions of one kind in a project, or in an organization without one.
pub const MAX_DEFINITIONS: usize = 200;
/// The maximum number of alerts of a project, and of an organization.
const MAX_ALERTS: (usize, usize) = (100, 1_000);
/// The maximum size of the JSON of all goals of a project, which one question reads.
const MAX_BYTES_OF_GOALS: usize = 64 * 1024;
/// The maximum size of the JSON of all definitions of an organization.
pub(super) const MAX_BYTES_OF_ORGANIZATION: usize = 8 << 20;

fn not_found(kind: DefinitionKind) -> RegistryError {
    RegistryError::NotFound { what: kind.as_str() }
}

impl Registry {
    /// Creates a definition.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project, [`RegistryError::Invalid`],
    /// [`RegistryError::Storage`], or [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_DEFINITIONS`], with 100 alerts of a project, or 1,000 of an organization.
    pub fn create_definition(
        &self,
        (organization, project): DefinitionPlace,
        kind: DefinitionKind,
        (name, fields): (String, BTreeMap<String, String>),
        by: impl Into<Author>,
    ) -> Result<Arc<Definition>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let count = self.definitions((organization, project), kind)?.len();
            let of = if project.is_some() { "project" } else { "organization" };
            let most = if kind == DefinitionKind::Alert { MAX_ALERTS.0 } else { MAX_DEFINITIONS };
            validate::room(count, most, &format!("{kind}s of the {of}"))?;
            if kind == DefinitionKind::Alert {
                let alerts = self.tenant(organization)?.definitions.keys().filter(|id| id.kind() == kind).count();
                validate::room(alerts, MAX_ALERTS.1, "alerts of the organization")?;
            }
            let number = self.tenant(organization)?.definitions.values().map(|last| last.number).max().unwrap_or(0) + 1;
            let definition = Definition {
                id: DefinitionId::random(kind)?,
                organization,
                project,
                number,
                name: validate::name(&name)?,
                fields: fields.clone(),
                created_by: author.actor.clone(),
                created_at: author.at,
            };
            self.check_bytes(&definition, 0)?;
            change.commit(ControlRecord::DefinitionPut(definition.clone()), &author)?;
            Ok(Arc::new(definition))
        })
    }

    /// Returns the definitions of a kind in a place, oldest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project.
    pub fn definitions(&self, (organization, project): DefinitionPlace, kind: DefinitionKind) -> Result<Vec<Arc<Definition>>> {
        let tenant = self.tenant(organization)?;
        if let Some(project) = project {
            tenant.projects.get(&project).ok_or(PROJECT_NOT_FOUND)?;
        }
        let is_wanted = |definition: &&Arc<Definition>| definition.project == project && definition.id.kind() == kind;
        let mut definitions: Vec<_> = tenant.definitions.values().filter(is_wanted).cloned().collect();
        definitions.sort_by_key(|definition| definition.number);
        Ok(definitions)
    }

    /// Returns a definition.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if the definition has another place.
    pub fn definition(&self, (organization, project): DefinitionPlace, id: &DefinitionId) -> Result<Arc<Definition>> {
        let tenant = self.tenant(organization)?;
        let found = tenant.definitions.get(id).filter(|definition| definition.project == project);
        found.cloned().ok_or_else(|| not_found(id.kind()))
    }

    /// Changes a definition: all values of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`],
    /// [`RegistryError::Storage`].
    pub fn change_definition(
        &self,
        place: DefinitionPlace,
        id: &DefinitionId,
        patch: &DefinitionPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Definition>> {
        self.edit_definition(place, id, |_| patch.clone(), by)
    }

    /// Changes a definition by the patch that `edit` makes of it as it is. It is called again if
    /// another change came first.
    ///
    /// # Errors
    /// As [`Registry::change_definition`].
    pub fn edit_definition(
        &self,
        place: DefinitionPlace,
        id: &DefinitionId,
        edit: impl Fn(&Definition) -> DefinitionPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Definition>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.definition(place, id)?;
            let patch = edit(&current);
            let mut changed = Definition::clone(&current);
            if let Some(name) = &patch.name {
                changed.name = validate::name(name)?;
            }
            changed.fields.extend(patch.fields);
            if changed == *current {
                return Ok(current);
            }
            self.check_bytes(&changed, current.bytes())?;
            change.commit(ControlRecord::DefinitionPut(changed.clone()), &author)?;
            Ok(Arc::new(changed))
        })
    }

    /// Removes a definition.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn remove_definition(&self, place: DefinitionPlace, id: &DefinitionId, by: impl Into<Author>) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            self.definition(place, id)?;
            change.commit(ControlRecord::DefinitionRemoved { organization: place.0, definition: id.clone() }, &author)
        })
    }

    /// Checks that there is room for a definition, which replaces one of `former` bytes.
    fn check_bytes(&self, definition: &Definition, former: usize) -> Result<()> {
        let own = definition.bytes();
        if own > MAX_DEFINITION_BYTES {
            let message = format!("must have at most {MAX_DEFINITION_BYTES} bytes of JSON, has {own}");
            return Err(RegistryError::invalid(definition.id.kind().as_str(), message));
        }
        if definition.id.kind() == DefinitionKind::Goal {
            let goals = self.definitions((definition.organization, definition.project), DefinitionKind::Goal)?;
            let goals = goals.iter().map(|goal| goal.bytes()).sum::<usize>() + own;
            validate::room(goals.saturating_sub(former + 1), MAX_BYTES_OF_GOALS, "bytes of goals of the project")?;
        }
        let all: usize = self.tenant(definition.organization)?.definitions.values().map(|definition| definition.bytes()).sum();
        let bytes = (all + own).saturating_sub(former);
        validate::room(bytes.saturating_sub(1), MAX_BYTES_OF_ORGANIZATION, "bytes of definitions of the organization")
    }
}
