//! Entries of the audit log, and their authors.

use std::collections::BTreeMap;

use headcount_common::ControlError;
use headcount_domain::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActorKind, AuditAction, AuditId, Authority, MemberId, TargetType, TokenId};

/// The actor who makes a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// The kind.
    pub kind: ActorKind,
    /// The token, if the actor holds one.
    pub token_id: Option<TokenId>,
    /// The member who holds the token.
    pub member_id: Option<MemberId>,
}

impl Actor {
    /// An actor without a token.
    pub const fn of(kind: ActorKind) -> Self {
        Self { kind, token_id: None, member_id: None }
    }
}

/// The author of a change: the actor, the time, and the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The time of the change.
    pub at: Instant,
    /// The actor.
    pub actor: Actor,
    /// The id of the request, if there is one.
    pub request_id: Option<String>,
    /// The credential that the author acts with; `None` if it can't be revoked.
    pub authority: Option<Authority>,
}

impl From<Instant> for Author {
    /// The author of a change that the program makes by itself.
    fn from(at: Instant) -> Self {
        Self { at, actor: Actor::of(ActorKind::System), request_id: None, authority: None }
    }
}

/// The target of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditTarget {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: TargetType,
    /// Its id.
    pub id: String,
}

/// The value of a field before and after a change; null for none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldChange {
    /// Before.
    pub from: Value,
    /// After.
    pub to: Value,
}

/// One change of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// The entry's id.
    pub id: AuditId,
    /// The time of the change.
    pub at: Instant,
    /// Who made it.
    pub actor: Actor,
    /// The action.
    pub action: AuditAction,
    /// The target.
    pub target: AuditTarget,
    /// The fields that changed.
    pub changes: BTreeMap<String, FieldChange>,
    /// The id of the request.
    pub request_id: Option<String>,
}

/// A change of one target, without its author.
#[derive(Debug, PartialEq)]
pub(super) struct Audited {
    pub(super) action: AuditAction,
    pub(super) target: AuditTarget,
    pub(super) changes: BTreeMap<String, FieldChange>,
}

impl Audited {
    /// Returns the entry for this change.
    pub(super) fn by(self, author: &Author) -> Result<AuditEntry, ControlError> {
        let Self { action, target, changes } = self;
        let Author { at, actor, request_id, .. } = author.clone();
        Ok(AuditEntry { id: AuditId::random()?, at, actor, action, target, changes, request_id })
    }
}

/// The entries to list.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// The maximum number of entries.
    pub limit: usize,
    /// Only entries that are older than this one.
    pub starting_after: Option<AuditId>,
    /// Only entries of this action.
    pub action: Option<AuditAction>,
    /// Only entries about the target with this id.
    pub target_id: Option<String>,
}

impl AuditQuery {
    /// Whether the query's filters select an entry. Ignores `starting_after`.
    pub(super) fn selects(&self, entry: &AuditEntry) -> bool {
        self.action.is_none_or(|action| action == entry.action) && self.target_id.as_ref().is_none_or(|id| *id == entry.target.id)
    }
}

/// A part of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// The entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// Whether older entries follow.
    pub truncated: bool,
}
