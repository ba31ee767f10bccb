//! The thread that seals and merges.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::intake::event::Position;
use headcount_storage::background::{self, Tempo};
use parking_lot::Mutex;

use super::damage::DamageCheck;
use super::deletions::Deletions;
use super::due::{Oldest, can_resume, least_due};
use super::erasures::ErasureSteps;
use super::error::SealingError;
use super::merges::Merges;
use super::resting::Resting;
use super::retention::Retention;
use super::sealing::{Sealed, seal, seal_all};
use super::sources::Sources;

const TICK: Duration = Duration::from_secs(1);
/// While an identity is being erased, which somebody waits for.
const ERASURE_TICK: Duration = Duration::from_millis(50);
/// The pause after a failure, which doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// How often all archives are looked at for merges: a month may be over.
const MERGE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How often damaged files, and the lists of projects that wait, are checked again.
const DAMAGE_INTERVAL: Duration = Duration::from_secs(60);

/// How many events may wait to be sealed, at least, before sealing is not to fall behind any further. A checkpoint has a million at most.
const STEADY_FROM_EVENTS: u64 = 2_000_000;
/// How many may wait, at least, before sealing no longer leaves the processors to others.
const FULL_FROM_EVENTS: u64 = 3_000_000;

/// Figures about the archive.
#[derive(Debug, Default)]
pub(crate) struct ArchiveFigures {
    /// The number of files.
    pub(crate) files: AtomicU64,
    /// Their bytes.
    pub(crate) bytes: AtomicU64,
    /// The age of the oldest unsealed event in milliseconds.
    pub(crate) lag_ms: AtomicU64,
    /// The number of projects whose events wait in the log, because their list of files can't be used.
    pub(crate) waiting_projects: AtomicU64,
    /// The number of projects that may have events of days that they no longer keep.
    pub(crate) retention_pending: AtomicU64,
}

enum ArchiverRequest {
    /// Seal everything.
    Seal(Sender<Result<Sealed, SealingError>>),
    /// Merge the tables of all partitions, and say whether nothing is left to merge.
    MergeTables(Sender<bool>),
}

/// The handle of the thread.
pub(crate) struct Archiver {
    requests: Mutex<Option<Sender<ArchiverRequest>>>,
    /// How many wait for an answer.
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    figures: Arc<ArchiveFigures>,
}

impl Archiver {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refuses it.
    pub(crate) fn spawn(sources: Sources) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let (requests, received) = channel();
        let figures = Arc::<ArchiveFigures>::default();
        let stop = Arc::clone(&sources.stop);
        let asked = Arc::<AtomicUsize>::default();
        let work = ArchiveWork {
            asked: Arc::clone(&asked),
            oldest: Oldest::default(),
            oldest_waiting: Oldest::default(),
            can_resume: false,
            merges: Merges::default(),
            damage: DamageCheck::new(&sources),
            deletions: Deletions::default(),
            erasures: ErasureSteps::default(),
            resting: Resting::default(),
            retention: Retention::new(&sources),
            checked_damage: Stopwatch::now(),
            checked_merges: None,
            not_before: None,
            failures: 0,
            figures: Arc::clone(&figures),
            sources,
        };
        work.note_retention();
        let thread = std::thread::Builder::new().name("archive".into()).spawn(move || work.run(&received))?;
        Ok((Arc::new(Self { requests: Mutex::new(Some(requests)), asked, stop, figures }), thread))
    }

    /// Seals everything that was recorded before the call. Blocks.
    ///
    /// # Errors
    /// [`SealingError`].
    pub(crate) fn seal_all(&self) -> Result<Sealed, SealingError> {
        self.ask(ArchiverRequest::Seal).unwrap_or(Err(SealingError::NoAnswer))
    }

    /// Merges the sorted files of all partitions now, without waiting until they are at rest. Blocks. Returns `false` if some could not be merged: they are
    /// once they are at rest.
    pub(crate) fn merge_tables(&self) -> bool {
        self.ask(ArchiverRequest::MergeTables).unwrap_or(false)
    }

    /// `None`: the thread has ended.
    fn ask<R>(&self, request: impl FnOnce(Sender<R>) -> ArchiverRequest) -> Option<R> {
        let (reply, answer) = channel();
        let requests = self.requests.lock().clone();
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = requests.and_then(|requests| requests.send(request(reply)).ok()).and_then(|()| answer.recv().ok());
        self.asked.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// The figures.
    pub(crate) fn figures(&self) -> &ArchiveFigures {
        &self.figures
    }

    /// Has the thread end soon. What it is writing is removed, and written again after the next start.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.requests.lock().take();
    }
}

