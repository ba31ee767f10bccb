//! Removes the state of a project while its partition is opened, so that the project is folded
//! again from history without erased identities. For a partition in service, `crate::refolding`
//! does this beside it.

use headcount_common::partition_of;
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{OpenCheckpoint, Store};

use std::ops::ControlFlow;

use super::partition_context::PartitionContext;
use crate::checkpoint_writer::{Collect, Entries, PartitionMeta, ProjectMeta, highest_key, meta_key, position_key, read_meta};
use crate::fault;
use crate::history::Wanted;

/// The projects of a partition that are folded again.
#[derive(Debug, Clone, Default)]
pub(super) struct Refold {
    /// The projects, in the format of [`Erasures::reflects`](crate::erasures::Erasures::reflects).
    pub(super) projects: Vec<(ProjectId, u64)>,
    /// The position up to which the saved state of the other projects reflects all events.
    pub(super) until: Position,
}

/// Removes the saved states of projects that may have an erased identity. The partition is not
/// open.
///
/// From then on, the saved state of the partition has no certain position. So if the partition is
/// given up before a checkpoint has the new states, all of its events are replayed, and events of
/// the other projects are skipped.
pub(super) fn take_away(context: &PartitionContext, number: u16, stored_as: u16) -> Result<Refold, Fault> {
    let projects = context.erasures.stale(number);
    let saved: Option<PartitionMeta> = read_meta(&*context.store, &position_key(stored_as))?;
    for (project, _) in &projects {
        remove_saved(&*context.store, stored_as, *project)?;
        context.versions.remove(project);
    }
    Ok(Refold { projects, until: saved.unwrap_or_default().position })
}

/// The events to read to fold a project again, up to the position of its partition.
pub(super) fn wanted(project: ProjectId, until: Position) -> Wanted {
    Wanted { project: Some(project), until, ..Wanted::partition(partition_of(project), 0) }
}

/// Deletes every pair of a project. Returns how many there are.
pub(super) fn delete_pairs(
    store: &dyn Store,
    part: PartitionId,
    project: ProjectId,
    checkpoint: &mut dyn OpenCheckpoint,
) -> Result<u64, Fault> {
    let (mut deleted, mut count) = (Ok(()), 0);
    for prefix in Key::all_of(part, project.0) {
        let delete = &mut |key: &[u8], _: &[u8]| {
            deleted = checkpoint.delete(key);
            count += 1;
            if deleted.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        store.scan(&prefix, delete).map_err(fault::of_store)?;
        std::mem::replace(&mut deleted, Ok(())).map_err(fault::of_store)?;
    }
    Ok(count)
}

/// Removes the saved state of a project in one commit. From then on, the saved state of its
/// partition has no certain position.
pub(super) fn remove_saved(store: &dyn Store, stored_as: u16, project: ProjectId) -> Result<(), Fault> {
    let Some(saved) = read_meta::<ProjectMeta>(store, &meta_key(stored_as, project))? else { return Ok(()) };
    let part = PartitionId(stored_as);
    let mut checkpoint = store.begin(part).map_err(fault::of_store)?;
    delete_pairs(store, part, project, &mut *checkpoint)?;
    let meta: PartitionMeta = read_meta(store, &position_key(stored_as))?.unwrap_or_default();
    let highest = read_meta(store, &highest_key(stored_as))?.unwrap_or(meta.position).max(meta.position);
    let (external_ids, serial) = (meta.external_ids.saturating_sub(saved.external_ids), meta.serial + 1);
    let mut entries = Entries::default();
    let mut collect = Collect { partition: stored_as, project, entries: &mut entries };
    collect.partition_meta(PartitionMeta { position: 0, external_ids, serial })?;
    collect.highest(highest)?;
    for (key, value) in entries.iter() {
        checkpoint.put(key, value.unwrap_or_default()).map_err(fault::of_store)?;
    }
    checkpoint.commit().map_err(fault::of_store)
}
