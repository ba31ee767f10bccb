//! Finishes a loaded base: forgets erased people, and fills missing rollups.
//!
//! A base listed before an erasure began has the erased people. A base listed after their project
//! was folded again lacks them, and usually ends after their last event.

use headcount_domain::erasure::ErasedKeys;
use headcount_domain::fold::Forgetting;
use headcount_domain::{Fault, Project, ProjectId};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{OpenCheckpoint, Store};

use super::partition_context::PartitionContext;
use crate::checkpoint_writer::{Collect, Entries, ProjectMeta, Records, StoreSource, load_cells};
use crate::fault;

/// Finishes the saved pairs of a project that were loaded without its meta: forgets the people with
/// erased keys, and then fills rollups. Returns the new meta, and the checkpoint that completes the
/// project.
pub(super) fn finish(
    context: &PartitionContext,
    stored_as: u16,
    (id, meta): (ProjectId, ProjectMeta),
    erased: Option<&ErasedKeys>,
    lacking: &[u8],
) -> Result<(ProjectMeta, Box<dyn OpenCheckpoint>), Fault> {
    let store = &*context.store;
    let source = StoreSource { store, partition: stored_as, project: id, complete: false };
    let mut names = meta.names;
    let forgetting = erased.map(|erased| Forgetting::begin(erased, &source)).transpose()?.flatten();
    if forgetting.is_some() || !lacking.is_empty() {
        let mut project = Project::default();
        load_cells(store, stored_as, id, &mut project)?;
        project.restore_floor(meta.floor);
        project.dictionary.counts = names;
        if let Some(mut forgetting) = forgetting {
            let mut more = true;
            while more {
                more = forgetting.step(&mut project, &context.hasher, &source)?;
                save(store, stored_as, id, &mut project)?;
            }
        }
        if !lacking.is_empty() {
            project.fill_rollups(lacking, &source)?;
            save(store, stored_as, id, &mut project)?;
        }
        names = project.dictionary.counts;
    }
    let meta = ProjectMeta { names, ..meta };
    let mut entries = Entries::default();
    Collect { partition: stored_as, project: id, entries: &mut entries }.meta(meta)?;
    let mut checkpoint = store.begin(PartitionId(stored_as)).map_err(fault::of_store)?;
    put(&entries, &mut *checkpoint)?;
    Ok((meta, checkpoint))
}

/// Saves the changes of a step, and evicts everything from memory.
fn save(store: &dyn Store, stored_as: u16, id: ProjectId, project: &mut Project) -> Result<(), Fault> {
    let mut entries = Entries::default();
    let mut collect = Collect { partition: stored_as, project: id, entries: &mut entries };
    project.orphans.drain(..).for_each(|(space, key)| collect.orphan(space, key));
    project.freeze();
    let mut records = Records::up_to(usize::MAX, &mut collect);
    while project.drain_frozen(&mut records) {}
    records.end()?;
    entries.sort();
    let mut checkpoint = store.begin(PartitionId(stored_as)).map_err(fault::of_store)?;
    put(&entries, &mut *checkpoint)?;
    checkpoint.commit().map_err(fault::of_store)?;
    project.mark_durable();
    // The first pass finds everything recently used.
    for _ in 0..2 {
        project.evict(usize::MAX, usize::MAX);
    }
    Ok(())
}

fn put(entries: &Entries, checkpoint: &mut dyn OpenCheckpoint) -> Result<(), Fault> {
    for (key, value) in entries.iter() {
        let written = match value {
            Some(value) => checkpoint.put(key, value),
            None => checkpoint.delete(key),
        };
        written.map_err(fault::of_store)?;
    }
    Ok(())
}
