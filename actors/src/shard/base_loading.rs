//! Loads the bases of projects into a partition that will be filled from history.

use headcount_archive::{ArchiveError, BaseItem, BaseReader, Damage};
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::external_ids::Freeze;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{OpenCheckpoint, Store};

use super::partition::Partition;
use super::{base_forgetting, refold};
use crate::checkpoint_writer::{
    Collect, Entries, PartitionMeta, ProjectMeta, decode_project, key_check, lacking_rollups, meta_key, position_key, read_meta,
};
use crate::fault;
use crate::history::Bases;

/// The number of external ids collected before they are written as a table. They take 10 MiB.
const IDS_PER_TABLE: usize = 1 << 18;

impl Partition {
    /// Loads the bases of projects whose sealed events will be replayed, if the state does not
    /// reflect them yet. Leaves out people who are erased from their history. Each base becomes
    /// durable at once. No event of these projects may have been applied since the partition was
    /// opened.
    ///
    /// # Errors
    /// A base is damaged; store or index can't be read or written.
    pub(super) fn load_bases(&mut self, bases: &dyn Bases) -> Result<(), Fault> {
        for project in bases.projects(self.number, self.applied) {
            let loaded = match bases.open(project) {
                Ok(None) => Ok(()),
                Ok(Some(base)) => self.load_base(project, base, bases),
                Err(error) => Err(fault::of_archive(error)),
            };
            match loaded {
                // The project is being removed right now.
                Err(_) if self.context.deleted.contains(project) => {}
                loaded => loaded?,
            }
        }
        Ok(())
    }

    fn load_base(&mut self, project: ProjectId, mut base: BaseReader, bases: &dyn Bases) -> Result<(), Fault> {
        let header = base.header().clone();
        let name = base.name().to_owned();
        let note = |read: Result<(), ArchiveError>| bases.note(project, &name, read).map_err(fault::of_archive);
        let damaged = |reason| note(Err(ArchiveError::Damaged { file: name.clone(), reason }));
        let store = std::sync::Arc::clone(&self.context.store);
        let saved: Option<ProjectMeta> = read_meta(&*store, &meta_key(self.stored_as, project))?;
        match saved {
            Some(saved) if saved.last >= header.last => return Ok(()),
            // Another machine has owned the partition since, and wrote the base.
            Some(_) => refold::remove_saved(&*store, self.stored_as, project)?,
            None => {}
        }
        let Some(lacking) = lacking_rollups(&header.stored_types) else {
            return damaged(Damage::Format("that of another version of the program".to_owned()));
        };
        if header.key_check != key_check(&self.context.hasher) {
            return damaged(Damage::OtherFile("keys, which another hash key made,"));
        }
        let erased = bases.erased(project).map(|keys| keys.up_to(header.position)).filter(|keys| !keys.is_empty());
        let part = self.stored_as();
        remove_left_overs(&*store, part, project)?;
        let mut checkpoint = store.begin(part).map_err(fault::of_store)?;
        let mut meta = None;
        loop {
            match base.next() {
                Ok(None) => break,
                Ok(Some(BaseItem::Id(fingerprint, position))) => self.add_id(fingerprint, position)?,
                Ok(Some(BaseItem::Pair(key, value))) => {
                    let key = [&self.stored_as().prefix()[..], &key].concat();
                    if !is_of(project, &key) {
                        return damaged(Damage::Contents("it has a pair of something else".to_owned()));
                    }
                    if key == meta_key(self.stored_as, project) {
                        meta = Some(decode_project(&value)?);
                        // The meta makes the project exist, so it comes last.
                        if erased.is_some() || !lacking.is_empty() {
                            continue;
                        }
                    }
                    checkpoint.put(&key, &value).map_err(fault::of_store)?;
                }
                Err(error) => return note(Err(error)),
            }
        }
        let Some(meta) = meta.filter(|meta| meta.last == header.last) else {
            return damaged(Damage::Contents("it does not say how far it goes".to_owned()));
        };
        self.write_ids()?;
        let (meta, checkpoint) = match erased.is_some() || !lacking.is_empty() {
            false => (meta, checkpoint),
            true => {
                checkpoint.commit().map_err(fault::of_store)?;
                base_forgetting::finish(&self.context, self.stored_as, (project, meta), erased.as_ref(), &lacking)?
            }
        };
        self.commit_base(meta, checkpoint)?;
        tracing::info!(%project, position = header.position, "the base of a project is loaded");
        note(Ok(()))
    }

    /// Commits the checkpoint with the pairs of a base.
    fn commit_base(&mut self, meta: ProjectMeta, mut checkpoint: Box<dyn OpenCheckpoint>) -> Result<(), Fault> {
        let saved: PartitionMeta = read_meta(&*self.context.store, &position_key(self.stored_as))?.unwrap_or_default();
        let (external_ids, serial) = (saved.external_ids + meta.external_ids, saved.serial + 1);
        let ahead = self.ahead.max(meta.last);
        let mut entries = Entries::default();
        let mut collect = Collect { partition: self.stored_as, project: ProjectId(0), entries: &mut entries };
        collect.highest(ahead)?;
        collect.partition_meta(PartitionMeta { position: self.applied, external_ids, serial })?;
        for (key, value) in entries.iter() {
            checkpoint.put(key, value.unwrap_or_default()).map_err(fault::of_store)?;
        }
        checkpoint.commit().map_err(fault::of_store)?;
        // The saved mark belongs to another position now.
        self.checkpoint.is_unmarked |= ahead > self.ahead;
        // The saved position is before the base. A job may wait for the base's position even if no
        // event follows.
        self.checkpoint.note_change();
        (self.external_ids, self.checkpoint.serial, self.checkpoint.durable, self.ahead) = (external_ids, serial, serial, ahead);
        Ok(())
    }

    /// Adds an external id, and writes the collected ids when there are many.
    fn add_id(&mut self, fingerprint: u128, position: Position) -> Result<(), Fault> {
        let index = self.index()?;
        index.first(fingerprint, position).map_err(fault::of_index)?;
        if index.unwritten() >= IDS_PER_TABLE { self.write_ids() } else { Ok(()) }
    }

    /// Makes the added external ids durable.
    fn write_ids(&mut self) -> Result<(), Fault> {
        let index = self.index()?;
        match index.freeze() {
            Freeze::Nothing => return Ok(()),
            Freeze::Busy => return Err(Fault::defect("external ids are being written while a base is loaded")),
            Freeze::Write(frozen) => index.adopt(frozen.write().map_err(fault::of_index)?),
        }
        if let Some(merge) = index.merge() {
            index.adopt(merge.write(&std::sync::atomic::AtomicBool::new(false)).map_err(fault::of_index)?);
        }
        Ok(())
    }
}

/// Removes the pairs of an interrupted load, which did not complete a project.
fn remove_left_overs(store: &dyn Store, part: PartitionId, project: ProjectId) -> Result<(), Fault> {
    let mut checkpoint = store.begin(part).map_err(fault::of_store)?;
    match refold::delete_pairs(store, part, project, &mut *checkpoint)? {
        0 => Ok(()),
        _ => checkpoint.commit().map_err(fault::of_store),
    }
}

/// Whether a key of the store belongs to a project.
fn is_of(project: ProjectId, key: &[u8]) -> bool {
    match Key::decode(key) {
        Ok(Key::Cells { project: found, .. } | Key::Record { project: found, .. }) => found == project.0,
        _ => false,
    }
}
