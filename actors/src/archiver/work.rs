//! The work on one archive: the times of sealing, merging and removing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{Instant, Position};
use parking_lot::Mutex;

use super::damage::DamageCheck;
use super::deletions::Deletions;
use super::erasures::ErasureSteps;
use super::error::SealingError;
use super::figures::ArchiveFigures;
use super::merges::Merges;
use super::retention::Retention;
use super::sealing::{Sealed, seal, seal_all, trim};
use super::sources::Sources;
use crate::history::{HistoryError, HistoryPiece, Wanted};

/// The pause after a failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// How often all archives are checked for merges, since a month may have ended.
const MERGE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How often damaged files, and the lists of waiting projects, are checked again.
const DAMAGE_INTERVAL: Duration = Duration::from_secs(60);
/// How long changes of an archive that need not be shared at once are gathered before they are
/// published.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(10);
/// How often events sealed earlier are removed from the log.
const TRIM_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// How often the log is checked for room.
const ROOM_INTERVAL: Duration = Duration::from_secs(30);

/// When parts of the work were done last.
struct LastTimes {
    checked_damage: Stopwatch,
    checked_merges: Option<Stopwatch>,
    /// The log's room.
    checked_room: Option<Stopwatch>,
    /// Also an attempt that failed.
    published: Option<Stopwatch>,
}

/// The work on one archive.
pub(super) struct ArchiveWork {
    pub(super) sources: Sources,
    /// The oldest unsealed event of projects that don't wait.
    oldest: Oldest,
    /// The oldest event of waiting projects.
    oldest_waiting: Oldest,
    /// Whether a waiting project was found to be able to continue.
    can_resume: bool,
    merges: Merges,
    damage: DamageCheck,
    deletions: Deletions,
    erasures: ErasureSteps,
    retention: Retention,
    last: LastTimes,
    /// The earliest time of the next attempt, after a failure.
    not_before: Option<Stopwatch>,
    failures: u32,
    pub(super) figures: Arc<ArchiveFigures>,
    /// Whether the archive may differ from the published one.
    is_unpublished: bool,
    /// Locked during each piece of work. A thread that gives the archive up waits for it.
    turn: Arc<Mutex<()>>,
}

impl ArchiveWork {
    pub(super) fn new(sources: Sources, turn: Arc<Mutex<()>>) -> Self {
        let work = Self {
            oldest: Oldest::default(),
            oldest_waiting: Oldest::default(),
            can_resume: false,
            merges: Merges::default(),
            damage: DamageCheck::new(&sources),
            deletions: Deletions::default(),
            erasures: ErasureSteps::default(),
            retention: Retention::new(&sources),
            last: LastTimes { checked_damage: Stopwatch::now(), checked_merges: None, checked_room: None, published: None },
            not_before: None,
            failures: 0,
            figures: Arc::default(),
            is_unpublished: true,
            turn,
            sources,
        };
        work.note_retention();
        work
    }

    /// Does a piece of work, unless the archive was given up.
    pub(super) fn unless_given_up<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Option<R> {
        let turn = Arc::clone(&self.turn);
        let _turn = turn.lock();
        (!self.sources.is_given_up.load(Ordering::Acquire)).then(|| work(self))
    }

