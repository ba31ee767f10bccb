//! The state that the tasks of a node share.

use std::sync::Arc;

use headcount_actors::Engine;
use headcount_actors::ingest::Ticket;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::figures::NodeFigures;
use super::hints::Hints;
use super::nodes::LiveNodes;
use super::timing::NodeTiming;
use crate::connection::Connection;
use crate::files::SharedFiles;
use crate::lease::{Holder, Leases};
use crate::letters::LetterLists;
use crate::levels::Levels;
use crate::log::{StreamCommit, StreamLog};

/// The state that the tasks of a node share.
pub(super) struct Shared {
    pub(super) connection: Connection,
    pub(super) engine: Engine,
    pub(super) log: Arc<StreamLog>,
    pub(super) commit: Arc<StreamCommit<Ticket>>,
    pub(super) files: Option<Arc<SharedFiles>>,
    pub(super) letters: Arc<LetterLists>,
    pub(super) holder: Holder,
    /// The levels of the node's program.
    pub(super) levels: Levels,
    pub(super) leases: Leases,
    pub(super) timing: NodeTiming,
    pub(super) live: watch::Receiver<Live>,
    pub(super) figures: Arc<NodeFigures>,
    /// Limits the partitions that are taken over at once.
    pub(super) turns: Semaphore,
    /// Limits the partitions that move to other nodes at once.
    pub(super) moves: Arc<Semaphore>,
    pub(super) hints: Arc<Hints>,
}

/// The live nodes, and the time since when they are the same.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) nodes: LiveNodes,
    pub(super) since: Instant,
}
