//! Which events of a partition were set aside: a key of the brokers, `dead.<partition>`, which only
//! the owner changes (ADR 18).
//!
//! An owner writes its epoch into it before it reads it, so that what a former owner sets aside
//! afterwards fails: nobody counts without an event that the next owner counts. The value has
//! positions alone; the events are in the partition's log.

use std::collections::{BTreeMap, BTreeSet};

use headcount_common::{SharedLetters, SharedLettersError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::cells::{KvCells, Owned, PartitionCells, Unanswered};
use crate::connection::Connection;
use crate::record::BUCKET;

/// The most events of a partition that can be set aside: so many fit into a message with room to
/// spare.
const MAX_LETTERS: usize = 20_000;

/// The value of a partition's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LetterList {
    /// The positions of the events.
    positions: BTreeSet<u64>,
}

impl From<Unanswered> for SharedLettersError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

/// The lists of the partitions that this node has.
#[derive(Debug)]
pub(crate) struct LetterLists {
    runtime: Handle,
    keys: PartitionCells<LetterList>,
    own: Mutex<BTreeMap<u16, Owned<LetterList>>>,
}

impl LetterLists {
    /// Uses the bucket of a cluster, once it is asked.
    pub(crate) fn new(runtime: &Handle, connection: &Connection) -> Self {
        let keys = PartitionCells::new(KvCells::existing(connection, BUCKET), "dead");
        Self { runtime: runtime.clone(), keys, own: Mutex::default() }
    }

    /// Makes the owner of `epoch` the only one that may set events of a partition aside. Returns
    /// those that were.
    ///
    /// # Errors
    /// [`SharedLettersError::NotOwner`] if a later owner did so, and
    /// [`SharedLettersError::Unavailable`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<BTreeSet<u64>, SharedLettersError> {
        self.own.lock().remove(&partition);
        let taken = self.keys.take_over(partition, epoch).await?.ok_or(SharedLettersError::NotOwner(partition))?;
        let positions = taken.value.positions.clone();
        self.own.lock().insert(partition, taken);
        Ok(positions)
    }

    /// Forgets a partition that is given up.
    pub(crate) fn release(&self, partition: u16) {
        self.own.lock().remove(&partition);
    }

    /// Forgets events after `until`, where the log ended when the partition was taken over: brokers
    /// have lost them, and other events will have their positions. Returns those of `positions`
    /// that are left.
    ///
    /// # Errors
    /// As [`Self::take_over`].
    pub(crate) async fn keep_until(
        &self,
        partition: u16,
        until: u64,
        mut positions: BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, SharedLettersError> {
        let lost = positions.split_off(&(until + 1));
        if !lost.is_empty() {
            tracing::warn!(partition, count = lost.len(), "the brokers lost events that were set aside");
            let keep = |list: &mut LetterList| {
                list.positions.retain(|position| *position <= until);
                Ok(())
            };
            self.change(partition, keep).await?;
        }
        Ok(positions)
    }

    async fn change(
        &self,
        partition: u16,
        change: impl Fn(&mut LetterList) -> Result<(), SharedLettersError>,
    ) -> Result<(), SharedLettersError> {
        let known = self.own.lock().get(&partition).cloned().ok_or(SharedLettersError::NotOwner(partition))?;
        let mut own = known.clone();
        if !self.keys.change(partition, &mut own, change).await? {
            return Err(SharedLettersError::NotOwner(partition));
        }
        let mut lists = self.own.lock();
        // It may have been given up and taken over again meanwhile.
        if let Some(current) = lists.get_mut(&partition).filter(|current| current.revision == known.revision) {
            *current = own;
        }
        Ok(())
    }
}

impl SharedLetters for LetterLists {
    fn set_aside(&self, partition: u16, positions: &BTreeSet<u64>) -> Result<(), SharedLettersError> {
        let add = |list: &mut LetterList| {
            list.positions.extend(positions);
            match list.positions.len() {
                count if count > MAX_LETTERS => Err(SharedLettersError::TooMany { partition, count }),
                _ => Ok(()),
            }
        };
        self.runtime.block_on(self.change(partition, add))
    }
}
