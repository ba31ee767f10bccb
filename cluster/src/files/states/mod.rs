//! The saved states of partitions, published where all nodes can reach them, so that a new owner
//! replays only later events.
//!
//! A published state is a *list* of objects that never change: the contents of the owner's last
//! checkpoint. As with archives, an owner writes the objects first, then the list, then the
//! *pointer* to the list: a key of the brokers with the owner's epoch, changed by compare-and-set.
//! So a former owner can't publish. A state is never the only copy of any data. If it is missing,
//! damaged or of another version, the new owner ignores it and replays more events.

mod list;
mod own;
mod timing;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use headcount_actors::{CopiedState, SavedState, state_version};
use headcount_domain::Position;
use headcount_storage::TableFile;
use headcount_storage::files;
use parking_lot::Mutex;
use tokio::sync::{Mutex as TaskMutex, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::bucket::{Bucket, BucketError, sha256_of};
use super::pointer::Pointers;
use super::{FilesError, Result};
use crate::connection::Connection;
use crate::log::{LogError, LogReader, sequence_of};
use list::{StateEnd, StateFile, StateList};
use own::OwnState;
pub use timing::StateTiming;

/// The number of states published at once.
const AT_ONCE: usize = 4;
/// How long a takeover waits for a state. If fetching takes longer, the events are replayed.
const FETCHED_WITHIN: Duration = Duration::from_secs(60);
/// The number of files of a state fetched at once.
const FETCHED_AT_ONCE: usize = 4;

/// The published states of the partitions of one node.
#[derive(Debug)]
pub(crate) struct SharedStates {
    bucket: Bucket,
    pointers: Pointers,
    /// The version of the state format that this program reads and writes.
    version: String,
    turns: Semaphore,
    /// The states by partition. Each is locked during its publication.
    partitions: Mutex<HashMap<u16, Arc<TaskMutex<OwnState>>>>,
}

impl SharedStates {
    /// Keeps states in the bucket of the cluster.
    ///
    /// # Errors
    /// Returns [`FilesError::Brokers`].
    pub(crate) async fn open(connection: &Connection, bucket: &Bucket) -> Result<Self> {
        let pointers = Pointers::open(connection, "state").await?;
        let (version, turns) = (state_version(), Semaphore::new(AT_ONCE));
        Ok(Self { bucket: bucket.below("states"), pointers, version, turns, partitions: Mutex::default() })
    }

    /// Takes over the state of a partition for the owner of `epoch`. From now on, no other node can
    /// publish one.
    ///
    /// # Errors
    /// Returns [`FilesError::NotOwner`] or [`FilesError::Brokers`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<()> {
        let pointer = self.pointers.take_over(partition, epoch).await?;
        let own = OwnState::open(self.bucket.below(&format!("{partition:02}")), pointer).await;
        self.partitions.lock().insert(partition, Arc::new(TaskMutex::new(own)));
        Ok(())
    }

    /// Stops publishing the state of a partition.
    pub(crate) fn release(&self, partition: u16) {
        self.partitions.lock().remove(&partition);
    }

    fn of(&self, partition: u16) -> Option<Arc<TaskMutex<OwnState>>> {
        self.partitions.lock().get(&partition).cloned()
    }

    /// Copies the published state of a partition to the directory `dir`, replacing its contents.
    /// The state on this machine reflects the position `own`. Returns `None` if the copy would not
    /// save much replay, if it reflects messages that the log of `reader` lacks, or if it can't be
    /// copied.
    pub(crate) async fn fetch(
        &self,
        (partition, reader): (u16, &LogReader),
        own: Position,
        dir: &Path,
        timing: &StateTiming,
    ) -> Option<CopiedState> {
        let state = self.of(partition)?;
        let state = state.lock().await;
        let list = state.published().filter(|list| list.state_version == self.version)?;
        if sequence_of(list.position) <= sequence_of(own) + timing.worth_fetching {
            return None;
        }
        if let Err(error) = check_end(list.end.as_ref(), reader).await {
            tracing::warn!(partition, %error, "the published state is not of this log; what it reflects is replayed");
            return None;
        }
        let fetched = timeout(FETCHED_WITHIN, fetch(&state.bucket, list, dir)).await;
        match fetched.unwrap_or_else(|_| Err(BucketError::Unavailable("it takes too long".to_owned()))) {
            Ok(copied) => Some(copied),
            Err(error) => {
                tracing::warn!(partition, %error, "the published state can't be fetched; what it reflects is replayed");
                remove_copy(dir);
                None
            }
        }
    }

    /// Whether to publish the state of a partition now, which is saved up to `saved`.
    pub(crate) async fn is_due(&self, partition: u16, saved: Position, timing: &StateTiming) -> bool {
        match self.of(partition) {
            Some(state) => state.lock().await.is_due(saved, timing),
            None => false,
        }
    }

    /// Whether another node would have to replay much, because little of the saved state is
    /// published.
    pub(crate) async fn is_behind(&self, partition: u16, saved: Position, timing: &StateTiming) -> bool {
        match self.of(partition) {
            Some(state) => sequence_of(saved) > sequence_of(state.lock().await.position()) + timing.worth_fetching,
            None => false,
        }
    }

    /// Waits for a turn, since few states are read and published at once.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Records that a state could not be read, so that the next attempt comes later.
    pub(crate) async fn put_off(&self, partition: u16) {
        if let Some(state) = self.of(partition) {
            state.lock().await.put_off();
        }
    }

    /// Returns how often the state of a partition was withdrawn. Ask before reading a state to
    /// publish.
    pub(crate) async fn withdrawals(&self, partition: u16) -> u64 {
        match self.of(partition) {
            Some(state) => state.lock().await.withdrawals,
            None => 0,
        }
    }

    /// Publishes the state of a partition, unless it was withdrawn more often than `withdrawals`.
    ///
    /// # Errors
    /// Returns a [`FilesError`]. The former state or the new one is published then.
    pub(crate) async fn publish(&self, partition: u16, saved: &SavedState, withdrawals: u64) -> Result<()> {
        let state = self.of(partition).ok_or(FilesError::NotOwner(partition))?;
        let mut state = state.lock().await;
        if state.withdrawals != withdrawals {
            return Ok(());
        }
        state.publish(&self.pointers, partition, saved, &self.version).await
    }

    /// Removes the published state of a partition, since it may contain data that must be removed
    /// everywhere.
    ///
    /// # Errors
    /// Returns a [`FilesError`]. The state may still be published, or some of its objects may
    /// exist.
    pub(crate) async fn withdraw(&self, partition: u16) -> Result<()> {
        let state = self.of(partition).ok_or(FilesError::NotOwner(partition))?;
        let mut state = state.lock().await;
        state.withdraw(&self.pointers, partition).await
    }
}

