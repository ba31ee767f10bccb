//! Takes the state of a project away, so that it is folded anew from history without erased identities.

use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::Store;

use std::ops::ControlFlow;

use super::partition_context::PartitionContext;
use crate::checkpoint_writer::{Collect, Entries, PartitionMeta, ProjectMeta, meta_key, position_key, read_meta};
use crate::fault;
use crate::history::Wanted;
use crate::partitions::partition_of;

/// Removes the saved states of the projects of a partition that may have an erased identity. The partition is not open. Returns these projects, as
/// [`Erasures::reflects`](crate::erasures::Erasures::reflects) takes them.
pub(super) fn take_away(context: &PartitionContext, number: u16, stored_as: u16) -> Result<Vec<(ProjectId, u64)>, Fault> {
    let stale = context.erasures.stale(number);
    for (project, _) in &stale {
        remove_saved(&*context.store, stored_as, *project)?;
        context.versions.remove(project);
    }
    Ok(stale)
}

/// What is read to fold a project anew, up to where its partition stands.
pub(super) fn wanted(project: ProjectId, until: u64) -> Wanted {
    Wanted { project: Some(project), until, ..Wanted::partition(partition_of(project), 0) }
}

/// Removes what is saved of a project, in one commit.
fn remove_saved(store: &dyn Store, stored_as: u16, project: ProjectId) -> Result<(), Fault> {
    let Some(saved) = read_meta::<ProjectMeta>(store, &meta_key(stored_as, project))? else { return Ok(()) };
    let part = PartitionId(stored_as);
    let mut checkpoint = store.begin(part).map_err(fault::of_store)?;
    let mut deleted = Ok(());
    for prefix in Key::all_of(part, project.0) {
        let delete = &mut |key: &[u8], _: &[u8]| {
            deleted = checkpoint.delete(key);
            if deleted.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        store.scan(&prefix, delete).map_err(fault::of_store)?;
    }
    deleted.map_err(fault::of_store)?;
    let meta: PartitionMeta = read_meta(store, &position_key(stored_as))?.unwrap_or_default();
    let (external_ids, serial) = (meta.external_ids.saturating_sub(saved.external_ids), meta.serial + 1);
    let mut entries = Entries::default();
    let mut collect = Collect { partition: stored_as, project, entries: &mut entries };
    collect.partition_meta(PartitionMeta { external_ids, serial, ..meta })?;
    for (key, value) in entries.iter() {
        checkpoint.put(key, value.unwrap_or_default()).map_err(fault::of_store)?;
    }
    checkpoint.commit().map_err(fault::of_store)
}