    /// Does the next piece of work. Returns whether there is more.
    pub(super) fn tick(&mut self) -> bool {
        if !self.sources.files.seals() {
            // Nothing is sealed or removed from the log, but its states still lose identities.
            self.erasures.step(&self.sources);
            return false;
        }
        // Done on a full disk and while sealing fails, too.
        self.deletions.step(&self.sources, &mut self.merges);
        self.erasures.step(&self.sources);
        let has_old = self.retention.step(&self.sources, &mut self.merges);
        self.is_unpublished |= has_old;
        self.note_retention();
        if self.not_before.is_some_and(|until| Stopwatch::now() < until) {
            return has_old;
        }
        if self.last.checked_damage.elapsed() >= DAMAGE_INTERVAL {
            DamageCheck::check_damaged(&self.sources);
            self.can_resume = can_resume(&self.sources);
            self.last.checked_damage = Stopwatch::now();
        }
        let worked = self.seal_if_due().and_then(|()| self.merge());
        let has_more = matches!(worked, Ok(true));
        self.is_unpublished |= has_more;
        self.note(worked);
        self.publish();
        self.damage.step(&self.sources) || has_more || has_old
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
        let due = resumed.or_else(|| least_due(&self.sources, age_ms)).or_else(|| self.needs_room().then_some(0));
        let Some(least) = due else { return Ok(()) };
        let sealed = seal(&self.sources, least);
        self.is_unpublished |= matches!(sealed, Err(SealingError::Shared(_) | SealingError::Trim(_)));
        match sealed {
            // Not a failure: checkpoints are being written.
            Err(SealingError::NoAnswer) => Ok(()),
            Ok(Sealed { events, sealed_until, .. }) => {
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

    /// Seals all events recorded before the call.
    pub(super) fn seal_all(&mut self) -> Result<Sealed, SealingError> {
        let outcome = seal_all(&self.sources);
        self.is_unpublished |= matches!(outcome, Err(SealingError::Shared(_) | SealingError::Trim(_)));
        self.note_waiting();
        self.merges.check_all(&self.sources);
        self.retention.check_all(&self.sources);
        self.note_retention();
        outcome
    }

    /// Whether the log needs room. Checks only from time to time.
    fn needs_room(&mut self) -> bool {
        if self.last.checked_room.is_some_and(|at| at.elapsed() < ROOM_INTERVAL) {
            return false;
        }
        self.last.checked_room = Some(Stopwatch::now());
        self.sources.needs_room()
    }

    /// Publishes merged and other files to all nodes of a cluster, and removes sealed events from
    /// the log that could not leave it before. They are published first.
    fn publish(&mut self) {
        let pause = if self.is_unpublished { PUBLISH_INTERVAL } else { TRIM_INTERVAL };
        if self.last.published.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        match trim(&self.sources) {
            Ok(()) => self.is_unpublished = false,
            Err(_) if self.sources.is_stopping() => {}
            Err(error) => tracing::warn!(%error, "the log keeps sealed events, and files are not published, until that succeeds"),
        }
        self.last.published = Some(Stopwatch::now());
    }

    fn note_retention(&self) {
        self.figures.retention_pending.store(self.retention.pending(), Ordering::Relaxed);
    }

    fn note_waiting(&self) {
        let waiting = self.sources.sealed.catalog().waiting().len();
        self.figures.waiting_projects.store(waiting as u64, Ordering::Relaxed);
    }

    /// Does a merge, if there is one to do. Returns whether there may be more.
    fn merge(&mut self) -> Result<bool, SealingError> {
        if self.last.checked_merges.is_none_or(|at| at.elapsed() >= MERGE_INTERVAL) {
            self.merges.check_all(&self.sources);
            self.last.checked_merges = Some(Stopwatch::now());
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

    /// Pauses after a failure, longer after each further one.
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

/// The time when the first event after a position was received.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// The position, and the event's time of receipt.
    known: Option<(Position, Instant)>,
    /// A position without events after it, and the end of the log at that time.
    none: Option<(Position, Position)>,
}

impl Oldest {
    /// Returns the age of the first event after the position `after` in milliseconds; 0 if there is
    /// none.
    pub(super) fn age_ms(&mut self, sources: &Sources, after: Position) -> Result<u64, HistoryError> {
        let received = match self.known {
            Some((known_after, received)) if known_after == after => received,
            _ => {
                let ends = sources.partitions.clone().map(|partition| sources.logged.last_position(partition));
                let end = ends.max().unwrap_or(0);
                if end <= after || self.none == Some((after, end)) {
                    return Ok(0);
                }
                let Some(received) = first_received(sources, after)? else {
                    self.none = Some((after, end));
                    return Ok(0);
                };
                self.known = Some((after, received));
                received
            }
        };
        Ok(u64::try_from(sources.settings.clock.now().0.saturating_sub(received.0)).unwrap_or(0))
    }
}

fn first_received(sources: &Sources, after: Position) -> Result<Option<Instant>, HistoryError> {
    let wanted: Vec<Wanted> = sources.partitions.clone().map(|partition| Wanted::partition(partition, after)).collect();
    let mut received = None;
    sources.logged.read(&wanted, &mut |piece: HistoryPiece| {
        received = piece.events.first().map(|(_, event)| event.received);
        if received.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(received)
}

/// Whether a waiting project can continue, because its list of files is intact again.
pub(super) fn can_resume(sources: &Sources) -> bool {
    let catalog = sources.sealed.catalog();
    catalog.waiting().keys().any(|project| sources.existing_archive(&catalog, *project).is_none_or(|opened| opened.is_ok()))
}

/// Returns how many events must be in durable checkpoints to be sealed now; `None` if it is not
/// time. Sealing few events makes small files that must be merged later, so only old events are
/// sealed whatever their number.
pub(super) fn least_due(sources: &Sources, age_ms: u64) -> Option<u64> {
    let policy = &sources.settings.policy;
    let unsealed = sources.unsealed();
    let after_ms = u64::try_from(policy.seal_after.as_millis()).unwrap_or(u64::MAX);
    match unsealed {
        0 => None,
        _ if age_ms >= after_ms => Some(0),
        _ => (unsealed >= policy.seal_events).then_some(policy.seal_events),
    }
}
