//! An engine that is one of several: their log is not on this machine's disk, and their partitions move between them.

use std::path::Path;
use std::sync::Arc;

use headcount_common::{Owners, SharedArchive, SharedLetters};
use headcount_control::Registry;
use headcount_storage::format::Incarnation;
use headcount_storage::log::{Commit, Outcome as LogOutcome, ReadLog};

use super::config::OpenError;
use super::documents::EngineDocuments;
use crate::ingest::Ticket;

/// Receives the outcomes of submissions to the log.
pub type LogSink = Box<dyn Fn(Vec<LogOutcome<Ticket>>) + Send + Sync>;
/// Starts what submits events to the log.
pub type StartCommit = Box<dyn FnOnce(LogSink) -> Arc<dyn Commit<Ticket>> + Send>;
/// Opens the registry, whose snapshots are in the data directory, before anything else is opened or made there.
pub type OpenRegistry = Box<dyn FnOnce(&Path) -> Result<Registry, OpenError> + Send>;

/// What an engine shares with others.
pub struct Membership {
    /// Identifies the events that they share. The data directory gets it, or has it already.
    pub incarnation: Incarnation,
    /// Identifies what they answer: part of every entity tag and cursor. Another one than before if positions may stand for other events.
    pub answers: Incarnation,
    /// Opens the organizations, projects and tokens that they share.
    pub registry: OpenRegistry,
    /// Reads the events of the partitions that this engine has.
    pub log: Arc<dyn ReadLog>,
    /// Records events of those partitions.
    pub commit: StartCommit,
    /// Keeps the archives of partitions where all reach them; `None`: nothing does, and no event is sealed.
    pub archive: Option<Arc<dyn SharedArchive>>,
    /// Keeps which events were set aside where all reach it.
    pub letters: Arc<dyn SharedLetters>,
    /// Keeps the documents that all have.
    pub documents: EngineDocuments,
    /// Says which partitions this engine has, and where the others are. It begins without any.
    pub owners: Arc<Owners>,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}
