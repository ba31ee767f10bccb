//! Entries of the ledger of Actions. Each records a change of an organization's balance.

use headcount_common::ControlError;
use headcount_domain::Instant;
use serde::{Deserialize, Serialize};

use super::{ActionId, ActionReason, Author, BuildRunId, TokenId};

/// The maximum number of entries in the ledger of an organization. Beyond it, the oldest entries
/// are removed. Each entry has the balance after it.
pub const MAX_ACTION_ENTRIES: usize = 10_000;
/// The highest balance.
pub const MAX_ACTIONS: u64 = 1_000_000_000_000;

/// One change of an organization's balance of Actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionEntry {
    /// The entry's id.
    pub id: ActionId,
    /// The time of the change.
    pub at: Instant,
    /// The change of the balance.
    pub change: i64,
    /// The balance after it.
    pub balance: u64,
    /// The reason for the change.
    pub reason: ActionReason,
    /// The build that spent the Actions, or whose Actions were refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<BuildRunId>,
    /// The token that made the change.
    pub token_id: Option<TokenId>,
}

impl ActionEntry {
    /// Returns the entry for a change of the balance; `None` if the balance stays the same.
    pub(super) fn of(before: u64, after: u64, reason: ActionReason, author: &Author) -> Result<Option<Self>, ControlError> {
        let change = i128::from(after) - i128::from(before);
        if change == 0 {
            return Ok(None);
        }
        // A balance stored by an earlier version may be beyond the limit.
        let change = i64::try_from(change).unwrap_or(if change > 0 { i64::MAX } else { i64::MIN });
        let (id, token_id) = (ActionId::random()?, author.actor.token_id.clone());
        Ok(Some(Self { id, at: author.at, change, balance: after, reason, run_id: None, token_id }))
    }
}

/// The entries to list.
#[derive(Debug, Clone, Default)]
pub struct ActionsQuery {
    /// The maximum number of entries.
    pub limit: usize,
    /// Only entries that are older than this one.
    pub starting_after: Option<ActionId>,
}

/// A part of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionsPage {
    /// The entries, newest first.
    pub entries: Vec<ActionEntry>,
    /// Whether older entries follow.
    pub truncated: bool,
    /// The current balance.
    pub balance: u64,
}
