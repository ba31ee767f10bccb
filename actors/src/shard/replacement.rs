//! Replaces the saved state of a project by a state that was computed beside it.
//!
//! Only the project waits meanwhile. First it is held, so that it does not change, and its
//! partition is saved once more. Then the saved state equals the one in memory, and no other thread
//! writes the partition: the thread with the new state writes it in one commit. At the end the
//! state in memory is dropped, even after a failure, so that the next question reads the store.

use std::sync::Arc;

use headcount_common::partition_of;
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::keyspace::PartitionId;

use super::partition::{Partition, Replacement};
use super::shard::Shard;
use crate::checkpoint_writer::{Claim, ProjectMeta, meta_key, read_meta};

/// A held project whose state can be replaced.
pub(crate) struct Replaceable {
    /// The position of its last event that counted. No later one is applied.
    pub(crate) last: Position,
    /// The part of the store with its state, and the right to write there, once the whole state is
    /// saved.
    pub(crate) saved: Option<(PartitionId, Arc<Claim>)>,
}

impl Shard {
    /// Requests that everything in a project's partition is saved soon. Returns the number of the
    /// checkpoint that will have it.
    pub(crate) fn save_soon(&mut self, project: ProjectId) -> Result<u64, Fault> {
        self.want_checkpoints();
        self.read(project, |partition| Ok(partition.checkpoint.serial + u64::from(partition.checkpoint.unsaved_from.is_some())))
    }

    /// Whether a checkpoint of a project's partition is durable.
    pub(crate) fn is_durable(&mut self, project: ProjectId, serial: u64) -> Result<bool, Fault> {
        self.read(project, |partition| Ok(partition.checkpoint.durable >= serial))
    }

    /// Holds a project, so that its state can be replaced. It takes no events and answers nothing
    /// until [`Shard::end_replacement`]. Call it until the whole state is saved. Returns `None` if
    /// the project can't be held yet.
    ///
    /// # Errors
    /// The partition is being rebuilt, or can't be read.
    pub(crate) fn begin_replacement(&mut self, project: ProjectId) -> Result<Option<Replaceable>, Fault> {
        let number = partition_of(project);
        // This also checks that the partition answers.
        let begun = self.read_partition(number, |partition| partition.begin_replacement(project))?;
        if !begun {
            return Ok(None);
        }
        if !self.pipeline.hold(project) {
            self.end_replacement(project, None);
            return Ok(None);
        }
        self.pipeline.context.health.hold(project);
        let (last, saved_as) = self.read_partition(number, |partition| partition.held(project))?;
        if self.pipeline.partitions.get(&number).is_some_and(Partition::awaits_checkpoint) {
            self.want_checkpoints();
        }
        let saved = saved_as.map(|stored_as| (stored_as, self.checkpoints.begin_replacement(number, stored_as)));
        Ok(Some(Replaceable { last, saved }))
    }

    /// Lets a project continue with its state from the store. If `reflected`, that state has none
    /// of the identities that were erased when [`Erasures::view`](crate::erasures::Erasures::view)
    /// returned this number. Does nothing if its partition was given up meanwhile: a rebuild folds
    /// it again.
    pub(crate) fn end_replacement(&mut self, project: ProjectId, reflected: Option<u64>) {
        let number = partition_of(project);
        let partition = self.pipeline.partitions.get_mut(&number);
        let Some(ended) = partition.and_then(|partition| partition.end_replacement(project)) else { return };
        self.checkpoints.end_replacement(number);
        if let Err(fault) = ended {
            // The held work waits for the rebuild.
            return self.break_partition((number, fault));
        }
        // Set first, so that no answer of the new state gets a tag of the former one.
        if let Some(begun) = reflected {
            self.pipeline.context.erasures.reflects(&[(project, begun)]);
        }
        self.pipeline.let_go(project);
        self.pipeline.context.health.let_go(project);
    }
}

impl Partition {
    /// Begins to replace the state of a project, unless another project's is being replaced.
    /// Returns whether it is being replaced now.
    fn begin_replacement(&mut self, project: ProjectId) -> Result<bool, Fault> {
        let serial = self.checkpoint.serial + 1;
        Ok(self.replacement.get_or_insert(Replacement { project, serial }).project == project)
    }

    /// The position of the last event of a held project, and the part of the store with its state
    /// once the whole state is saved.
    fn held(&mut self, project: ProjectId) -> Result<(Position, Option<PartitionId>), Fault> {
        let last = self.last(project)?;
        let is_saved = self.replacement.is_some_and(|replacement| self.checkpoint.durable >= replacement.serial);
        if !is_saved {
            // A checkpoint is due although no event came.
            self.checkpoint.note_change();
        }
        Ok((last, is_saved.then(|| self.stored_as())))
    }

    /// Whether a project is held and waits for the checkpoint with its state to begin.
    fn awaits_checkpoint(&self) -> bool {
        self.replacement.is_some_and(|replacement| self.checkpoint.serial < replacement.serial)
    }

    /// Drops the state in memory of a project whose state was replaced. Returns `None` if it was
    /// not being replaced.
    fn end_replacement(&mut self, project: ProjectId) -> Option<Result<(), Fault>> {
        let replacement = self.replacement.take_if(|replacement| replacement.project == project)?;
        if self.checkpoint.durable < replacement.serial {
            // The state in memory is the only one.
            return Some(Ok(()));
        }
        let before = self.projects.remove(project).map_or(0, |state| state.external_ids);
        self.context.versions.remove(&project);
        let saved = read_meta::<ProjectMeta>(&*self.context.store, &meta_key(self.stored_as, project));
        Some(saved.map(|saved| {
            let now = saved.unwrap_or_default().external_ids;
            if now != before {
                self.external_ids = self.external_ids.saturating_sub(before) + now;
                self.checkpoint.note_change();
            }
        }))
    }
}
