//! The reaction times of a node, its stop signal, and its errors.

use std::time::Duration;

use headcount_actors::{AdoptError, RemainsError};
use headcount_common::SharedLettersError;
use headcount_control::RegistryError;
use tokio::sync::watch;

use crate::agreed::LevelsError;
use crate::cells::Unanswered;
use crate::files::{FilesError, StateTiming};
use crate::lease::{LeaseError, Timing};
use crate::log::LogError;

/// The reaction times of nodes.
#[derive(Debug, Clone, Copy)]
pub struct NodeTiming {
    /// How long leases last. A node without a sign of life for this time is not live.
    pub leases: Timing,
    /// How often leases and the node's own key are renewed.
    pub renewed_every: Duration,
    /// How long the live nodes must be the same before a partition moves.
    pub calm: Duration,
    /// How long a node that is no longer live is listed before its key is removed.
    pub forgotten_after: Duration,
    /// The times at which states are published, for nodes that take partitions over.
    pub states: StateTiming,
}

impl Default for NodeTiming {
    fn default() -> Self {
        Self {
            leases: Timing::default(),
            renewed_every: Duration::from_secs(2),
            calm: Duration::from_secs(60),
            forgotten_after: Duration::from_secs(24 * 60 * 60),
            states: StateTiming::default(),
        }
    }
}

/// The reason why a node can't do something.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A lease failed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The log of a partition failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The brokers lost messages that this node had read or recorded.
    #[error("the brokers lost what they had: {0}")]
    Lost(LogError),
    /// The engine can't begin to take a partition over.
    #[error(transparent)]
    Engine(#[from] AdoptError),
    /// The data of deleted projects on this node can't be removed.
    #[error("what this node has of deleted projects can't be removed: {0}")]
    Remains(#[from] RemainsError),
    /// The archive of a partition failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The list of dead letters failed.
    #[error(transparent)]
    Letters(#[from] SharedLettersError),
    /// The state of a partition can't be opened.
    #[error("its state can't be opened: {0}")]
    Adoption(String),
    /// The engine was not opened as a member with the node's log.
    #[error("the engine is no member of the cluster")]
    NotAMember,
    /// The node has an earlier version than the cluster.
    #[error(transparent)]
    Levels(Box<LevelsError>),
    /// The changes of other nodes can't be read.
    #[error(transparent)]
    Control(#[from] RegistryError),
    /// The brokers don't answer.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

impl NodeError {
    pub(crate) fn unavailable(error: impl std::fmt::Display) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Unanswered> for NodeError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl From<LevelsError> for NodeError {
    fn from(error: LevelsError) -> Self {
        match error {
            LevelsError::Later { .. } => Self::Levels(Box::new(error)),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

/// Returns when a node is to stop.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, the node is gone, too.
    drop(stop.wait_for(|stopped| *stopped).await);
}
