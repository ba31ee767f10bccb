//! One project's fold, from the first event to the replaced state.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::{Fault, FaultKind, KeyHasher, Position, ProjectId};
use headcount_storage::background::{self, Tempo};
use headcount_storage::store::{DiskStore, PartitionSnapshot};

use super::difference::replace;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::free_space::free_bytes;
use crate::history::{LoggedEvents, PartitionArchives, Past, SealedEvents};
use crate::recompute::{BoundedHistory, Recomputation, Replay, Scratch};
use crate::shard::{Replaceable, ShardClient};

/// A project is held after a round of catching up that had at most this many events: some
/// milliseconds.
const FEW_EVENTS: u64 = 1_000;
/// The maximum number of rounds of catching up. Each takes a part of the time of the one before,
/// unless events arrive faster than they are folded.
const MAX_ROUNDS: usize = 20;
/// How long saving the state may take, before a project is held and while it is.
const SAVE_TIMEOUT: Duration = Duration::from_secs(60);
const HOLD_TIMEOUT: Duration = Duration::from_secs(15);
/// The time before a checkpoint is requested again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);
/// The attempts to write the state, and the pause between them.
const MAX_TRIES: usize = 4;
const RETRY: Duration = Duration::from_millis(50);

/// Flags that end a fold early, if one of them is set.
#[derive(Debug, Clone)]
pub(crate) struct StopFlags(pub(crate) Vec<Arc<AtomicBool>>);

impl StopFlags {
    fn is_set(&self) -> bool {
        self.0.iter().any(|flag| flag.load(Ordering::Acquire))
    }
}

/// The sources and targets of a fold.
#[derive(Clone)]
pub(crate) struct FoldSources {
    pub(crate) data_dir: PathBuf,
    pub(crate) sealed: Arc<SealedEvents>,
    pub(crate) logged: LoggedEvents,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) deleted: Arc<DeletedProjects>,
    pub(crate) erasures: Arc<Erasures>,
    pub(crate) hasher: KeyHasher,
    pub(crate) store: Arc<DiskStore>,
    pub(crate) shards: Arc<ShardClient>,
    /// The budget for the folded records.
    pub(crate) record_bytes: usize,
    pub(crate) min_free_bytes: u64,
    pub(crate) stop: StopFlags,
    /// Called with the name of each step.
    pub(crate) probe: Option<Arc<dyn Fn(&'static str) + Send + Sync>>,
}

/// A fold on its own thread. Dropping it waits for the thread, which ends soon once `stop` is set.
#[derive(Debug)]
pub(crate) struct Folding {
    thread: Option<JoinHandle<Result<(), Fault>>>,
}

impl Folding {
    /// Begins to fold a project again.
    ///
    /// # Errors
    /// The operating system refuses the thread.
    pub(crate) fn start(sources: &FoldSources, project: ProjectId) -> io::Result<Self> {
        let fold = Fold { sources: sources.clone(), project };
        let thread = std::thread::Builder::new().name("fold-anew".into()).spawn(move || {
            // Runs without pauses, to catch up with arriving events.
            background::begin(|| Tempo::Full);
            fold.run()
        })?;
        Ok(Self { thread: Some(thread) })
    }

    /// Returns the result; `None` while it continues.
    pub(crate) fn end(&mut self) -> Option<Result<(), Fault>> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        Some(thread.join().unwrap_or_else(|_| Err(Fault::defect("the fold of a project panicked"))))
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Fold {
    sources: FoldSources,
    project: ProjectId,
}

impl Fold {
    fn run(&self) -> Result<(), Fault> {
        let Self { sources, project } = self;
        // Later erasures are left to the next fold, so that this one ends.
        let Some((begun, erasures)) = sources.erasures.view(*project) else { return Ok(()) };
        let scratch = Scratch::for_fold(&sources.data_dir, *project)?;
        let set_aside = sources.dead.count_of(self.partition());
        let until = self.last_counted()?;
        let past =
            Past::new(Arc::new(PartitionArchives::new(Arc::clone(&sources.sealed))), sources.logged.clone(), Arc::new(erasures));
        let stop = sources.stop.clone();
        let history = Arc::new(BoundedHistory::of_project(past, *project, until, Arc::new(move || stop.is_set())));
        let replay = Replay {
            history: Arc::<BoundedHistory>::clone(&history),
            hasher: &sources.hasher,
            dead: &sources.dead,
            deleted: &sources.deleted,
            record_bytes: sources.record_bytes,
        };
        let computed = Recomputation::of(&[self.partition()], replay, &scratch.dir.join("0"))?;
        let mut computed = Computed { fold: self, history, computed };
        computed.check()?;
        let until = computed.catch_up(until)?;
        self.save()?;
        computed.catch_up(until)?;
        let held = HeldProject::begin(self)?;
        computed.read_until(held.last)?;
        if sources.dead.count_of(self.partition()) != set_aside {
            // An event counts here and no longer there, or the other way round.
            return Err(Fault::io("an event was set aside while a project was folded anew"));
        }
        sources.done("state without an erased identity computed");
        held.replace(&computed.computed.snapshot(self.partition())?)?;
        sources.done("state without an erased identity saved");
        held.end(begun);
        tracing::info!(%project, "a project is folded anew without an erased identity");
        Ok(())
    }

    fn partition(&self) -> u16 {
        partition_of(self.project)
    }

