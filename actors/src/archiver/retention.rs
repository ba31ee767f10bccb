//! Removes events of days beyond a project's retention from its archive.
//!
//! An event may be removed once the project's base has it: the saved state from which a rebuild
//! begins. So if the existing base does not reach far enough, a new one is written first, and named
//! in the list of files before a file leaves the list. An attempt may end anywhere, and the next
//! one repeats it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::{Archive, ArchiveError, FileEntry, OldFiles, remove_files, replace_file, rewrite_file};
use headcount_common::partition_of;
use headcount_domain::{Day, Fault, ProjectId};

use super::bases::replace_base;
use super::merges::Merges;
use super::old_logged_events::OldLoggedEvents;
use super::sources::Sources;
use crate::checkpoint_writer::{ProjectMeta, meta_key, read_meta};
use crate::fault;

/// How often all projects are checked.
const INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The minimum time between two checks for raised floors. A client that sets a retention decides
/// when floors rise, and each one costs a base and a sealing of the log.
const RAISED_INTERVAL: Duration = Duration::from_secs(30);
/// The pause before the next attempt, if it has to wait for something.
const WAIT: Duration = Duration::from_millis(200);
/// The same while states are being rebuilt, or a backup reads events. Both may take long.
const LONG_WAIT: Duration = Duration::from_secs(2);
/// The pause after a failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// The result of a step for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemovalProgress {
    /// Nothing is left to do.
    Done,
    /// Some work was done, and there may be more.
    Worked,
    /// The project waits for a replay, a checkpoint, a backup or space.
    Waits,
}

/// The removal of events beyond the retention.
#[derive(Debug, Default)]
pub(super) struct Retention {
    unchecked: Vec<ProjectId>,
    /// The time of the next check of all projects.
    next: Option<Stopwatch>,
    not_before: Option<Stopwatch>,
    /// The time of the next check for raised floors.
    raised_next: Option<Stopwatch>,
    failures: u32,
    /// The waiting projects, for the next pass.
    waiting: Vec<ProjectId>,
    /// Whether some of them will have to wait for long.
    waits_long: bool,
    /// The floors of projects found so far.
    floors: BTreeMap<ProjectId, Day>,
    logged: OldLoggedEvents,
    /// Whether the log has not been checked since all projects were marked.
    is_open: bool,
}

impl Retention {
    /// Begins with all projects.
    pub(super) fn new(sources: &Sources) -> Self {
        let mut retention = Self::default();
        retention.check_all(sources);
        retention
    }

    /// Marks all projects to be checked.
    pub(super) fn check_all(&mut self, sources: &Sources) {
        let sealed = sources.sealed.catalog();
        let known = sources.registry.organizations();
        let known = known.iter().filter_map(|organization| sources.registry.projects(organization.id).ok()).flatten();
        let known = known.map(|project| project.id).filter(|project| sources.has(*project));
        let all: BTreeSet<ProjectId> = known.chain(sealed.projects().map(|(id, _)| id)).collect();
        self.unchecked = all.into_iter().collect();
        self.waiting.clear();
        self.is_open = true;
        self.next = Some(Stopwatch::now() + INTERVAL);
    }

    /// Marks the projects whose floors rose to be checked.
    fn check_raised(&mut self, sources: &Sources) {
        if self.raised_next.is_some_and(|at| Stopwatch::now() < at) {
            return;
        }
        let raised = sources.floors.take_raised(sources.partitions.clone());
        if !raised.is_empty() {
            self.raised_next = Some(Stopwatch::now() + RAISED_INTERVAL);
            let known: BTreeSet<ProjectId> = self.unchecked.iter().chain(&self.waiting).copied().collect();
            self.unchecked.extend(raised.into_iter().filter(|project| !known.contains(project)));
        }
    }

    /// The number of projects to check, or waiting; at least 1 until the log was checked.
    pub(super) fn pending(&self) -> u64 {
        ((self.unchecked.len() + self.waiting.len()) as u64).max(u64::from(self.is_open))
    }

    /// Removes the events of the next project that can be removed. Returns whether there is more to
    /// do now.
    pub(super) fn step(&mut self, sources: &Sources, merges: &mut Merges) -> bool {
        self.check_raised(sources);
        if self.not_before.is_some_and(|at| Stopwatch::now() < at) {
            return false;
        }
        if self.next.is_none_or(|at| Stopwatch::now() >= at) {
            self.check_all(sources);
        }
        let Some(project) = self.unchecked.last().copied() else { return self.end_pass(sources, merges) };
        let from = keep_from(sources, project);
        match from {
            // The floor may be newer than the last check of the log.
            Ok(KeepFrom::Floor(from)) => self.is_open |= self.floors.insert(project, from) != Some(from),
            Ok(KeepFrom::Unknown) => self.waits_long = true,
            Ok(KeepFrom::Ever) | Err(_) => {}
        }
        match from.and_then(|from| remove_old(sources, project, from)) {
            Ok(RemovalProgress::Worked) => {
                self.failures = 0;
                merges.check(project);
            }
            Ok(progress) => {
                self.unchecked.pop();
                if progress == RemovalProgress::Waits {
                    self.waits_long |= sources.sealed.first_bases.are_held();
                    self.waiting.push(project);
                }
            }
            Err(_) if sources.is_stopping() => return false,
            Err(_) if sources.deleted.contains(project) => drop(self.unchecked.pop()),
            Err(fault) => {
                self.pause(project, &fault);
                // The other projects continue.
                self.unchecked.pop();
                self.waiting.push(project);
            }
        }
        true
    }

