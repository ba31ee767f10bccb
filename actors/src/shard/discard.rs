//! Removes what this machine's disk has of the state of a partition that is not here: a checkpoint from before a deletion would bring the project back, since the
//! events without it leave the log.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use headcount_common::PARTITIONS;
use headcount_domain::fault::Fault;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Store, StoreError};

use super::partition::Partition;
use super::partition_context::PartitionContext;
use super::rebuild::Released;
use super::shard::Shard;
use crate::checkpoint_writer::{PartitionMeta, position_key, read_meta};
use crate::fault;

/// The state of a partition that is to be removed. Nobody opens the partition meanwhile.
pub(crate) struct Discard {
    number: u16,
    left: Option<Released>,
    context: PartitionContext,
}

impl Shard {
    /// Begins to remove the state of a partition. `None`: it is here.
    pub(crate) fn discard(&mut self, number: u16) -> Option<Discard> {
        let left = self.pipeline.take_released(number)?;
        Some(Discard { number, left, context: self.pipeline.context.clone() })
    }

    /// Takes back what is left of a partition whose state could not be removed.
    pub(crate) fn take_back(&mut self, Discard { number, left, .. }: Discard) {
        if let Some(left) = left {
            self.pipeline.put_released(number, left);
        }
    }
}

impl Discard {
    /// Removes it. When this returns, the partition is opened empty, and filled from the archive and the log. Blocks.
    ///
    /// # Errors
    /// A part of it may be left. It may be repeated.
    pub(crate) fn run(&mut self) -> Result<(), Fault> {
        if let Some(left) = &mut self.left {
            left.closing.drain(..).for_each(|closing| drop(closing.join()));
            left.cancelled.wait(&*self.context.store);
        }
        for stored_as in parts_of(self.number, &self.context)? {
            clear(&*self.context.store, PartitionId(stored_as)).map_err(fault::of_store)?;
        }
        if self.context.external_ids_dir.join(self.number.to_string()).exists() {
            Partition::reset_index(self.number, &self.context)?;
        }
        self.left = None;
        Ok(())
    }
}

/// The parts of the store that have something of a partition that is not open: its own, and those where it was rebuilt.
fn parts_of(number: u16, context: &PartitionContext) -> Result<Vec<u16>, Fault> {
    let mut parts = Vec::new();
    for part in (number..=u16::MAX).step_by(usize::from(PARTITIONS)) {
        match read_meta::<PartitionMeta>(&*context.store, &position_key(part))? {
            Some(_) => parts.push(part),
            // Its own may be unused while another one has it.
            None if part == number => {}
            None => break,
        }
    }
    Ok(parts)
}

/// Removes everything from the part of the store that a partition would have, while another part has the partition: it was rebuilt there, and what its own part has is of no use. The next start
/// rebuilds the partition in its own part. Does nothing if the partition is there.
///
/// # Errors
/// A part of it may be left. It may be repeated.
pub(crate) fn clear_unused(store: &dyn Store, stored_as: PartitionId, partition: u16) -> Result<(), StoreError> {
    let own = PartitionId(partition);
    if own == stored_as {
        return Ok(());
    }
    let mut is_empty = true;
    store.scan(&own.prefix(), &mut |_, _| {
        is_empty = false;
        ControlFlow::Break(())
    })?;
    if is_empty { Ok(()) } else { clear(store, own) }
}

/// Removes everything from a part of the store.
fn clear(store: &dyn Store, part: PartitionId) -> Result<(), StoreError> {
    let all = part.prefix().to_vec();
    store.recover(part)?;
    store.purge(part, std::slice::from_ref(&all), &AtomicBool::new(false))?;
    let mut keys = Vec::new();
    store.scan(&all, &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    let mut checkpoint = store.begin(part)?;
    keys.iter().try_for_each(|key| checkpoint.delete(key))?;
    // Also without keys: it removes the files that were rewritten.
    checkpoint.commit()
}
