//! Writes the saved state of a project as its base, and lists it in place of the former one.

use headcount_archive::Archive;
use headcount_common::partition_of;
use headcount_domain::{Fault, Position, ProjectId};

use super::sources::Sources;
use crate::checkpoint_writer::BaseSource;
use crate::fault;

/// Writes a base that reaches at least the position `last`, unless fewer than `spare_bytes` would
/// stay free. Returns whether it is listed. If not, it has to wait for a replay, a checkpoint,
/// space, a backup, or the fold of the project without erased people.
pub(super) fn replace_base(
    sources: &Sources,
    project: ProjectId,
    archive: &mut Archive,
    last: Position,
    spare_bytes: u64,
) -> Result<bool, Fault> {
    let (erasures, begins) = (&sources.erasures, sources.erasures.begins(project));
    // Whether the state has an erased identity. If an identity is erased while the base is written,
    // the base has it, and may reach further than its events do.
    let organization = sources.registry.policy(project).map(|config| config.policy.organization);
    let is_beginning = || organization.is_some_and(|organization| erasures.is_beginning(organization));
    let has_erased = || is_beginning() || erasures.is_stale(project) || erasures.begins(project) != begins;
    let (is_first, first_bases) = (archive.manifest().base().is_none(), &sources.sealed.first_bases);
    // Checked first, since the base could not be listed.
    if !sources.files.may_have_bases()
        || has_erased()
        || sources.sealed.change_bases().is_none()
        || (is_first && first_bases.are_held())
    {
        return Ok(false);
    }
    let Some(stored_as) = sources.shards.stored_as(partition_of(project)) else { return Ok(false) };
    let snapshot = sources.store.snapshot(stored_as).map_err(fault::of_store)?;
    let Some(ids) = sources.shards.known_ids(partition_of(project)) else { return Ok(false) };
    let is_wanted = || !sources.is_stopping() && !sources.deleted.contains(project);
    let source = BaseSource { project, snapshot: &snapshot, ids: &ids, hasher: sources.hasher(), is_wanted: &is_wanted };
    if source.position()?.is_none_or(|position| position < last) {
        sources.shards.want_checkpoints();
        return Ok(false);
    }
    if sources.free_bytes().saturating_sub(snapshot.file_bytes()) < spare_bytes {
        return Ok(false);
    }
    let Some(base) = source.write(archive.dir(), archive.manifest().base())? else { return Ok(false) };
    sources.done("base written");
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(false) };
    // A later hold waits until the base is listed, so that its backup finds the base.
    let allowed = first_bases.allow();
    if has_erased() || (is_first && allowed.is_none()) {
        return Ok(false);
    }
    archive.set_base(base).map_err(fault::of_archive)?;
    sources.done("base listed");
    drop(allowed);
    archive.remove_left_overs().map_err(fault::of_archive)?;
    Ok(true)
}
