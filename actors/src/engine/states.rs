//! The saved states of partitions, for other machines.

use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fault::Fault;
use headcount_domain::intake::event::Position;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogMark;

use super::handle::Engine;
use super::remains::RemainsError;
use crate::checkpoint_writer::{
    PartitionMeta, highest_key, mark_key, position_key, read_meta, saved_mark, saved_position, saved_reflected,
};
use crate::fault;
use crate::saved_state::SavedState;
use crate::shard::AskError;
use crate::shard::Shard;

const POLL: Duration = Duration::from_millis(10);
/// How long until checkpoints are asked for again: once is not enough if a round was under way.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Returns the position up to which what is saved of a partition on this machine reflects everything; 0 if nothing is. The partition need not be here.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn saved_position(&self, partition: u16) -> Result<Position, Fault> {
        let store = self.inner.damage.store().ok_or_else(|| Fault::io("the engine is closed"))?;
        let meta: Option<PartitionMeta> = read_meta(&*store, &position_key(partition))?;
        Ok(meta.unwrap_or_default().position)
    }

    /// Returns the highest position of which something is saved on this machine; 0 if nothing is.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn saved_reflected(&self, partition: u16) -> Result<Position, Fault> {
        let store = self.inner.damage.store().ok_or_else(|| Fault::io("the engine is closed"))?;
        let highest: Option<Position> = read_meta(&*store, &highest_key(partition))?;
        Ok(highest.unwrap_or_default().max(self.saved_position(partition)?))
    }

    /// Returns the mark that the log had at [`Engine::saved_reflected`], if it had one.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn saved_mark(&self, partition: u16) -> Result<Option<LogMark>, Fault> {
        let store = self.inner.damage.store().ok_or_else(|| Fault::io("the engine is closed"))?;
        // In this order: a checkpoint that is written meanwhile only has a later one.
        let mark: Option<LogMark> = read_meta(&*store, &mark_key(partition))?;
        let reflected = self.saved_reflected(partition)?;
        Ok(mark.filter(|mark| mark.position == reflected))
    }

    /// Removes what is saved on this machine of a partition that is not here. When this returns, taking it over means reading all of its events.
    ///
    /// # Errors
    /// [`RemainsError`]: a part may be left. It may be repeated.
    pub async fn discard(&self, partition: u16) -> Result<(), RemainsError> {
        self.discard_and(partition, || Ok(())).await
    }

    /// Returns the saved state of a partition that is here. `None`: it has none that can be copied, since it is being rebuilt or taken over, or is not here.
    ///
    /// Blocking; reads the disk.
    ///
    /// # Errors
    /// [`AskError`]: the state can't be read, or the shard does not answer.
    pub fn saved_state(&self, partition: u16) -> Result<Option<SavedState>, AskError> {
        let stored_as = self.questions.shards.ask_partition(partition, move |shard| Ok(shard.stored_as(partition)))?;
        let store = self.inner.damage.store().ok_or(AskError::NoAnswer)?;
        if stored_as != Some(partition) {
            return Ok(None);
        }
        let snapshot = store.snapshot(PartitionId(partition)).map_err(fault::of_store).map_err(AskError::Lost)?;
        let position = saved_position(&snapshot).map_err(AskError::Lost)?;
        // What was set aside up to there is in no state of this partition, since it was taken over.
        let reflected = saved_reflected(&snapshot).map_err(AskError::Lost)?;
        let letters = self.inner.dead.within(partition, 0..=reflected).len();
        // After the state: external ids that are ahead of it are no harm.
        let external_ids = self.questions.shards.ask_partition(partition, move |shard| shard.id_files(partition))?;
        let small = snapshot.encode_small();
        let small = small.map_err(|error| AskError::Lost(Fault::defect(format!("a state can't be encoded: {error}"))))?;
        let mark = saved_mark(&snapshot).map_err(AskError::Lost)?;
        Ok(Some(SavedState { position, mark, letters, small, tables: snapshot.files(), external_ids }))
    }

    /// Has everything saved that is applied of a partition that is here, and waits until it is.
    ///
    /// # Errors
    /// [`AskError`]: it is not here, is being rebuilt, or the shard does not answer.
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

    /// The same of several partitions, for a caller that may block, until `is_over`. A partition that another machine gets meanwhile is not waited for.
    ///
    /// # Errors
    /// [`AskError::NoAnswer`]: one is not here any more, is being rebuilt at the call, its shard does not answer, or `is_over`.
    pub(super) fn save_blocking(
        &self,
        partitions: impl IntoIterator<Item = u16>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), AskError> {
        let shards = &self.questions.shards;
        let applied = |partition: u16| Some((partition, shards.applied_until_of(partition)?));
        let applied: Option<Vec<(u16, Position)>> = partitions.into_iter().map(applied).collect();
        let mut left = applied.ok_or(AskError::NoAnswer)?;
        let mut asked = None::<Stopwatch>;
        loop {
            // Without an answer it may be saved in a moment.
            left.retain(|(partition, applied)| shards.durable_until_of(*partition).is_none_or(|until| until < *applied));
            if left.is_empty() {
                return Ok(());
            }
            if is_over() || !left.iter().all(|(partition, _)| self.owners().is_here(*partition)) {
                return Err(AskError::NoAnswer);
            }
            if asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
                shards.want_checkpoints();
                asked = Some(Stopwatch::now());
            }
            std::thread::sleep(POLL);
        }
    }
}
