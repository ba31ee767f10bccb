//! The saved states of partitions, for other machines.

use std::time::Duration;

use headcount_domain::{Fault, Position};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogMark;

use super::{Partitions, RemainsError};
use crate::checkpoint_writer::{
    PartitionMeta, highest_key, mark_key, position_key, read_meta, saved_mark, saved_position, saved_reflected,
};
use crate::fault;
use crate::saved_state::SavedState;
use crate::shard::AskError;
use crate::shard::Shard;

const POLL: Duration = Duration::from_millis(10);

/// How far the saved state of a partition on this machine reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedPositions {
    /// It reflects all events up to this position.
    pub position: Position,
    /// The highest position that it reflects in any part.
    pub reflected: Position,
    /// The mark of the log at `reflected`, if it had one.
    pub mark: Option<LogMark>,
}

impl Partitions {
    /// Returns how far the saved state of a partition on this machine reaches; 0 without one. The
    /// partition need not be on this machine.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn saved_positions(&self, partition: u16) -> Result<SavedPositions, Fault> {
        let store = self.damage.store().ok_or_else(|| Fault::io("the engine is closed"))?;
        // Read in this order: a checkpoint written meanwhile only has later positions.
        let mark: Option<LogMark> = read_meta(&*store, &mark_key(partition))?;
        let highest: Option<Position> = read_meta(&*store, &highest_key(partition))?;
        let meta: Option<PartitionMeta> = read_meta(&*store, &position_key(partition))?;
        let position = meta.unwrap_or_default().position;
        let reflected = highest.unwrap_or_default().max(position);
        Ok(SavedPositions { position, reflected, mark: mark.filter(|mark| mark.position == reflected) })
    }

    /// Removes the saved state of a partition of another machine. Afterwards, taking it over means
    /// reading all of its events.
    ///
    /// # Errors
    /// Returns a [`RemainsError`]: a part may be left. The call can be repeated.
    pub async fn discard(&self, partition: u16) -> Result<(), RemainsError> {
        self.discard_and(partition, || Ok(())).await
    }

    /// Returns the saved state of a partition on this machine. `None` if no state can be copied,
    /// because the partition is being rebuilt or taken over, or is not here.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the state can't be read, or the shard does not answer.
    pub fn saved_state(&self, partition: u16) -> Result<Option<SavedState>, AskError> {
        let stored_as = self.ingest.questions.shards.ask_partition(partition, move |shard| Ok(shard.stored_as(partition)))?;
        let store = self.damage.store().ok_or(AskError::NoAnswer)?;
        if stored_as != Some(partition) {
            return Ok(None);
        }
        let snapshot = store.snapshot(PartitionId(partition)).map_err(fault::of_store).map_err(AskError::Lost)?;
        let position = saved_position(&snapshot).map_err(AskError::Lost)?;
        // Dead letters up to there are in no state of this partition since its takeover.
        let reflected = saved_reflected(&snapshot).map_err(AskError::Lost)?;
        let letters = self.dead.within(partition, 0..=reflected).len();
        // After the state: external ids that are ahead of it are no harm.
        let external_ids = self.ingest.questions.shards.ask_partition(partition, move |shard| shard.id_files(partition))?;
        let small = snapshot.encode_small();
        let small = small.map_err(|error| AskError::Lost(Fault::defect(format!("a state can't be encoded: {error}"))))?;
        let mark = saved_mark(&snapshot).map_err(AskError::Lost)?;
        Ok(Some(SavedState { position, mark, letters, small, tables: snapshot.files(), external_ids }))
    }

    /// Saves all applied events of a partition on this machine, and waits for it.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the partition is not here or is being rebuilt, or the shard does
    /// not answer.
    pub async fn save(&self, partition: u16) -> Result<(), AskError> {
        let applied = self.ask_about(partition, move |shard| shard.applied_until_of(partition)).await?;
        let applied = applied.ok_or(AskError::NoAnswer)?;
        loop {
            let durable = move |shard: &mut Shard| {
                shard.want_checkpoints();
                shard.durable_until_of(partition)
            };
            match self.ask_about(partition, durable).await? {
                Some(until) if until >= applied => return Ok(()),
                Some(_) => tokio::time::sleep(POLL).await,
                None => return Err(AskError::NoAnswer),
            }
        }
    }
}
