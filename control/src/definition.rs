//! A definition: a segment, a goal, a funnel, an annotation or an alert of a project, or a channel
//! of an organization.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use headcount_common::ControlError;
use headcount_domain::{Instant, OrganizationId, ProjectId};
use serde::{Deserialize, Serialize};

use super::secret::random_key;
use super::{Actor, DefinitionKind};

/// The maximum size of a definition's JSON.
pub const MAX_DEFINITION_BYTES: usize = 16 * 1024;
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
#[error("not a valid id of a segment, goal, funnel, annotation, alert or channel")]
pub struct BadDefinitionId;

impl DefinitionId {
    pub(super) fn random(kind: DefinitionKind) -> Result<Self, ControlError> {
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

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its id, with its kind.
    pub id: DefinitionId,
    /// The organization.
    pub organization: OrganizationId,
    /// The project; `None` if it is the organization's.
    pub project: Option<ProjectId>,
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
    /// The bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
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
