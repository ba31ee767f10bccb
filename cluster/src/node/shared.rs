//! What the tasks of a node share.

use std::sync::Arc;

use headcount_actors::Engine;
use headcount_actors::ingest::Ticket;
use headcount_common::Owners;
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

/// What the tasks of a node share.
pub(super) struct Shared {
    pub(super) connection: Connection,
    pub(super) engine: Engine,
    pub(super) log: Arc<StreamLog>,
    pub(super) commit: Arc<StreamCommit<Ticket>>,
    pub(super) owners: Arc<Owners>,
    pub(super) files: Option<Arc<SharedFiles>>,
    pub(super) letters: Arc<LetterLists>,
    pub(super) holder: Holder,
    /// Those of the node's version.
    pub(super) levels: Levels,
    pub(super) leases: Leases,
    pub(super) timing: NodeTiming,
    pub(super) live: watch::Receiver<Live>,
    pub(super) figures: Arc<NodeFigures>,
    /// Of those partitions that are taken over at once.
    pub(super) turns: Semaphore,
    /// Of those partitions that move to other nodes at once.
    pub(super) moves: Arc<Semaphore>,
    pub(super) hints: Arc<Hints>,
}

/// The live nodes, and since when they are the same.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) nodes: LiveNodes,
    pub(super) since: Instant,
}