/// How fast events are sealed that nobody waits for, if `waiting` of them are to be sealed, and sealing begins with `seal_events`.
fn sealing_tempo(waiting: u64, seal_events: u64) -> Tempo {
    match waiting {
        _ if waiting > FULL_FROM_EVENTS.max(seal_events.saturating_mul(3)) => Tempo::Full,
        _ if waiting > STEADY_FROM_EVENTS.max(seal_events.saturating_mul(2)) => Tempo::Steady,
        _ => Tempo::Slow,
    }
}

struct ArchiveWork {
    sources: Sources,
    /// How many wait for an answer.
    asked: Arc<AtomicUsize>,
    /// The oldest unsealed event of projects that don't wait.
    oldest: Oldest,
    /// The oldest event of those that do.
    oldest_waiting: Oldest,
    /// Whether a project that waits was found to be able to go on.
    can_resume: bool,
    merges: Merges,
    damage: DamageCheck,
    deletions: Deletions,
    erasures: ErasureSteps,
    resting: Resting,
    retention: Retention,
    checked_damage: Stopwatch,
    checked_merges: Option<Stopwatch>,
    /// When the next attempt may begin, after a failure.
    not_before: Option<Stopwatch>,
    failures: u32,
    figures: Arc<ArchiveFigures>,
}

