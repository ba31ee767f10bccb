//! The ids of identities.

use serde::{Deserialize, Serialize};

use crate::ids::{KeyHasher, OrganizationId, ProjectId, RecordKey, public_id};

/// How an event names somebody: by `user_id`, by `anonymous_id`, by a derived visitor id, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IdentityId {
    /// The `user_id` as sent. The same in all projects of an organization.
    User(Box<str>),
    /// The `anonymous_id` as sent. Known in its project only.
    Anonymous(Box<str>),
    /// A cookieless visitor of one UTC day.
    Visitor(u128),
    /// Nobody: all events without consent. Never a user, never a session.
    Nobody,
}

impl KeyHasher {
    /// The key of the record of `id`.
    #[must_use]
    pub fn identity(&self, id: &IdentityId) -> RecordKey {
        match id {
            IdentityId::User(name) => self.user(name),
            IdentityId::Anonymous(name) => self.anonymous(name),
            IdentityId::Visitor(visitor) => self.visitor(*visitor),
            IdentityId::Nobody => self.nobody(),
        }
    }
}

impl IdentityId {
    /// The id as sent; nothing for visitors and nobody.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::User(name) | Self::Anonymous(name) => name.to_string(),
            Self::Visitor(_) | Self::Nobody => String::new(),
        }
    }

    /// The `id_…` that clients see: of the organization and the user, or, for ids that only a project knows, of the project.
    #[must_use]
    pub fn public(&self, organization: OrganizationId, project: ProjectId) -> String {
        match self {
            Self::User(name) => public_id("id_", organization.0, 0, name),
            Self::Anonymous(name) => public_id("id_", project.0, 1, name),
            Self::Visitor(hash) => public_id("id_", project.0, 2, &format!("{hash:032x}")),
            Self::Nobody => public_id("id_", project.0, 3, ""),
        }
    }
}
