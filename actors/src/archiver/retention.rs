//! Removes events of days that a project does not keep from its archive.
//!
//! An event may go once the project's base has it: the saved state from which a rebuild goes on. So a base is written first, if the one that is there does not
//! reach far enough, and named in the list of files before a file leaves it. Each attempt may end anywhere, and the next one repeats it.

use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::archive::Archive;
use headcount_archive::error::ArchiveError;
use headcount_archive::file::FileEntry;
use headcount_archive::removal::{OldFiles, remove_files, replace_file, rewrite_file};
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_domain::time::Day;

use super::merges::Merges;
use super::sources::Sources;
use crate::checkpoint_writer::BaseSource;
use crate::fault;
use crate::partitions::partition_of;

/// How often all projects are looked at.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The pause before the next attempt, if something must be waited for.
const WAIT: Duration = Duration::from_millis(200);
/// The pause after a failure, which doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// What became of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing is left to do.
    Done,
    /// Something was done, and there may be more.
    Worked,
    /// A replay, a checkpoint or space must be waited for.
    Waits,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Retention {
    unchecked: Vec<ProjectId>,
    checked: Option<Stopwatch>,
    not_before: Option<Stopwatch>,
    failures: u32,
    /// The projects that wait, for the pass after this one.
    waiting: Vec<ProjectId>,
}

impl Retention {
    /// Has the archives of all projects looked at.
    pub(super) fn new(sources: &Sources) -> Self {
        let mut retention = Self::default();
        retention.check_all(sources);
        retention
    }

    /// Has the archives of all projects looked at.
    pub(super) fn check_all(&mut self, sources: &Sources) {
        self.unchecked = sources.sealed.catalog().projects().map(|(project, _)| project).collect();
        self.waiting.clear();
        self.checked = Some(Stopwatch::now());
    }

    /// The number of projects that have to be looked at, or wait.
    pub(super) fn pending(&self) -> u64 {
        (self.unchecked.len() + self.waiting.len()) as u64
    }

    /// Removes what can be removed of the next project. Returns whether there is more to do now.
    pub(super) fn step(&mut self, sources: &Sources, merges: &mut Merges) -> bool {
        if self.not_before.is_some_and(|at| Stopwatch::now() < at) {
            return false;
        }
        if self.checked.is_none_or(|at| at.elapsed() >= INTERVAL) {
            self.check_all(sources);
        }
        let Some(project) = self.unchecked.last().copied() else {
            self.unchecked = std::mem::take(&mut self.waiting);
            if !self.unchecked.is_empty() {
                self.not_before = Some(Stopwatch::now() + WAIT);
            }
            return false;
        };
        match remove_old(sources, project) {
            Ok(Progress::Worked) => {
                self.failures = 0;
                merges.check(project);
            }
            Ok(progress) => {
                self.unchecked.pop();
                if progress == Progress::Waits {
                    self.waiting.push(project);
                }
            }
            Err(_) if sources.is_stopping() => return false,
            Err(_) if sources.deleted.contains(project) => drop(self.unchecked.pop()),
            Err(fault) => {
                if self.failures.is_power_of_two() || self.failures == 0 {
                    tracing::warn!(%project, %fault, "events before the floor of a project could not be removed yet; they count nowhere");
                }
                self.failures += 1;
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16) - 1)).min(MAX_PAUSE);
                self.not_before = Some(Stopwatch::now() + pause);
                // The others go on.
                self.unchecked.pop();
                self.waiting.push(project);
            }
        }
        true
    }
}

/// The day before which the events of a project are removed.
fn keep_from(sources: &Sources, _: ProjectId) -> Option<Day> {
    sources.settings.policy.keep_from
}

/// Does the next thing that lets events of a project go.
fn remove_old(sources: &Sources, project: ProjectId) -> Result<Progress, Fault> {
    let Some(from) = keep_from(sources, project) else { return Ok(Progress::Done) };
    if sources.deleted.contains(project) {
        return Ok(Progress::Done);
    }
    let mut archive = match sources.existing_archive(&sources.sealed.catalog(), project) {
        None => return Ok(Progress::Done),
        Some(opened) => opened.map_err(fault::of_archive)?,
    };
    let old = OldFiles::of(archive.manifest(), from);
    // First, since it needs no space.
    if !old.whole.is_empty() {
        return remove_whole(sources, &mut archive, &old.whole);
    }
    if !sources.has_space() {
        return Ok(if old.count() == 0 { Progress::Done } else { Progress::Waits });
    }
    if let Some(last) = old.beyond_base {
        return replace_base(sources, project, &mut archive, last);
    }
    match old.mixed.first() {
        None => {
            // What an attempt left that failed.
            archive.remove_left_overs().map_err(fault::of_archive)?;
            Ok(Progress::Done)
        }
        Some(entry) => rewrite(sources, project, &mut archive, entry, from),
    }
}

/// Removes files without rows that are kept.
fn remove_whole(sources: &Sources, archive: &mut Archive, files: &[FileEntry]) -> Result<Progress, Fault> {
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(Progress::Waits) };
    remove_files(archive, files).map_err(fault::of_archive)?;
    sources.done("old files off the list");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    sources.done("old files removed");
    Ok(Progress::Worked)
}

/// Writes a base that reaches the position `last` at least.
fn replace_base(sources: &Sources, project: ProjectId, archive: &mut Archive, last: Position) -> Result<Progress, Fault> {
    let Some(stored_as) = sources.shards.stored_as(partition_of(project)) else { return Ok(Progress::Waits) };
    let snapshot = sources.removal.store.snapshot(stored_as).map_err(fault::of_store)?;
    let Some(ids) = sources.shards.known_ids(partition_of(project)) else { return Ok(Progress::Waits) };
    let is_wanted = || !sources.is_stopping() && !sources.deleted.contains(project);
    let source = BaseSource { project, snapshot: &snapshot, ids: &ids, hasher: &sources.hasher, is_wanted: &is_wanted };
    if source.position()?.is_none_or(|position| position < last) {
        sources.shards.want_checkpoints();
        return Ok(Progress::Waits);
    }
    let Some(base) = source.write(archive.dir())? else { return Ok(Progress::Waits) };
    sources.done("base written");
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(Progress::Waits) };
    archive.set_base(base).map_err(fault::of_archive)?;
    sources.done("base listed");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    Ok(Progress::Worked)
}

/// Writes a file anew without the rows of days before `from`.
fn rewrite(
    sources: &Sources,
    project: ProjectId,
    archive: &mut Archive,
    entry: &FileEntry,
    from: Day,
) -> Result<Progress, Fault> {
    let is_wanted = || !sources.is_stopping() && !sources.deleted.contains(project);
    let rewritten = match rewrite_file(archive, entry, from, sources.seal_options(), &is_wanted) {
        Err(error @ ArchiveError::Damaged { .. }) => {
            return sources.sealed.note(project, &entry.name.base(), Err(error)).map_err(fault::of_archive);
        }
        rewritten => rewritten.map_err(fault::of_archive)?,
    };
    sources.done("file rewritten");
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(Progress::Waits) };
    replace_file(archive, entry, &rewritten).map_err(fault::of_archive)?;
    sources.done("rewritten file listed");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    Ok(Progress::Worked)
}