impl ArchiveWork {
    fn run(mut self, requests: &Receiver<ArchiverRequest>) {
        let sealed_until = Rc::<Cell<Position>>::default();
        background::begin(self.tempo(&sealed_until));
        let mut has_more = true;
        while !self.sources.is_stopping() {
            sealed_until.set(self.sources.sealed.catalog().sealed_until());
            let tick = if self.sources.removal.erasures.has_unfinished() { ERASURE_TICK } else { TICK };
            match requests.recv_timeout(if has_more { Duration::ZERO } else { tick }) {
                Ok(ArchiverRequest::Seal(reply)) => {
                    let outcome = seal_all(&self.sources);
                    self.note_waiting();
                    self.merges.check_all(&self.sources);
                    self.retention.check_all(&self.sources);
                    self.note_retention();
                    has_more = true;
                    let _ = reply.send(outcome);
                }
                Ok(ArchiverRequest::MergeTables(reply)) => {
                    let _ = reply.send(self.resting.merge_all(&self.sources));
                }
                Err(RecvTimeoutError::Timeout) => has_more = self.tick(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// How fast the work goes on: at full speed while somebody waits for it, else the faster the more events wait.
    fn tempo(&self, sealed_until: &Rc<Cell<Position>>) -> impl Fn() -> Tempo + 'static {
        let sources = &self.sources;
        let (sealed_until, delivered) = (Rc::clone(sealed_until), Arc::clone(&sources.delivered));
        let (asked, erasures, stop) = (Arc::clone(&self.asked), Arc::clone(&sources.removal.erasures), Arc::clone(&sources.stop));
        let seal_events = sources.settings.policy.seal_events;
        move || {
            let is_awaited = asked.load(Ordering::Relaxed) > 0 || erasures.has_unfinished() || stop.load(Ordering::Relaxed);
            let waiting = delivered.load(Ordering::Relaxed).saturating_sub(sealed_until.get());
            if is_awaited { Tempo::Full } else { sealing_tempo(waiting, seal_events) }
        }
    }

    /// Does the next piece of work. Returns whether there is more.
    fn tick(&mut self) -> bool {
        if self.sources.trimmer.is_none() {
            // One of several engines: what is removed from the archive and the log is not its own alone.
            self.resting.step(&self.sources);
            return false;
        }
        // Also on a full disk, and while sealing fails.
        self.deletions.step(&self.sources, &mut self.merges);
        let has_erased = self.erasures.step(&self.sources);
        let has_old = self.retention.step(&self.sources, &mut self.merges);
        self.note_retention();
        self.resting.step(&self.sources);
        if self.not_before.is_some_and(|until| Stopwatch::now() < until) {
            return has_old || has_erased;
        }
        if self.checked_damage.elapsed() >= DAMAGE_INTERVAL {
            DamageCheck::check_damaged(&self.sources);
            self.can_resume = can_resume(&self.sources);
            self.checked_damage = Stopwatch::now();
        }
        let worked = self.seal_if_due().and_then(|()| self.merge());
        let has_more = matches!(worked, Ok(true));
        self.note(worked);
        self.damage.step(&self.sources) || has_more || has_old || has_erased
    }

    fn seal_if_due(&mut self) -> Result<(), SealingError> {
        let catalog = self.sources.sealed.catalog();
        let age_ms = self.oldest.age_ms(&self.sources, catalog.sealed_until())?;
        let waiting_ms = match catalog.waiting().is_empty() {
            true => 0,
            false => self.oldest_waiting.age_ms(&self.sources, catalog.logged_after())?,
        };
        self.figures.lag_ms.store(age_ms.max(waiting_ms), Ordering::Relaxed);
        self.note_waiting();
        let resumed = std::mem::take(&mut self.can_resume).then_some(0);
        let Some(least) = resumed.or_else(|| least_due(&self.sources, age_ms)) else { return Ok(()) };
        match seal(&self.sources, least) {
            // Not a failure: checkpoints are on their way.
            Err(SealingError::NoAnswer) => Ok(()),
            Ok(Sealed { events, sealed_until, waiting: _ }) => {
                self.note_waiting();
                if events > 0 {
                    tracing::info!(events, sealed_until, "events are sealed");
                    self.merges.check_all(&self.sources);
                    self.retention.check_all(&self.sources);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn note_retention(&self) {
        self.figures.retention_pending.store(self.retention.pending(), Ordering::Relaxed);
    }

    fn note_waiting(&self) {
        let waiting = self.sources.sealed.catalog().waiting().len();
        self.figures.waiting_projects.store(waiting as u64, Ordering::Relaxed);
    }

    /// Does a merge, if there is one. Returns whether there may be more.
    fn merge(&mut self) -> Result<bool, SealingError> {
        if self.checked_merges.is_none_or(|at| at.elapsed() >= MERGE_INTERVAL) {
            self.merges.check_all(&self.sources);
            self.checked_merges = Some(Stopwatch::now());
        }
        if !self.sources.has_space() {
            return Ok(false);
        }
        let step = self.merges.step(&self.sources);
        let sum = self.merges.figures();
        self.figures.files.store(sum.files, Ordering::Relaxed);
        self.figures.bytes.store(sum.bytes, Ordering::Relaxed);
        Ok(step?)
    }

    /// Pauses after a failure, for longer after each further one.
    fn note(&mut self, outcome: Result<bool, SealingError>) {
        match outcome {
            Ok(_) => {}
            Err(_) if self.sources.is_stopping() => {}
            Err(error) => {
                if self.failures == 0 {
                    tracing::error!(%error, "the archive could not be written; what is not sealed stays in the log");
                }
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_PAUSE);
                self.failures += 1;
                self.not_before = Some(Stopwatch::now() + pause);
                return;
            }
        }
        if self.not_before.take().is_some() {
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealing_hurries_the_more_it_falls_behind() {
        let usual = 1 << 18;
        let table = [
            (0, usual, Tempo::Slow),
            (STEADY_FROM_EVENTS, usual, Tempo::Slow),
            (STEADY_FROM_EVENTS + 1, usual, Tempo::Steady),
            (FULL_FROM_EVENTS, usual, Tempo::Steady),
            (FULL_FROM_EVENTS + 1, usual, Tempo::Full),
            // What is not due yet is no reason to hurry.
            (10_000_000, 10_000_000, Tempo::Slow),
            (20_000_001, 10_000_000, Tempo::Steady),
            (30_000_001, 10_000_000, Tempo::Full),
            (u64::MAX, u64::MAX, Tempo::Slow),
        ];
        for (waiting, seal_events, expected) in table {
            assert_eq!(sealing_tempo(waiting, seal_events), expected, "{waiting} of {seal_events}");
        }
    }
}
