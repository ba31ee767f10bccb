//! Definitions of a project: segments, goals, funnels and annotations. Questions refer to them by
//! id, or the page shows them. Each is a name and fields of JSON that only its readers understand.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use headcount_common::ControlError;
use headcount_domain::{Instant, OrganizationId, ProjectId};
use serde::{Deserialize, Serialize};

use super::record::ControlRecord;
use super::secret::random_key;
use super::{Actor, Author, DefinitionKind, PROJECT_NOT_FOUND, Registry, RegistryError, Result, validate};

/// The maximum number of definitions of one kind in a project.
pub const MAX_DEFINITIONS: usize = 200;
/// The maximum size of a definition's JSON.
pub const MAX_DEFINITION_BYTES: usize = 16 * 1024;
/// The maximum size of the JSON of all definitions of an organization.
pub(super) const MAX_BYTES_OF_ORGANIZATION: usize = 8 << 20;
/// The number of characters after the prefix of an id.
const ID_CHARACTERS: usize = 16;

/// The id of a definition: its kind and random characters, such as `goal_0123456789abcdef`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DefinitionId {
    kind: DefinitionKind,
    characters: String,
}

/// The error for text that is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id of a segment, goal, funnel or annotation")]
pub struct BadDefinitionId;

impl DefinitionId {
    fn random(kind: DefinitionKind) -> Result<Self, ControlError> {
        Ok(Self { kind, characters: random_key("", ID_CHARACTERS)? })
    }

    /// The kind of the definition.
    pub const fn kind(&self) -> DefinitionKind {
        self.kind
    }
}

impl FromStr for DefinitionId {
    type Err = BadDefinitionId;

    fn from_str(text: &str) -> Result<Self, BadDefinitionId> {
        let (kind, characters) = text.split_once('_').ok_or(BadDefinitionId)?;
        let is_valid = characters.len() == ID_CHARACTERS && characters.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let kind = kind.parse().ok().filter(|_| is_valid).ok_or(BadDefinitionId)?;
        Ok(Self { kind, characters: characters.to_owned() })
    }
}

impl TryFrom<String> for DefinitionId {
    type Error = BadDefinitionId;

    fn try_from(text: String) -> Result<Self, BadDefinitionId> {
        text.parse()
    }
}

impl From<DefinitionId> for String {
    fn from(id: DefinitionId) -> String {
        id.to_string()
    }
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.kind, self.characters)
    }
}

/// A definition of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its id, with its kind.
    pub id: DefinitionId,
    /// The organization.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// Rises from definition to definition of the organization.
    pub number: u64,
    /// Its name. The text of an annotation.
    pub name: String,
    /// The other fields: their names, and their JSON.
    pub fields: BTreeMap<String, String>,
    /// The actor who created it.
    pub created_by: Actor,
    /// The time of its creation.
    pub created_at: Instant,
}

impl Definition {
    fn bytes(&self) -> usize {
        self.name.len() + self.fields.iter().map(|(name, json)| name.len() + json.len()).sum::<usize>()
    }
}

/// The new values of a definition. `None` leaves a value as it is.
#[derive(Debug, Clone, Default)]
pub struct DefinitionPatch {
    /// The name.
    pub name: Option<String>,
    /// The JSON of some fields.
    pub fields: BTreeMap<String, String>,
}

fn not_found(kind: DefinitionKind) -> RegistryError {
    RegistryError::NotFound { what: kind.as_str() }
}

impl Registry {
    /// Creates a definition.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project, [`RegistryError::Invalid`],
    /// [`RegistryError::Storage`], or [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_DEFINITIONS`].
    pub fn create_definition(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        kind: DefinitionKind,
        (name, fields): (String, BTreeMap<String, String>),
        by: impl Into<Author>,
    ) -> Result<Arc<Definition>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let count = self.definitions(organization, project, kind)?.len();
            validate::room(count, MAX_DEFINITIONS, &format!("{kind}s of the project"))?;
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

    /// Returns the definitions of a kind in a project, oldest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project.
    pub fn definitions(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        kind: DefinitionKind,
    ) -> Result<Vec<Arc<Definition>>> {
        let tenant = self.tenant(organization)?;
        tenant.projects.get(&project).ok_or(PROJECT_NOT_FOUND)?;
        let is_wanted = |definition: &&Arc<Definition>| definition.project == project && definition.id.kind == kind;
        let mut definitions: Vec<_> = tenant.definitions.values().filter(is_wanted).cloned().collect();
        definitions.sort_by_key(|definition| definition.number);
        Ok(definitions)
    }

    /// Returns a definition of a project.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if the definition is another project's.
    pub fn definition(&self, organization: OrganizationId, project: ProjectId, id: &DefinitionId) -> Result<Arc<Definition>> {
        let tenant = self.tenant(organization)?;
        let found = tenant.definitions.get(id).filter(|definition| definition.project == project);
        found.cloned().ok_or_else(|| not_found(id.kind))
    }

    /// Changes a definition: all values of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`],
    /// [`RegistryError::Storage`].
    pub fn change_definition(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        id: &DefinitionId,
        patch: &DefinitionPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Definition>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.definition(organization, project, id)?;
            let mut changed = Definition::clone(&current);
            if let Some(name) = &patch.name {
                changed.name = validate::name(name)?;
            }
            changed.fields.extend(patch.fields.clone());
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
    pub fn remove_definition(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        id: &DefinitionId,
        by: impl Into<Author>,
    ) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            self.definition(organization, project, id)?;
            change.commit(ControlRecord::DefinitionRemoved { organization, definition: id.clone() }, &author)
        })
    }

    /// Checks that there is room for a definition, which replaces one of `former` bytes.
    fn check_bytes(&self, definition: &Definition, former: usize) -> Result<()> {
        let own = definition.bytes();
        if own > MAX_DEFINITION_BYTES {
            let message = format!("must have at most {MAX_DEFINITION_BYTES} bytes of JSON, has {own}");
            return Err(RegistryError::invalid(definition.id.kind.as_str(), message));
        }
        let all: usize = self.tenant(definition.organization)?.definitions.values().map(|definition| definition.bytes()).sum();
        let bytes = (all + own).saturating_sub(former);
        validate::room(bytes.saturating_sub(1), MAX_BYTES_OF_ORGANIZATION, "bytes of definitions of the organization")
    }
}