/// Checks that the log has the last message that a state reflects.
async fn check_end(end: Option<&StateEnd>, reader: &LogReader) -> Result<(), LogError> {
    match end.and_then(StateEnd::link) {
        Some(link) => match reader.confirm_link(link).await? {
            true => Ok(()),
            false => Err(LogError::unavailable("the log no longer has the message that it reflects last")),
        },
        None => Err(LogError::unavailable("its list names no message")),
    }
}

/// Returns the directory for the copy of a partition's state.
pub(crate) fn copy_dir(data_dir: &Path, partition: u16) -> PathBuf {
    data_dir.join("states").join(format!("{partition:02}"))
}

/// Removes the copies that an earlier process left.
pub(crate) fn remove_copies(data_dir: &Path) {
    remove_copy(&data_dir.join("states"));
}

/// Removes a copy that is no longer needed. If that fails, the next copy replaces it.
pub(crate) fn remove_copy(dir: &Path) {
    if dir.exists()
        && let Err(error) = files::remove_dir_all(dir)
    {
        tracing::warn!(dir = %dir.display(), %error, "a copied state is not removed yet");
    }
}

async fn fetch(bucket: &Bucket, list: &StateList, dir: &Path) -> Result<CopiedState, BucketError> {
    remove_copy(dir);
    let (tables, ids) = (CopiedState::tables_dir(dir), CopiedState::external_ids_dir(dir));
    for dir in [dir.parent().unwrap_or(dir), dir, &tables, &ids] {
        files::create_private_dir(dir)?;
    }
    let small = bucket.get(&list.small.name).await?;
    if sha256_of(&small) != list.small.sha256 {
        return Err(BucketError::Damaged(list.small.name.clone()));
    }
    let of_tables = list.tables.iter().map(|file| (file, &tables));
    let wanted = of_tables.chain(list.external_ids.iter().map(|file| (file, &ids)));
    let fetch_file = |(StateFile { id, object }, dir): (&StateFile, &PathBuf)| {
        let (bucket, object, path) = (bucket.clone(), object.clone(), dir.join(TableFile::copy_name(*id)));
        async move { bucket.get_file(&object.name, object.bytes, &object.sha256, &path).await }
    };
    stream::iter(wanted.map(fetch_file).collect::<Vec<_>>()).buffer_unordered(FETCHED_AT_ONCE).try_collect::<()>().await?;
    let numbers = |files: &[StateFile]| files.iter().map(|file| file.id).collect();
    let (tables, external_ids) = (numbers(&list.tables), numbers(&list.external_ids));
    Ok(CopiedState { dir: dir.to_owned(), letters: list.letters, small, tables, external_ids })
}
