//! One partition's checkpoint, from the first attempt to the last.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use headcount_storage::background;
use headcount_storage::external_ids::{ExternalIdsError, Frozen, Written};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Store, StoreError};

use super::claim::Claim;
use super::entries::Entries;
use super::report::{JobOutcome, Reply};
use super::stored::saved_serial;

/// A checkpoint to be written.
pub(crate) struct Job {
    reply: Reply,
    claim: Arc<Claim>,
    /// The part of the store that holds the partition.
    stored_as: PartitionId,
    /// Its number. The store has it if the checkpoint counts.
    serial: u64,
    entries: Entries,
    is_sorted: bool,
    /// External ids that must be durable before the checkpoint counts.
    new_ids: Option<Frozen>,
    /// The table of these ids. It is written once, however often the commit is tried.
    written: Option<Written>,
    /// Whether a commit failed, and it is unknown whether it counts.
    in_doubt: bool,
}

/// The result of one attempt.
pub(super) enum Attempt {
    Saved,
    TakenBack,
    Failed(WriteError),
}

/// The reason why a checkpoint could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ids(#[from] ExternalIdsError),
    #[error("which checkpoint the store holds can't be read: {0}")]
    Serial(String),
    #[error("writing it panicked")]
    Panicked,
}

impl Job {
    /// Creates the checkpoint `serial`. Its `entries` count after `new_ids` are durable.
    pub(crate) fn new(
        reply: Reply,
        claim: Arc<Claim>,
        stored_as: PartitionId,
        serial: u64,
        entries: Entries,
        new_ids: Option<Frozen>,
    ) -> Self {
        Self { reply, claim, stored_as, serial, entries, is_sorted: false, new_ids, written: None, in_doubt: false }
    }

    pub(super) fn partition(&self) -> u16 {
        self.reply.partition
    }

    /// Tries to write it.
    pub(super) fn attempt(&mut self, store: &dyn Store) -> Attempt {
        let claim = Arc::clone(&self.claim);
        let Some(_running) = claim.begin() else { return Attempt::TakenBack };
        // A panic in the store must not end the thread that all partitions need.
        match catch_unwind(AssertUnwindSafe(|| self.write(store))) {
            Ok(Ok(())) => Attempt::Saved,
            Ok(Err(error)) => Attempt::Failed(error),
            Err(_) => Attempt::Failed(WriteError::Panicked),
        }
    }

    fn write(&mut self, store: &dyn Store) -> Result<(), WriteError> {
        // Written before the position that covers them: an index ahead of the state is harmless,
        // one behind it is not.
        if let (Some(new_ids), None) = (&self.new_ids, &self.written) {
            self.written = Some(new_ids.write()?);
        }
        if self.in_doubt && self.counts(store)? {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_sorted, true) {
            self.entries.sort();
        }
        let stored_as = self.stored_as;
        let mut checkpoint = match store.begin(stored_as) {
            Err(StoreError::Stopped { .. }) => {
                store.recover(stored_as)?;
                store.begin(stored_as)?
            }
            begun => begun?,
        };
        for (key, value) in self.entries.iter() {
            background::give_way();
            match value {
                Some(value) => checkpoint.put(key, value)?,
                None => checkpoint.delete(key)?,
            }
        }
        self.in_doubt = true;
        match checkpoint.commit() {
            Err(error) if !self.counts(store).unwrap_or(false) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Whether a failed commit counts after all. Afterwards this is no longer in doubt.
    fn counts(&mut self, store: &dyn Store) -> Result<bool, WriteError> {
        store.recover(self.stored_as)?;
        let saved = saved_serial(store, self.stored_as.number()).map_err(|fault| WriteError::Serial(fault.to_string()))?;
        self.in_doubt = false;
        Ok(saved == self.serial)
    }

    /// Reports that it is durable.
    pub(super) fn saved(self) {
        self.reply.finish(JobOutcome::Saved { ids: self.written });
    }

    /// Reports that it will be retried later.
    pub(super) fn postponed(&self, error: String) {
        self.reply.report(JobOutcome::Postponed { error });
    }

    /// Reports that it will not be written.
    pub(super) fn give_up(self) {
        self.reply.finish(JobOutcome::Dropped { ids: self.written });
    }
}
