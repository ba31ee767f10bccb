//! Removes the recorded data of erased identities on the owner of their partitions (ADR 12, ADR
//! 27).
//!
//! An erasure is durable before any data are removed, and readers skip the rest. So each step can
//! be repeated, and an interrupted attempt is repeated. First the owner removes its own data and
//! the shared data: states, files and bases, the published state. A record confirms this for each
//! project. From then on, only the log has the identity. When the log has lost it, too, a second
//! record ends the erasure in the project. A new owner continues after the last record. Other
//! machines remove the data on their own disks (`engine/partitions/remains.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::{home_of, partition_of};
use headcount_control::{ErasureStage, RegistryError};
use headcount_domain::{Fault, OrganizationId, Position, ProjectId};

use super::cleaning::Cleaning;
use super::file_rewriting::SLICE;
use super::log_removal::LogRemoval;
use super::sources::Sources;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::refolding::Folding;
use crate::unfinished_erasures::ErasuresAtStage;

/// The pause before the next attempt, if it has to wait for something.
const WAIT: Duration = Duration::from_millis(50);
/// The pause after a failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long an erasure that has not begun may suppress ids. After that its node must have ended,
/// and the request was not repeated. No attempt takes as long, unless clients keep linking new ids.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(15 * 60);

/// The removal of erased identities from an archive's partitions.
#[derive(Debug, Default)]
pub(super) struct ErasureSteps {
    /// The state of each project, so that a waiting project delays no other.
    cleanings: BTreeMap<ProjectId, Cleaning>,
    /// The fold in progress. Only one runs at a time, since each has a memory budget.
    folding: Option<(ProjectId, Folding)>,
    /// The first project of the next turn, after those before it have had theirs.
    next: Option<ProjectId>,
    log: LogRemoval,
    not_before: Option<Stopwatch>,
    failures: u32,
}

impl ErasureSteps {
    /// Removes the data that can be removed now.
    pub(super) fn step(&mut self, sources: &Sources) {
        // Whoever recorded a change may have failed to follow it.
        sources.erasures.follow(&sources.registry);
        give_up_interrupted(sources);
        if self.not_before.is_some_and(|at| Stopwatch::now() < at) {
            return;
        }
        let to_clean = |partition| projects_to_clean(&sources.erasures, &sources.deleted, partition);
        let projects: BTreeSet<ProjectId> = sources.partitions.clone().flat_map(to_clean).collect();
        if projects.is_empty() {
            return;
        }
        self.cleanings.retain(|project, _| sources.registry.policy(*project).is_some());
        let is_over =
            |folding: &mut (ProjectId, Folding)| !projects.contains(&folding.0) || sources.registry.policy(folding.0).is_none();
        drop(self.folding.take_if(is_over));
        let (mut failed, began) = (None, Stopwatch::now());
        for project in in_turn(&projects, self.next.take()) {
            if sources.is_stopping() {
                return;
            }
            if began.elapsed() >= SLICE {
                self.next = Some(project);
                break;
            }
            if let Err(fault) = self.remove(sources, project, began) {
                failed = Some((project, fault));
            }
        }
        let pause = match failed {
            None => {
                self.failures = 0;
                WAIT
            }
            Some(_) if sources.is_stopping() => return,
            Some((project, fault)) => {
                if self.failures.is_power_of_two() || self.failures == 0 {
                    tracing::warn!(%project, %fault, "not everything of an erased identity could be removed yet");
                }
                self.failures += 1;
                FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16) - 1)).min(MAX_PAUSE)
            }
        };
        self.not_before = Some(Stopwatch::now() + pause);
    }

    /// Removes the erased identities of a project as far as possible, in the turn that began at
    /// `began`.
    fn remove(&mut self, sources: &Sources, project: ProjectId, began: Stopwatch) -> Result<(), Fault> {
        let erasures = &sources.erasures;
        let begun = erasures.at_stage(project, ErasureStage::Begun).numbers;
        if sources.deleted.contains(project) {
            // All of its data are removed.
            return Ok(());
        }
        if sources.registry.policy(project).is_none() {
            let logged = erasures.at_stage(project, ErasureStage::Logged);
            let numbers = [begun, logged.numbers.clone()].concat();
            progress(sources, project, &ErasuresAtStage { numbers, ..logged }, ErasureStage::Gone)?;
            return note_clean(sources, &remains_of(sources, project));
        }
        let is_here = || !remains_of(sources, project).is_empty();
        if !begun.is_empty() || erasures.is_stale(project) || is_here() {
            if self.clean(sources, project, began)? {
                self.cleanings.remove(&project);
            }
            return Ok(());
        }
        let logged = erasures.at_stage(project, ErasureStage::Logged);
        if !logged.numbers.is_empty() && remove_from_log(&mut self.log, sources, project, logged.until)? {
            record(sources, project, &logged, ErasureStage::Gone)?;
        }
        Ok(())
    }

    /// Removes the erased identities of a project from everything that this machine and others
    /// read, except the log. Returns whether that is done and recorded.
    fn clean(&mut self, sources: &Sources, project: ProjectId, began: Stopwatch) -> Result<bool, Fault> {
        let erasures = &sources.erasures;
        if self.cleanings.get(&project).is_none_or(|cleaning| cleaning.begins != erasures.begins(project)) {
            // Recorded identities were noted before, so the removal below includes them.
            let remains = remains_of(sources, project);
            erasures.follow(&sources.registry);
            self.cleanings.insert(project, Cleaning::new(project, erasures.begins(project), remains));
        }
        // Read before the state is checked: later erasures wait for the next time.
        let begun = erasures.at_stage(project, ErasureStage::Begun);
        if !self.refold(sources, project)? {
            return Ok(false);
        }
        let Some(cleaning) = self.cleanings.get_mut(&project) else { return Ok(false) };
        let has_begun = !begun.numbers.is_empty();
        // While a backup is made, nothing could be recorded.
        let is_waiting = has_begun && sources.backups.available_permits() == 0;
        if (has_begun && !cleaning.rewrite(sources, began)?) || is_waiting || !cleaning.remove_rest(sources)? {
            return Ok(false);
        }
        if has_begun {
            let is_out = remove_from_log(&mut self.log, sources, project, begun.until)?;
            // Sealing may list files that an attempt before a kill has left on this disk.
            let is_clean = !sources.logged.has_files() || (is_out && cleaning.rewrite_again(sources, began)?);
            if !is_clean {
                return Ok(false);
            }
            if !record(sources, project, &begun, if is_out { ErasureStage::Gone } else { ErasureStage::Logged })? {
                return Ok(false);
            }
        }
        note_clean(sources, &cleaning.remains)?;
        Ok(true)
    }

    /// Folds the state of a project again. Returns whether it has no erased identity.
    fn refold(&mut self, sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
        if let Some((folded, folding)) = &mut self.folding {
            if *folded != project {
                return Ok(false);
            }
            let Some(end) = folding.end() else { return Ok(false) };
            self.folding = None;
            end?;
        }
        if !sources.erasures.is_stale(project) {
            sources.done("states without an erased identity");
            return Ok(true);
        }
        let folding = Folding::start(&sources.fold_sources(), project);
        let folding = folding.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?;
        self.folding = Some((project, folding));
        Ok(false)
    }
}

