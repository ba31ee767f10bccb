//! The erased identities, for all code that reads or records events.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::Row;
use headcount_common::partition_of;
use headcount_control::{Erasure, ErasureStage, Registry};
use headcount_domain::erasure::{AfterErasure, ErasedKeys};
use headcount_domain::{Event, KeyHasher, OrganizationId, Position, ProjectId};
use parking_lot::{Mutex, RwLock};

use crate::suppressed::Suppressed;
use crate::unfinished_erasures::{ErasuresAtStage, Unfinished};

/// How long events admitted before an identity was suppressed may take.
const CHECKED_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// Returns the rest of a row of the archive after erasure; `None` if nothing is left.
pub(crate) fn erase_row(mut row: Row, keys: &ErasedKeys, hasher: &KeyHasher) -> Option<Row> {
    match keys.erase(row.position, &mut row.event, hasher) {
        AfterErasure::Unchanged | AfterErasure::WithoutId => Some(row),
        // A dead letter reported nothing, and took no external id.
        AfterErasure::Gone(remainder) => {
            let event = *remainder.filter(|_| !row.set_aside)?;
            Some(Row { position: row.position, event, currencies: None, set_aside: true })
        }
    }
}

/// Kept by events in flight, so that a job can wait for events that were checked against an earlier
/// list.
pub(crate) type Epoch = Arc<()>;

/// The list that events are checked against.
#[derive(Debug, Default)]
struct Suppression {
    suppressed: Suppressed,
    epoch: Epoch,
    /// Earlier epochs of events that were waited for too long.
    overdue: Vec<Epoch>,
}

