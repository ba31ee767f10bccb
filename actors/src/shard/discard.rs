//! Removes this machine's state of a partition that another machine owns. A checkpoint from before
//! a deletion would bring the project back, since the log no longer has the events.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use headcount_common::PARTITIONS;
use headcount_domain::Fault;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Store, StoreError};

use super::partition::Partition;
use super::partition_context::PartitionContext;
use super::rebuild::Released;
use super::shard::Shard;
use crate::checkpoint_writer::{PartitionMeta, position_key, read_meta};
use crate::fault;

/// The state of a partition to remove. The partition is not opened meanwhile.
pub(crate) struct Discard {
    number: u16,
    left: Option<Released>,
    context: PartitionContext,
}

impl Shard {
    /// Begins to remove the state of a partition; `None` if the partition is here.
    pub(crate) fn discard(&mut self, number: u16) -> Option<Discard> {
        let left = self.pipeline.take_released(number)?;
        Some(Discard { number, left, context: self.pipeline.context.clone() })
    }

    /// Takes back the rest of a partition whose state could not be removed.
    pub(crate) fn take_back(&mut self, Discard { number, left, .. }: Discard) {
        if let Some(left) = left {
            self.pipeline.put_released(number, left);
        }
    }
}

impl Discard {
    /// Removes the state. Afterwards, the partition is opened empty, and filled from the archive
    /// and the log. Blocks.
    ///
    /// # Errors
    /// A part of the state may be left. The call can be repeated.
    pub(crate) fn run(&mut self) -> Result<(), Fault> {
        if let Some(left) = &mut self.left {
            left.closing.drain(..).for_each(|closing| drop(closing.join()));
            left.cancelled.wait(&*self.context.store);
        }
        for stored_as in parts_of(self.number, &self.context)? {
            clear(&*self.context.store, PartitionId(stored_as)).map_err(fault::of_store)?;
        }
        if self.context.index_dir(self.number).exists() {
            Partition::reset_index(self.number, &self.context)?;
        }
        self.left = None;
        Ok(())
    }
}

/// Returns the parts of the store with data of a partition that is not open: its own part, and the
/// parts where it was rebuilt.
fn parts_of(number: u16, context: &PartitionContext) -> Result<Vec<u16>, Fault> {
    let mut parts = Vec::new();
    for part in (number..=u16::MAX).step_by(usize::from(PARTITIONS)) {
        match read_meta::<PartitionMeta>(&*context.store, &position_key(part))? {
            Some(_) => parts.push(part),
            // Its own part may be unused while it is in another one.
            None if part == number => {}
            None => break,
        }
    }
    Ok(parts)
}

/// Removes everything from the own part of a partition that was rebuilt in another part, where its
/// data are useless. The next start rebuilds the partition in its own part. Does nothing if the
/// partition is in its own part.
///
/// # Errors
/// A part of the data may be left. The call can be repeated.
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
    // Committed even without keys, since this removes the rewritten files.
    checkpoint.commit()
}