/// Removes the events of a project up to a position from the log. Returns whether that is done. The
/// first attempt may already do it, except on brokers.
fn remove_from_log(log: &mut LogRemoval, sources: &Sources, project: ProjectId, until: Position) -> Result<bool, Fault> {
    Ok(sources.files.seals() && log.remove(sources, project, until)?)
}

/// The projects of a partition with remaining data of erased identities, on this machine or shared.
/// This machine may even have data of an ended erasure, which a former owner ended after this
/// machine took the partition over.
fn projects_to_clean(erasures: &Erasures, deleted: &DeletedProjects, partition: u16) -> BTreeSet<ProjectId> {
    let mut projects: BTreeSet<ProjectId> = erasures.unfinished_in(partition).into_iter().collect();
    projects.extend(deleted.with_erased_of(partition).into_keys());
    projects
}

/// Whether this machine's disk may have an erased identity of a project, as a number for
/// [`note_clean`].
fn remains_of(sources: &Sources, project: ProjectId) -> BTreeMap<ProjectId, u64> {
    let mut remains = sources.deleted.with_erased_of(partition_of(project));
    remains.retain(|of, _| *of == project);
    remains
}

fn note_clean(sources: &Sources, remains: &BTreeMap<ProjectId, u64>) -> Result<(), Fault> {
    let failed = |error| Fault::io(format!("that nothing of an erased identity is here could not be noted: {error}"));
    sources.deleted.erased_here(remains).map(drop).map_err(failed)
}

/// The projects in order, beginning with `next`.
fn in_turn(projects: &BTreeSet<ProjectId>, next: Option<ProjectId>) -> Vec<ProjectId> {
    let next = next.unwrap_or(ProjectId(0));
    projects.range(next..).chain(projects.range(..next)).copied().collect()
}

/// Gives up interrupted erasures, so that their ids are recorded again.
fn give_up_interrupted(sources: &Sources) {
    for (organization, number) in sources.erasures.beginning_for(GIVEN_UP_AFTER) {
        let projects = sources.registry.projects(organization).unwrap_or_default();
        let projects: Vec<ProjectId> = projects.iter().map(|project| project.id).collect();
        if !is_looked_after(organization, &projects, |partition| sources.partitions.contains(&partition)) {
            continue;
        }
        for erasure in sources.registry.erasures_of(organization, |erasure| erasure.number == number) {
            match sources.registry.give_erasure_up(&erasure) {
                Ok(()) => tracing::warn!(%organization, "an erasure that was cut off before it began is given up"),
                Err(error) => tracing::warn!(%organization, %error, "an erasure that was cut off can't be given up yet"),
            }
        }
        sources.erasures.follow(&sources.registry);
    }
}