    /// Checks the log once, then begins the next pass with the waiting projects.
    fn end_pass(&mut self, sources: &Sources, merges: &mut Merges) -> bool {
        if self.is_open {
            self.is_open = false;
            if self.remove_from_log(sources, merges) {
                return true;
            }
        }
        self.unchecked = std::mem::take(&mut self.waiting);
        if !self.unchecked.is_empty() {
            let wait = Stopwatch::now() + if std::mem::take(&mut self.waits_long) { LONG_WAIT } else { WAIT };
            self.not_before = Some(self.not_before.map_or(wait, |at| at.max(wait)));
        }
        false
    }

    /// Removes events of days beyond the retention from the log. Returns whether events were sealed
    /// for it, which must be checked.
    fn remove_from_log(&mut self, sources: &Sources, merges: &mut Merges) -> bool {
        self.floors.retain(|project, _| !sources.deleted.contains(*project));
        match self.logged.remove(sources, &self.floors) {
            Ok(true) => {
                merges.check_all(sources);
                self.check_all(sources);
                return true;
            }
            Ok(false) => {}
            Err(_) if sources.is_stopping() => {}
            Err(fault) => tracing::warn!(%fault, "events before a project's floor could not be removed from the log yet"),
        }
        false
    }

    fn pause(&mut self, project: ProjectId, fault: &Fault) {
        if self.failures.is_power_of_two() || self.failures == 0 {
            tracing::warn!(%project, %fault, "events before the floor of a project could not be removed yet; they count nowhere");
        }
        self.failures += 1;
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16) - 1)).min(MAX_PAUSE);
        self.not_before = Some(Stopwatch::now() + pause);
    }
}

/// The day before which the events of a project are removed.
#[derive(Debug, Clone, Copy)]
enum KeepFrom {
    Floor(Day),
    /// All events are kept.
    Ever,
    /// The state is being rebuilt, or not saved yet.
    Unknown,
}

/// The floor of a project in the last durable checkpoint. Unknown until a checkpoint has the raised
/// floor.
fn keep_from(sources: &Sources, project: ProjectId) -> Result<KeepFrom, Fault> {
    let Some(stored_as) = sources.shards.stored_as(partition_of(project)) else { return Ok(KeepFrom::Unknown) };
    let meta: Option<ProjectMeta> = read_meta(&*sources.store, &meta_key(stored_as.number(), project))?;
    let floor = meta.and_then(|meta| meta.floor);
    if sources.floors.get(project) > floor && !sources.deleted.contains(project) {
        return Ok(KeepFrom::Unknown);
    }
    let floor = floor.max(sources.settings.policy.keep_from);
    Ok(floor.map_or(KeepFrom::Ever, KeepFrom::Floor))
}

/// Takes the next step towards removing events of a project.
fn remove_old(sources: &Sources, project: ProjectId, from: KeepFrom) -> Result<RemovalProgress, Fault> {
    if sources.deleted.contains(project) {
        return Ok(RemovalProgress::Done);
    }
    let from = match from {
        KeepFrom::Floor(from) => from,
        KeepFrom::Ever => return Ok(RemovalProgress::Done),
        KeepFrom::Unknown => return Ok(RemovalProgress::Waits),
    };
    let mut archive = match sources.existing_archive(&sources.sealed.catalog(), project) {
        None => return Ok(RemovalProgress::Done),
        Some(opened) => opened.map_err(fault::of_archive)?,
    };
    let old = OldFiles::of(archive.manifest(), from);
    // Comes first, since it needs no space.
    if !old.whole.is_empty() {
        return remove_whole(sources, &mut archive, &old.whole);
    }
    if old.count() == 0 {
        // Removes files of a failed attempt.
        archive.remove_left_overs().map_err(fault::of_archive)?;
        return Ok(RemovalProgress::Done);
    }
    if let Some(last) = old.beyond_base {
        return Ok(match replace_base(sources, project, &mut archive, last, sources.settings.min_free_bytes / 2)? {
            true => RemovalProgress::Worked,
            false => RemovalProgress::Waits,
        });
    }
    match old.mixed.first() {
        Some(entry) if has_room(sources, entry.bytes) => rewrite(sources, project, &mut archive, entry, from),
        _ => Ok(RemovalProgress::Waits),
    }
}

/// Removes files without any kept rows.
fn remove_whole(sources: &Sources, archive: &mut Archive, files: &[FileEntry]) -> Result<RemovalProgress, Fault> {
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(RemovalProgress::Waits) };
    remove_files(archive, files).map_err(fault::of_archive)?;
    sources.done("old files off the list");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    sources.done("old files removed");
    Ok(RemovalProgress::Worked)
}

/// Whether `bytes` can be written. On a nearly full disk, half of the reserved space may be used,
/// since more becomes free afterwards.
fn has_room(sources: &Sources, bytes: u64) -> bool {
    sources.free_bytes().saturating_sub(bytes) >= sources.settings.min_free_bytes / 2
}

/// Rewrites a file without the rows of days before `from`.
fn rewrite(
    sources: &Sources,
    project: ProjectId,
    archive: &mut Archive,
    entry: &FileEntry,
    from: Day,
) -> Result<RemovalProgress, Fault> {
    let is_wanted = || !sources.is_stopping() && !sources.deleted.contains(project);
    let rewritten = match rewrite_file(archive, entry, from, sources.seal_options(), &is_wanted) {
        Err(error @ ArchiveError::Damaged { .. }) => {
            return sources.sealed.note(project, &entry.name.base(), Err(error)).map_err(fault::of_archive);
        }
        rewritten => rewritten.map_err(fault::of_archive)?,
    };
    sources.done("file rewritten");
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(RemovalProgress::Waits) };
    replace_file(archive, entry, &rewritten).map_err(fault::of_archive)?;
    sources.done("rewritten file listed");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    Ok(RemovalProgress::Worked)
}
