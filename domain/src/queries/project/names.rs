//! The names of the people and accounts of a project.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::identity::{IdentityId, IdentitySlot};
use crate::ids::RecordKey;
use crate::queries::partial::{Query, Reader};
use crate::records::Source;

/// Asks for the names of identities and companies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EntityNamesQuery {
    /// Their keys, each with whether it is a company.
    pub entities: Vec<(RecordKey, bool)>,
}

/// The name of an identity or a company, as the project knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntityName {
    /// An identity.
    Identity {
        /// Its id.
        id: IdentityId,
        /// The e-mail address that was reported last.
        email: Option<String>,
    },
    /// A company: its domain, or its key if it has none.
    Company(String),
}

impl EntityName {
    /// The text that people know it by. `None` for visitors, who have no id of their own.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Identity { id, email } => email.clone().or_else(|| Some(id.text()).filter(|text| !text.is_empty())),
            Self::Company(key) => Some(key.clone()),
        }
    }
}

impl Query for EntityNamesQuery {
    /// In the order of the entities; `None` for unknown keys.
    type Partial = Vec<Option<EntityName>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let source = reader.source;
        let mut name = |(key, is_company): &(RecordKey, bool)| {
            if *is_company {
                let company = reader.project.groups.get_to_load(*key, || source.record(*key))?;
                return Ok(company.map(|company| EntityName::Company(company.key.to_string())));
            }
            let slot = reader.project.people.get(*key, || source.record(*key))?;
            let Some(IdentitySlot::Canonical(identity)) = slot else { return Ok(None) };
            let email = identity.emails.iter().max_by_key(|(_, reported_at)| *reported_at).map(|(email, _)| email.to_string());
            Ok(Some(EntityName::Identity { id: identity.id.clone(), email }))
        };
        self.entities.iter().map(&mut name).collect()
    }
}
