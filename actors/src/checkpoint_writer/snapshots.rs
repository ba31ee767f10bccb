//! Reads the whole saved state of a partition at one checkpoint.

use headcount_domain::cells::packed::Packed;
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::codec;
use headcount_storage::keyspace::Key;
use headcount_storage::store::PartitionSnapshot;

use super::stored::{PART_VERSION, PROJECTS, PartitionMeta, ProjectMeta, meta_version};
use crate::fault;

/// Returns the position up to which a saved partition reflects all events; 0 if it was never saved.
pub(crate) fn saved_position(snapshot: &PartitionSnapshot) -> Result<Position, Fault> {
    let mut pairs = snapshot.pairs(&Key::POSITION_GROUP).map_err(fault::of_store)?;
    let Some((_, value)) = pairs.next().map_err(fault::of_store)? else { return Ok(0) };
    let meta: PartitionMeta = codec::decode(meta_version(), &value).map_err(fault::of_stored)?;
    Ok(meta.position)
}

/// Returns the mark of the log at the highest position that a saved partition reflects, if it had
/// one.
#[cfg(feature = "cluster")]
pub(crate) fn saved_mark(snapshot: &PartitionSnapshot) -> Result<Option<headcount_storage::log::LogMark>, Fault> {
    let mut pairs = snapshot.pairs(&Key::record_of(0, PROJECTS, 2)).map_err(fault::of_store)?;
    let Some((_, value)) = pairs.next().map_err(fault::of_store)? else { return Ok(None) };
    let mark: headcount_storage::log::LogMark = codec::decode(meta_version(), &value).map_err(fault::of_stored)?;
    let reflected = saved_reflected(snapshot)?;
    Ok(Some(mark).filter(|mark| mark.position == reflected))
}

/// Returns the highest position that a saved partition reflects in part. For some projects, that is
/// beyond the partition's position.
pub(crate) fn saved_reflected(snapshot: &PartitionSnapshot) -> Result<Position, Fault> {
    let mut pairs = snapshot.pairs(&Key::record_of(0, PROJECTS, 1)).map_err(fault::of_store)?;
    let highest = match pairs.next().map_err(fault::of_store)? {
        Some((_, value)) => codec::decode(meta_version(), &value).map_err(fault::of_stored)?,
        None => 0,
    };
    Ok(saved_position(snapshot)?.max(highest))
}

/// Returns the saved projects of a partition, with their positions.
pub(crate) fn saved_projects(snapshot: &PartitionSnapshot) -> Result<Vec<(ProjectId, ProjectMeta)>, Fault> {
    let (mut metas, mut from) = (Vec::new(), Some(0));
    while let Some(least) = from {
        let mut pairs = snapshot.pairs_from(&Key::RECORD_GROUP, &Key::records_from(least)).map_err(fault::of_store)?;
        let Some((key, _)) = pairs.next().map_err(fault::of_store)? else { break };
        let Ok(Key::Record { project, .. }) = Key::decode(&key) else {
            return Err(Fault::damaged_store("a key among the records is not that of a record"));
        };
        metas.extend(saved_meta(snapshot, ProjectId(project))?.map(|meta| (ProjectId(project), meta)));
        from = project.checked_add(1);
    }
    Ok(metas)
}

/// Returns the position of a saved project; `None` if it is not saved.
pub(crate) fn saved_meta(snapshot: &PartitionSnapshot, project: ProjectId) -> Result<Option<ProjectMeta>, Fault> {
    let mut pairs = snapshot.pairs(&Key::record_of(project.0, PROJECTS, 0)).map_err(fault::of_store)?;
    pairs.next().map_err(fault::of_store)?.map(|(_, value)| decode_project(&value)).transpose()
}

/// Decodes the position of a project.
pub(crate) fn decode_project(value: &[u8]) -> Result<ProjectMeta, Fault> {
    codec::decode(meta_version(), value).map_err(fault::of_stored)
}

/// Decodes a part of the rows of a rollup.
pub(crate) fn decode_part(value: &[u8]) -> Result<Packed, Fault> {
    codec::decode(PART_VERSION, value).map_err(fault::of_stored)
}

/// Whether a record is the meta of a project.
pub(crate) fn is_project_meta(space: u8, id: u128) -> bool {
    space == PROJECTS && id == 0
}

/// Whether a record belongs to the whole partition.
pub(crate) fn is_of_partition(project: u64, space: u8) -> bool {
    project == 0 && space == PROJECTS
}