/// Whether an owner of partitions should give up an organization's erasure. The home of the
/// organization does, and the owner of any of its projects, since other owners may be away. The
/// first record wins.
fn is_looked_after(organization: OrganizationId, projects: &[ProjectId], has: impl Fn(u16) -> bool) -> bool {
    has(home_of(organization)) || projects.iter().any(|project| has(partition_of(*project)))
}

/// Records that a project has reached a stage, unless a backup in progress may have the identities:
/// the control data of the backup must have the erasures. Returns whether it did.
fn record(sources: &Sources, project: ProjectId, erasures: &ErasuresAtStage, stage: ErasureStage) -> Result<bool, Fault> {
    let Ok(_no_backup) = sources.backups.try_acquire() else { return Ok(false) };
    if sources.is_stopping() {
        return Ok(false);
    }
    progress(sources, project, erasures, stage)?;
    let is_done = |of, number: &u64| sources.registry.is_erasure_done(of, *number) == Some(true);
    if erasures.organization.is_some_and(|of| erasures.numbers.iter().any(|number| is_done(of, number))) {
        tracing::info!("nothing of an erased identity is left");
    }
    sources.done(if stage == ErasureStage::Gone { "erasure finished" } else { "erasure in the log alone" });
    Ok(true)
}

/// Records the stage of erasures in a project.
fn progress(sources: &Sources, project: ProjectId, erasures: &ErasuresAtStage, stage: ErasureStage) -> Result<(), Fault> {
    let failed = |error: RegistryError| Fault::io(error.to_string());
    if let Some(organization) = erasures.organization {
        sources.registry.progress_erasures(organization, project, &erasures.numbers, stage).map_err(failed)?;
    }
    sources.erasures.follow(&sources.registry);
    Ok(())
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Instant, KeyHasher, RecordKey};

    use super::*;
    use crate::local_remains::LocalRemains;
    use headcount_control::{Erasure, ErasureEnd, Registry};

    #[test]
    fn what_this_machine_has_is_removed_also_if_a_former_owner_ended_the_erasure() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let keys = registry.initialize(Instant(1_700_000_000_000)).unwrap();
        let (organization, project) = (keys.organization_id, keys.project_id);
        let deleted = DeletedProjects::of(LocalRemains::open(dir.path(), &registry).unwrap(), &registry);
        let erasures = Erasures::open(KeyHasher::new([7; 16]), &registry, &deleted.with_erased());
        let to_clean = || {
            deleted.follow(&registry).unwrap();
            erasures.follow(&registry);
            projects_to_clean(&erasures, &deleted, partition_of(project))
        };
        assert_eq!(to_clean(), BTreeSet::new());
        let ends = vec![ErasureEnd { project, until: 9, stage: ErasureStage::Logged }];
        let (users, others) = (vec![RecordKey(7)], Vec::new());
        let erasure =
            Erasure { number: 0, organization, users, others, emails: Vec::new(), ends, is_done: false, is_lifted: false };
        let erasure = registry.add_erasure(erasure, None).unwrap();
        assert_eq!(to_clean(), BTreeSet::from([project]));
        registry.progress_erasures(organization, project, &[erasure.number], ErasureStage::Gone).unwrap();
        assert_eq!(to_clean(), BTreeSet::from([project]), "it is here still");
        deleted.erased_here(&deleted.with_erased_of(partition_of(project))).unwrap();
        assert_eq!(to_clean(), BTreeSet::new());
    }

    #[test]
    fn projects_that_had_no_turn_come_first_in_the_next_one() {
        let projects = BTreeSet::from([1, 2, 3].map(ProjectId));
        assert_eq!(in_turn(&projects, None), [1, 2, 3].map(ProjectId));
        assert_eq!(in_turn(&projects, Some(ProjectId(2))), [2, 3, 1].map(ProjectId));
        // The project was deleted meanwhile.
        assert_eq!(in_turn(&projects, Some(ProjectId(4))), [1, 2, 3].map(ProjectId));
    }

    #[test]
    fn an_interrupted_erasure_is_given_up_whichever_owners_are_away() {
        let (organization, projects) = (OrganizationId(3), [ProjectId(1), ProjectId(2)]);
        for partition in [partition_of(projects[0]), partition_of(projects[1]), home_of(organization)] {
            assert!(is_looked_after(organization, &projects, |owned| owned == partition), "{partition}");
        }
        assert!(is_looked_after(organization, &[], |owned| owned == home_of(organization)));
        assert!(!is_looked_after(organization, &projects, |owned| owned == 4));
    }
}
