//! The membership of an engine in a cluster: its log is not on this machine's disk, and its
//! partitions move between machines.

use std::path::Path;
use std::sync::Arc;

use headcount_common::{DocumentStores, Owners, SharedArchive, SharedLetters};
use headcount_control::Registry;
use headcount_storage::format::Incarnation;
use headcount_storage::log::{Commit, Outcome as LogOutcome, ReadLog};

use super::config::OpenError;
use crate::ingest::Ticket;

/// Receives the outcomes of submissions to the log.
pub type LogSink = Box<dyn Fn(Vec<LogOutcome<Ticket>>) + Send + Sync>;
/// Starts the commit of events to the log.
pub type StartCommit = Box<dyn FnOnce(LogSink) -> Arc<dyn Commit<Ticket>> + Send>;
/// Opens the registry, whose snapshots are in the data directory, before anything else is opened or
/// created there.
pub type OpenRegistry = Box<dyn FnOnce(&Path) -> Result<Registry, OpenError> + Send>;

/// The parts that an engine shares with other nodes.
pub struct Membership {
    /// The incarnation of the shared events. The data directory gets it, or has it already.
    pub incarnation: Incarnation,
    /// The incarnation of the nodes' answers, a part of every entity tag and cursor. It changes if
    /// positions may stand for other events.
    pub answers: Incarnation,
    /// Opens the shared control data.
    pub registry: OpenRegistry,
    /// Reads the events of this engine's partitions.
    pub log: Arc<dyn ReadLog>,
    /// Records events of these partitions.
    pub commit: StartCommit,
    /// Stores the archives of partitions for all nodes; without it, no event is sealed.
    pub archive: Option<Arc<dyn SharedArchive>>,
    /// Stores the dead letters for all nodes.
    pub letters: Arc<dyn SharedLetters>,
    /// Opens the documents that all have.
    pub stores: Arc<dyn DocumentStores>,
    /// The partitions of this engine, and the owners of all others. It begins without partitions.
    pub owners: Arc<Owners>,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}
