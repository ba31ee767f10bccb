//! An engine that is one of several: their log is not on this machine's disk, and their partitions move between them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::intake::event::Position;
use headcount_storage::format::Incarnation;
use headcount_storage::log::{Commit, Outcome as LogOutcome, ReadLog};

use super::config::OpenError;
use super::handle::Engine;
use super::shard_client::AskError;
use crate::ingest::Ticket;
use crate::owners::Owners;
use crate::registry::{Registry, RegistryError};
use crate::shard::{Condition, Shard};

/// How long a partition that is released may take to be applied and saved.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

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
    /// Opens the organizations, projects and tokens that they share.
    pub registry: OpenRegistry,
    /// Reads the events of the partitions that this engine has.
    pub log: Arc<dyn ReadLog>,
    /// Records events of those partitions.
    pub commit: StartCommit,
    /// Says which partitions this engine has, and where the others are. It begins without any.
    pub owners: Arc<Owners>,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

/// How far a partition is that an engine takes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adoption {
    /// It is being replayed.
    UnderWay,
    /// It answers as soon as [`Owners`](crate::Owners) say that it is here.
    Done,
    /// Its state can't be opened for now. It is tried again until it is given up.
    Failed(String),
}

impl Engine {
    /// Begins to take a partition over: opens it as its last checkpoint on this machine left it, and replays the log up to the position `until`. Nobody else may
    /// write to the log meanwhile. [`Engine::adoption`] says how far it is.
    ///
    /// # Errors
    /// [`AskError::Busy`] and [`AskError::NoAnswer`]: nothing was begun.
    pub async fn adopt(&self, partition: u16, until: Position) -> Result<(), AskError> {
        self.ask_about(partition, move |shard| shard.adopt(partition, until)).await
    }

    /// Returns how far a partition is that [`Engine::adopt`] takes over.
    #[must_use]
    pub fn adoption(&self, partition: u16) -> Adoption {
        let mut unwell = self.inner.admission.health.unwell().into_iter();
        match unwell.find(|(number, ..)| *number == partition) {
            None => Adoption::Done,
            Some((_, Condition::Failed, why)) => Adoption::Failed(why),
            Some(_) => Adoption::UnderWay,
        }
    }

    /// Gives a partition up, that takes no more events: applies what is in the log and not applied, and saves it, for at most ten seconds. [`Owners`](crate::Owners) must not
    /// say any more that it is here, and nothing of it may be under way to the log.
    ///
    /// # Errors
    /// [`AskError::Busy`] and [`AskError::NoAnswer`]: the engine may still have it.
    pub async fn release(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        while !self.ask_about(partition, move |shard| shard.is_saved(partition)).await? && began.elapsed() < SAVE_TIMEOUT {
            tokio::time::sleep(POLL).await;
        }
        self.ask_about(partition, move |shard| shard.give_up(partition)).await
    }

    /// Applies what others have changed in the control data up to now, with its consequences for the partitions that are here.
    ///
    /// Blocking; asks the brokers.
    ///
    /// # Errors
    /// [`RegistryError`]: the control log can't be asked or read.
    pub fn follow(&self) -> Result<(), RegistryError> {
        if self.registry().catch_up()? > 0 {
            self.inner.quotas.replace_own(self.registry().own_quotas());
            self.apply_retentions_soon();
        }
        Ok(())
    }

    async fn ask_about<R: Send + 'static>(
        &self,
        partition: u16,
        request: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        self.inner.shards.send_to(partition, move |shard| Ok(request(shard)))?.wait().await
    }
}