    fn check_wanted(&self) -> Result<(), Fault> {
        if self.sources.stop.is_set() {
            return Err(Fault::io("the engine is closing, or the partition is given up"));
        }
        if self.sources.deleted.contains(self.project) {
            return Err(Fault::io("the project is deleted"));
        }
        if free_bytes(&self.sources.data_dir) < self.sources.min_free_bytes {
            return Err(Fault::io("the disk is nearly full: the state that is folded anew needs room beside the stored one"));
        }
        Ok(())
    }

    fn last_counted(&self) -> Result<Position, Fault> {
        self.sources.shards.last_counted(self.project).ok_or_else(unavailable)
    }

    /// Saves the partition, so that little is left to save while the project is held.
    fn save(&self) -> Result<(), Fault> {
        let (shards, began) = (&self.sources.shards, Stopwatch::now());
        let serial = shards.save_soon(self.project).ok_or_else(unavailable)?;
        let mut asked = began;
        while !shards.is_durable(self.project, serial).ok_or_else(unavailable)? {
            self.check_wanted()?;
            if began.elapsed() > SAVE_TIMEOUT {
                return Err(Fault::io("the state of a project can't be saved"));
            }
            if asked.elapsed() > ASK_AGAIN {
                // Once is not enough if a round was in progress.
                shards.save_soon(self.project).ok_or_else(unavailable)?;
                asked = Stopwatch::now();
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl FoldSources {
    fn done(&self, step: &'static str) {
        if let Some(probe) = &self.probe {
            probe(step);
        }
    }
}

fn unavailable() -> Fault {
    Fault::io("the partition of a project is not available")
}

/// The computed state.
struct Computed<'f> {
    fold: &'f Fold,
    history: Arc<BoundedHistory>,
    computed: Recomputation,
}

impl Computed<'_> {
    /// Checks that history was read to its end.
    fn check(&self) -> Result<(), Fault> {
        self.fold.check_wanted()?;
        self.computed.fault_of(self.fold.partition()).map_or(Ok(()), Err)
    }

    /// Continues to a position.
    fn read_until(&mut self, until: Position) -> Result<(), Fault> {
        self.history.read_until(self.fold.partition(), until);
        self.computed.go_on()?;
        self.check()
    }

    /// Folds the events recorded after a position, until few are left. Returns the position that it
    /// reached.
    fn catch_up(&mut self, mut until: Position) -> Result<Position, Fault> {
        for _ in 0..MAX_ROUNDS {
            let last = self.fold.last_counted()?;
            if last <= until {
                break;
            }
            let before = self.folded();
            self.read_until(last)?;
            until = last;
            if self.folded() - before <= FEW_EVENTS {
                break;
            }
        }
        Ok(until)
    }

    fn folded(&self) -> u64 {
        self.computed.events(self.fold.partition()).values().sum()
    }
}

/// A held project. Dropping it lets the project continue.
struct HeldProject<'f> {
    fold: &'f Fold,
    since: Stopwatch,
    /// The position of its last event.
    last: Position,
    is_over: bool,
}

impl<'f> HeldProject<'f> {
    /// Holds the project.
    fn begin(fold: &'f Fold) -> Result<Self, Fault> {
        let mut held = Self { fold, since: Stopwatch::now(), last: 0, is_over: false };
        loop {
            if let Some(Replaceable { last, .. }) = held.poll()? {
                held.last = last;
                return Ok(held);
            }
            held.wait()?;
        }
    }

    fn poll(&self) -> Result<Option<Replaceable>, Fault> {
        self.fold.sources.shards.begin_replacement(self.fold.project).ok_or_else(unavailable)
    }

    fn wait(&self) -> Result<(), Fault> {
        self.fold.check_wanted()?;
        if self.since.elapsed() > HOLD_TIMEOUT {
            return Err(Fault::io("the state of a project that is held can't be saved"));
        }
        std::thread::sleep(POLL);
        Ok(())
    }

    /// Replaces the stored state, once the partition is saved.
    fn replace(&self, computed: &PartitionSnapshot) -> Result<(), Fault> {
        let (stored_as, claim) = loop {
            match self.poll()? {
                // Its partition was given up meanwhile, and recorded more events of it.
                Some(Replaceable { last, .. }) if last != self.last => return Err(unavailable()),
                Some(Replaceable { saved: Some(saved), .. }) => break saved,
                _ => self.wait()?,
            }
        };
        let Some(_writing) = claim.begin() else { return Err(unavailable()) };
        let Fold { sources, project } = self.fold;
        let mut tries = 1;
        loop {
            match replace(&sources.store, stored_as, *project, computed) {
                // Another removal writes the same partition, or the disk refuses.
                Err(fault) if fault.kind == FaultKind::Io && tries < MAX_TRIES => {
                    tracing::debug!(%project, %fault, "the state that was folded anew is not saved yet");
                    self.wait()?;
                    std::thread::sleep(RETRY);
                    tries += 1;
                }
                replaced => return replaced,
            }
        }
    }

    /// Lets the project continue without the erased identities.
    fn end(mut self, begun: u64) {
        self.is_over = true;
        self.fold.sources.shards.end_replacement(self.fold.project, Some(begun));
    }
}

impl Drop for HeldProject<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.fold.sources.shards.end_replacement(self.fold.project, None);
        }
    }
}