/// Waits for some time until no event has an epoch any more. Returns whether that is so.
fn wait_for(former: &Epoch, began: Stopwatch) -> bool {
    while Arc::strong_count(former) > 1 {
        if began.elapsed() > CHECKED_TIMEOUT {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The erased identities.
#[derive(Debug)]
pub(crate) struct Erasures {
    hasher: KeyHasher,
    suppression: RwLock<Suppression>,
    /// The number of suppressed keys. It is usually 0, so that events need no hashing and no
    /// lookup.
    suppressed_count: AtomicUsize,
    unfinished: RwLock<Unfinished>,
    unfinished_count: AtomicUsize,
    /// Locked while changes of other machines are applied. Has the number of changes that the
    /// registry had applied then.
    followed: Mutex<Option<u64>>,
    /// The number of waits for admitted events that have begun.
    waits: AtomicU64,
    /// Locked while a job waits for events that were admitted before. Has the number of the last
    /// wait after which none was in flight.
    waited: Mutex<u64>,
}

impl Erasures {
    /// Creates the list of `erasures`. No state reflects the unfinished ones yet.
    pub(crate) fn new(hasher: KeyHasher, erasures: &[Erasure]) -> Self {
        let made = Self::none(hasher);
        made.replace(erasures, |_| true);
        made.unfinished.write().pending.clear();
        made
    }

    /// Opens the list of a machine, whose disk has erased identities of these projects at most.
    pub(crate) fn open(hasher: KeyHasher, registry: &Registry, with_erased: &BTreeSet<ProjectId>) -> Self {
        let erasures = Self::none(hasher);
        erasures.follow(registry);
        let mut unfinished = erasures.unfinished.write();
        unfinished.stale.retain(|project, _| with_erased.contains(project));
        unfinished.pending.clear();
        drop(unfinished);
        erasures
    }

    /// Follows the changes of the control data.
    pub(crate) fn follow(&self, registry: &Registry) {
        let mut followed = self.followed.lock();
        let applied = registry.erasures_applied();
        if *followed != Some(applied) {
            self.replace(&registry.erasures(), |project| registry.policy(project).is_some());
            *followed = Some(applied);
        }
    }

    fn replace(&self, all: &[Erasure], has_project: impl Fn(ProjectId) -> bool) {
        let suppressed = Suppressed::of(all);
        let mut suppression = self.suppression.write();
        self.suppressed_count.store(suppressed.count(), Ordering::Release);
        suppression.suppressed = suppressed;
        drop(suppression);
        let mut unfinished = self.unfinished.write();
        unfinished.replace(all, has_project);
        self.unfinished_count.store(unfinished.erasures.len(), Ordering::Release);
    }

    /// Creates an empty list.
    pub(crate) fn none(hasher: KeyHasher) -> Self {
        let (suppression, suppressed_count, unfinished, unfinished_count) = Default::default();
        let (followed, waits, waited) = Default::default();
        Self { hasher, suppression, suppressed_count, unfinished, unfinished_count, followed, waits, waited }
    }

    /// Returns the epoch that a checked event keeps until it is in the state.
    pub(crate) fn epoch(&self) -> Epoch {
        Arc::clone(&self.suppression.read().epoch)
    }

    /// Whether an event must not be recorded, because its identity was erased. If only its
    /// anonymous id was, removes that id. The event must keep an [`Erasures::epoch`] from before
    /// this call.
    pub(crate) fn suppresses(&self, organization: impl FnOnce() -> Option<OrganizationId>, event: &mut Event) -> bool {
        if self.suppressed_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.suppression.read().suppressed.has(organization(), event, &self.hasher)
    }

    /// Waits until events admitted by now are in the state. Returns `false` if that takes too long.
    /// Of many calls at once, one waits for all.
    pub(crate) fn wait_for_admitted(&self) -> bool {
        let called = self.waits.load(Ordering::Acquire);
        let Some(mut waited) = self.waited.try_lock_for(CHECKED_TIMEOUT) else { return false };
        if *waited > called {
            return true;
        }
        let wait = self.waits.fetch_add(1, Ordering::AcqRel) + 1;
        let mut epochs = {
            let mut suppression = self.suppression.write();
            let former = std::mem::take(&mut suppression.epoch);
            let mut epochs = std::mem::take(&mut suppression.overdue);
            epochs.push(former);
            epochs
        };
        let began = Stopwatch::now();
        epochs.retain(|epoch| !wait_for(epoch, began));
        let are_over = epochs.is_empty();
        // The next call waits for these, too.
        self.suppression.write().overdue.append(&mut epochs);
        if are_over {
            *waited = wait;
        }
        are_over
    }

    /// Forgets a project without remaining data, so that the counts don't grow with all projects
    /// that ever existed.
    pub(crate) fn forget(&self, project: ProjectId) {
        let mut unfinished = self.unfinished.write();
        unfinished.stale.remove(&project);
        unfinished.begins.remove(&project);
        unfinished.counted.remove(&project);
        unfinished.pending.remove(&project);
    }

    /// Whether any erasure is not done.
    pub(crate) fn has_unfinished(&self) -> bool {
        self.unfinished_count.load(Ordering::Acquire) > 0
    }

    /// The keys to erase from the history of a project.
    pub(crate) fn keys(&self, project: ProjectId) -> Option<Arc<ErasedKeys>> {
        if !self.has_unfinished() {
            return None;
        }
        self.unfinished.read().keys.get(&project).cloned()
    }

    /// Erases identities from events of history.
    pub(crate) fn filter(&self, events: &mut Vec<(Position, Box<Event>)>) {
        if !self.has_unfinished() {
            return;
        }
        let unfinished = self.unfinished.read();
        events.retain_mut(|(position, event)| {
            let Some(keys) = unfinished.keys.get(&event.project) else { return true };
            match keys.erase(*position, event, &self.hasher) {
                AfterErasure::Unchanged | AfterErasure::WithoutId => true,
                AfterErasure::Gone(Some(remainder)) => {
                    *event = remainder;
                    true
                }
                AfterErasure::Gone(None) => false,
            }
        });
    }

    /// The projects of a partition whose state may have an erased identity, in the format of
    /// [`Erasures::reflects`].
    pub(crate) fn stale(&self, partition: u16) -> Vec<(ProjectId, u64)> {
        let unfinished = self.unfinished.read();
        let stale = unfinished.stale.iter().filter(|(project, _)| partition_of(**project) == partition);
        stale.map(|(project, begun)| (*project, *begun)).collect()
    }

    /// Returns the current erasures of a project whose state may have an erased identity, with the
    /// number for [`Erasures::reflects`]; `None` if the state has none.
    pub(crate) fn view(&self, project: ProjectId) -> Option<(u64, Self)> {
        let unfinished = self.unfinished.read();
        let begun = *unfinished.stale.get(&project)?;
        let theirs = unfinished.erasures.iter().filter(|erasure| erasure.end_in(project).is_some());
        Some((begun, Self::new(self.hasher.clone(), &theirs.cloned().collect::<Vec<_>>())))
    }

    /// The number of erasures of a project that were begun.
    pub(crate) fn begins(&self, project: ProjectId) -> u64 {
        self.unfinished.read().begins.get(&project).copied().unwrap_or(0)
    }

    /// The number of erasures begun in the projects of a partition. It falls only if a project is
    /// deleted.
    pub(crate) fn begins_in(&self, partition: u16) -> u64 {
        let unfinished = self.unfinished.read();
        unfinished.begins.iter().filter(|(project, _)| partition_of(**project) == partition).map(|(_, begins)| begins).sum()
    }

    /// Whether the state of a project may have an erased identity.
    pub(crate) fn is_stale(&self, project: ProjectId) -> bool {
        self.unfinished.read().stale.contains_key(&project)
    }

    /// Records that the states of these projects have none of the identities that were erased when
    /// [`Erasures::stale`] returned these numbers.
    pub(crate) fn reflects(&self, projects: &[(ProjectId, u64)]) {
        let mut unfinished = self.unfinished.write();
        for (project, begun) in projects {
            let has_later = unfinished.stale.get(project).is_some_and(|last| last != begun);
            if has_later {
                // The state without the later erasures takes the last place.
                let pending = unfinished.pending.entry(*project).or_default();
                *pending = pending.saturating_sub(1).max(1);
            } else {
                unfinished.pending.remove(project);
                unfinished.stale.remove(project);
            }
        }
    }

    /// A number that changes when the state or the files of a project lose an identity. Versions
    /// alone may return to former values, and scans answer from files.
    pub(crate) fn reflected(&self, project: ProjectId) -> u64 {
        let unfinished = self.unfinished.read();
        let of = |changes: &HashMap<ProjectId, u64>| changes.get(&project).copied().unwrap_or(0);
        of(&unfinished.counted).saturating_sub(of(&unfinished.pending))
    }

    /// Whether more ids of an organization may be erased soon: the events recorded by now have
    /// some.
    pub(crate) fn is_beginning(&self, organization: OrganizationId) -> bool {
        self.unfinished.read().beginning.keys().any(|(of, _)| *of == organization)
    }

    /// The erasures that have only suppressed ids for some time, because the node that began them
    /// has ended.
    pub(crate) fn beginning_for(&self, time: Duration) -> Vec<(OrganizationId, u64)> {
        let unfinished = self.unfinished.read();
        unfinished.beginning.iter().filter(|(_, since)| since.elapsed() >= time).map(|(erasure, _)| *erasure).collect()
    }

    /// Records that the states of these projects may have an erased identity again, if they have an
    /// unfinished erasure.
    pub(crate) fn spoil(&self, projects: impl IntoIterator<Item = ProjectId>) {
        let mut unfinished = self.unfinished.write();
        unfinished.begun += 1;
        let begun = unfinished.begun;
        for project in projects {
            if unfinished.keys.contains_key(&project) {
                unfinished.stale.insert(project, begun);
            }
        }
    }

    /// Records that this machine has no states of these projects.
    pub(crate) fn cleaned(&self, projects: &[ProjectId]) {
        let mut unfinished = self.unfinished.write();
        for project in projects {
            unfinished.stale.remove(project);
            unfinished.pending.remove(project);
        }
    }

    /// The projects of a partition whose published data may have an erased identity.
    pub(crate) fn published_with(&self, partition: u16) -> Vec<ProjectId> {
        let unfinished = self.unfinished.read();
        let erased = unfinished.keys.keys().copied().filter(|project| partition_of(*project) == partition);
        erased.filter(|project| unfinished.numbers(*project, ErasureStage::Begun).next().is_some()).collect()
    }

    /// The projects of a partition with unfinished erasures.
    pub(crate) fn unfinished_in(&self, partition: u16) -> Vec<ProjectId> {
        let unfinished = self.unfinished.read();
        unfinished.keys.keys().copied().filter(|project| partition_of(*project) == partition).collect()
    }

    /// The erasures that are at a stage in a project.
    pub(crate) fn at_stage(&self, project: ProjectId, stage: ErasureStage) -> ErasuresAtStage {
        let unfinished = self.unfinished.read();
        let mut at_stage = ErasuresAtStage::default();
        // Includes deleted projects, so that their organization is known.
        for erasure in &unfinished.erasures {
            let Some(end) = erasure.end_in(project) else { continue };
            at_stage.organization = Some(erasure.organization);
            if end.stage == stage {
                at_stage.until = at_stage.until.max(end.until);
                at_stage.numbers.push(erasure.number);
            }
        }
        at_stage
    }

    /// Whether anything but the log may have an erased identity of any project.
    pub(crate) fn is_awaited(&self) -> bool {
        let is_begun = |erasure: &Erasure| erasure.ends.iter().any(|end| end.stage == ErasureStage::Begun);
        self.has_unfinished() && self.unfinished.read().erasures.iter().any(is_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_control::ErasureEnd;

    fn erasure(number: u64, projects: &[ProjectId]) -> Erasure {
        Erasure {
            number,
            organization: OrganizationId(1),
            users: vec![KeyHasher::new([7; 16]).user("ada")],
            others: Vec::new(),
            emails: Vec::new(),
            ends: projects.iter().map(|project| ErasureEnd::at(9, *project)).collect(),
            is_done: false,
            is_lifted: false,
        }
    }

    #[test]
    fn a_project_is_another_when_its_state_and_when_its_files_lose_an_identity() {
        let (hasher, project) = (KeyHasher::new([7; 16]), ProjectId(3));
        let erasure = |number| erasure(number, &[project]);
        let done = |number| Erasure { is_done: true, ..erasure(number) };
        let erasures = Erasures::none(hasher.clone());
        let follow = |all: &[Erasure]| erasures.replace(all, |_| true);
        let mut seen = vec![erasures.reflected(project)];
        follow(&[erasure(1)]);
        assert_eq!(erasures.reflected(project), seen[0], "the state has it");
        erasures.reflects(&erasures.stale(partition_of(project)));
        seen.push(erasures.reflected(project));
        // Another erasure begins before the first one ends.
        follow(&[erasure(1), erasure(2)]);
        follow(&[done(1), erasure(2)]);
        seen.push(erasures.reflected(project));
        erasures.reflects(&erasures.stale(partition_of(project)));
        seen.push(erasures.reflected(project));
        follow(&[done(1), done(2)]);
        seen.push(erasures.reflected(project));
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        // Another erasure begins while the state is folded without the first.
        follow(&[done(1), done(2), erasure(3)]);
        let third = erasures.stale(partition_of(project));
        follow(&[done(1), done(2), erasure(3), erasure(4)]);
        erasures.reflects(&third);
        assert!(erasures.is_stale(project));
        seen.push(erasures.reflected(project));
        erasures.reflects(&erasures.stale(partition_of(project)));
        seen.push(erasures.reflected(project));
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]) && !erasures.is_stale(project), "{seen:?}");
        let restarted = Erasures::new(hasher.clone(), &[done(1), done(2)]);
        assert_eq!(restarted.reflected(project), seen[4]);
        assert_eq!(restarted.reflected(ProjectId(4)), 0);
    }

    #[test]
    fn many_wait_together_for_the_events_admitted_before() {
        let erasures = Erasures::none(KeyHasher::new([7; 16]));
        for _ in 0..2 {
            let admitted = erasures.epoch();
            std::thread::scope(|scope| {
                let waits: Vec<_> = (0..20).map(|_| scope.spawn(|| erasures.wait_for_admitted())).collect();
                std::thread::sleep(20 * POLL);
                assert!(waits.iter().all(|wait| !wait.is_finished()), "an event is not in the state");
                drop(admitted);
                assert!(waits.into_iter().all(|wait| wait.join().unwrap()));
            });
        }
        assert!(erasures.waits.load(Ordering::Relaxed) <= 8, "{:?}", erasures.waits);
    }

    #[test]
    fn nothing_is_kept_of_a_project_that_is_gone() {
        let (gone, other) = (ProjectId(3), ProjectId(4));
        let erasures = Erasures::none(KeyHasher::new([7; 16]));
        let erasure = erasure(1, &[gone, other]);
        erasures.replace(std::slice::from_ref(&erasure), |_| true);
        erasures.forget(gone);
        assert_eq!((erasures.is_stale(gone), erasures.is_stale(other)), (false, true));
        erasures.replace(&[Erasure { is_done: true, ..erasure }], |project| project != gone);
        let unfinished = erasures.unfinished.read();
        for kept in [&unfinished.counted, &unfinished.pending] {
            assert_eq!(kept.keys().collect::<Vec<_>>(), [&other]);
        }
    }
}
