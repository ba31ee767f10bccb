//! The ids of identities.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::ids::{KeyHasher, OrganizationId, ProjectId, RecordKey, public_id};

/// The id by which an event names its identity: a `user_id`, an `anonymous_id`, a derived visitor
/// id, or none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IdentityId {
    /// The `user_id` as sent. Shared by all projects of an organization.
    User(CompactString),
    /// The `anonymous_id` as sent. Local to its project.
    Anonymous(CompactString),
    /// A cookieless visitor of one day of the organization.
    Visitor(u128),
    /// No identity: all events without consent. Never counted as a user or a session.
    Nobody,
}

impl KeyHasher {
    /// Returns the key of the record of `id`.
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
    /// Whether the id was sent with events. An identity without such an id can't come back on
    /// another day.
    pub fn is_sent(&self) -> bool {
        matches!(self, Self::User(_) | Self::Anonymous(_))
    }

    /// Returns the `user_id` as sent, if the identity is a user.
    pub fn user_id(&self) -> Option<&str> {
        if let Self::User(name) = self { Some(name) } else { None }
    }

    /// Returns the id as sent; empty for visitors and for events without an identity.
    pub fn text(&self) -> String {
        match self {
            Self::User(name) | Self::Anonymous(name) => name.to_string(),
            Self::Visitor(_) | Self::Nobody => String::new(),
        }
    }

    /// Returns the `id_…` for clients. It depends on the organization for users, and on the project
    /// for other ids.
    pub fn public(&self, organization: OrganizationId, project: ProjectId) -> String {
        match self {
            Self::User(name) => public_id("id_", organization.0, 0, name),
            Self::Anonymous(name) => public_id("id_", project.0, 1, name),
            Self::Visitor(hash) => public_id("id_", project.0, 2, &format!("{hash:032x}")),
            Self::Nobody => public_id("id_", project.0, 3, ""),
        }
    }
}
