//! Rebuilds a lost state of a partition from its checkpoint and the log.
//!
//! A thread opens the partition and reads the log. The shard applies the events in slices.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{Event, Fault, FaultKind, FloorMove, Position, ProjectId};

use super::health::Condition;
use super::partition::Partition;
use super::partition_context::PartitionContext;
use super::refold::{self, Refold};
use super::work::{Outcome, QueuedWork};
use crate::checkpoint_writer::{CancelledJobs, PartitionMeta, position_key, read_meta};
use crate::fault;
use crate::history::{History, HistoryPiece, PieceOrigin, Wanted};
use crate::saved_state::CopiedState;

/// The number of records of the log that are read ahead of the shard.
const READ_AHEAD: usize = 2;
/// After this many failed attempts a partition counts as failed. It is still retried.
const MAX_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Called when the reading thread has delivered a piece.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

/// The rebuild of one partition, and the work that waits for it.
pub(super) struct Rebuild {
    works: BTreeMap<Position, QueuedWork>,
    /// The fault to repair.
    pub(super) fault: Fault,
    /// The position applied before the fault, which must be reached again.
    target: Position,
    /// The last position to read.
    until: Position,
    /// The part of the store that holds the partition.
    stored_in: u16,
    /// Whether to rebuild from the log alone.
    ignores_checkpoint: bool,
    /// Whether to rebuild the index of external ids, too.
    resets_index: bool,
    /// The number of failed attempts.
    pub(super) attempts: u32,
    stage: Stage,
    /// Events that were read, and are not applied yet.
    read: VecDeque<(Position, Box<Event>)>,
    /// The floor that follows them.
    read_floor: Option<(Position, FloorMove)>,
    /// Whether they belong to a project that is folded again, up to the position of its partition.
    is_refold: bool,
    /// The projects that are folded again.
    pub(super) refolded: Vec<(ProjectId, u64)>,
    /// The lost state. The reading thread drops it, because that takes time.
    old: Option<Partition>,
    /// Threads that use the partition's files until they end: earlier ones, and then its own.
    closing: Vec<JoinHandle<()>>,
    /// The partition's jobs at the checkpoint writer. They must be over before it is opened again.
    cancelled: CancelledJobs,
    /// A copy of another machine's saved state.
    copied: Option<CopiedState>,
}

/// The rest of a partition that this machine gave up.
pub(super) struct Released {
    /// The part of the store that holds it.
    pub(super) stored_in: u16,
    /// Its jobs at the checkpoint writer. They must be over before it is opened again.
    pub(super) cancelled: CancelledJobs,
    /// Threads that use its files until they end.
    pub(super) closing: Vec<JoinHandle<()>>,
    /// Whether its checkpoint, and its index, were found damaged and are not written again yet.
    pub(super) damage: (bool, bool),
}

impl Released {
    /// The rest of an intact partition in this part of the store.
    pub(super) fn new(stored_in: u16) -> Self {
        Self { stored_in, cancelled: CancelledJobs::default(), closing: Vec::new(), damage: (false, false) }
    }
}

enum Stage {
    Waiting(Stopwatch),
    Running(Receiver<Piece>),
    /// The rebuild failed, and only a restart helps.
    Failed,
}

/// A message of the reading thread.
enum Piece {
    Opened(Box<Partition>),
    Read(HistoryPiece),
    /// Events of a project that is folded again.
    Reread(HistoryPiece),
    /// The end, with the projects that were folded again.
    End(Vec<(ProjectId, u64)>),
    Failed(Fault),
}

/// A message that a rebuild has received.
pub(super) enum Received {
    /// The partition, opened from its checkpoint.
    Opened(Box<Partition>),
    /// Events to apply, and their origin.
    Events(PieceOrigin),
    /// The end of the log.
    End,
    /// Nothing yet.
    Nothing,
}

impl Rebuild {
    /// Begins to open a partition of another machine, and to replay it up to `until`.
    pub(super) fn adopting(until: Position, left: Released, copied: Option<CopiedState>) -> Self {
        let Released { stored_in, cancelled, closing, damage } = left;
        let fault = Fault::io("the partition is being taken over");
        let (ignores_checkpoint, resets_index) = damage;
        let stage = Stage::Waiting(Stopwatch::now());
        Self { until, stored_in, stage, closing, cancelled, ignores_checkpoint, resets_index, copied, ..Self::new(&fault, 0) }
    }

    fn new(fault: &Fault, target: Position) -> Self {
        Self {
            works: BTreeMap::new(),
            fault: fault.clone(),
            target,
            until: target,
            stored_in: 0,
            ignores_checkpoint: false,
            resets_index: false,
            attempts: 0,
            stage: Stage::Failed,
            read: VecDeque::new(),
            read_floor: None,
            is_refold: false,
            refolded: Vec::new(),
            old: None,
            closing: Vec::new(),
            cancelled: CancelledJobs::default(),
            copied: None,
        }
    }

    /// Begins a rebuild after `fault`, or continues after an earlier attempt.
    pub(super) fn after(
        fault: &Fault,
        number: u16,
        old: Option<Partition>,
        earlier: Option<Self>,
        cancelled: CancelledJobs,
    ) -> Self {
        let target = old.as_ref().filter(|_| earlier.is_none()).map_or(0, |old| old.applied);
        let mut rebuild = match earlier {
            Some(mut earlier) => {
                earlier.attempts += 1;
                earlier
            }
            None => Self { stored_in: number, ..Self::new(fault, target) },
        };
        rebuild.cancelled.extend(cancelled);
        rebuild.fault = fault.clone();
        rebuild.read.clear();
        rebuild.read_floor = None;
        rebuild.stage = Stage::Waiting(Stopwatch::now() + pause(rebuild.attempts));
        if let Some(old) = old {
            rebuild.stored_in = old.stored_as().0;
            rebuild.old = Some(old);
        }
        match fault.kind {
            FaultKind::Io | FaultKind::DamagedArchive | FaultKind::Defect => {}
            FaultKind::DamagedStore => rebuild.ignores_checkpoint = true,
            // The log after the checkpoint lacks older ids of the index.
            FaultKind::DamagedIndex => (rebuild.ignores_checkpoint, rebuild.resets_index) = (true, true),
            FaultKind::DamagedLog => {
                rebuild.stage = Stage::Failed;
                rebuild.works.clear();
            }
        }
        rebuild
    }

    /// Reads up to this position, for a partition that was given up before it had caught up.
    pub(super) fn read_until(&mut self, last: Position) {
        self.until = self.until.max(last);
    }

    /// Ends the rebuild. Returns the partition's part of the store, and the jobs to wait for.
    pub(super) fn into_released(self) -> Released {
        let damage = (self.ignores_checkpoint, self.resets_index);
        Released { stored_in: self.stored_in, cancelled: self.cancelled, closing: self.closing, damage }
    }

    /// The condition of the partition.
    pub(super) fn condition(&self) -> Condition {
        let is_failed = self.is_failed() || self.attempts >= MAX_ATTEMPTS;
        if is_failed { Condition::Failed } else { Condition::Rebuilding }
    }

    /// Whether only a restart helps.
    pub(super) fn is_failed(&self) -> bool {
        matches!(self.stage, Stage::Failed)
    }

    /// Whether the reading thread is running.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running(_))
    }

    /// Whether its next attempt is due.
    pub(super) fn is_due(&self, now: Stopwatch) -> bool {
        matches!(self.stage, Stage::Waiting(from) if from <= now)
    }

    /// Holds work until the partition is rebuilt. If only a restart helps, drops the work.
    pub(super) fn hold(&mut self, queued: QueuedWork) {
        if !self.is_failed() {
            self.works.insert(queued.work.first, queued);
        }
    }

    /// The held work.
    pub(super) fn into_works(self) -> impl Iterator<Item = QueuedWork> {
        self.works.into_values()
    }

    /// Starts the reading thread.
    pub(super) fn start(
        &mut self,
        number: u16,
        context: &PartitionContext,
        history: &Arc<dyn History>,
        wake: &Wake,
    ) -> Result<(), Fault> {
        let (pieces, receiver) = sync_channel(READ_AHEAD);
        let reader = Reader {
            number,
            stored_in: self.stored_in,
            ignores_checkpoint: self.ignores_checkpoint,
            resets_index: self.resets_index,
            until: self.until,
            context: context.clone(),
            history: Arc::clone(history),
            old: self.old.take(),
            closing: std::mem::take(&mut self.closing),
            cancelled: self.cancelled.clone(),
            copied: self.copied.clone(),
            pieces,
            wake: Arc::clone(wake),
        };
        self.stage = Stage::Running(receiver);
        let thread = std::thread::Builder::new().name("rebuild".into()).spawn(move || reader.run());
        self.closing.push(thread.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?);
        Ok(())
    }

    /// Takes the next event.
    pub(super) fn next_event(&mut self) -> Option<(Position, Box<Event>)> {
        self.read.pop_front()
    }

    /// Takes the floor that follows the events, once they are applied.
    pub(super) fn next_floor(&mut self) -> Option<(Position, FloorMove)> {
        self.read_floor.take_if(|_| self.read.is_empty())
    }

    /// Whether the event at a position must be applied to its partition, which is at `applied`.
    pub(super) fn is_wanted(&self, position: Position, applied: Position) -> bool {
        self.is_refold || position > applied
    }

    /// Whether there are events to apply.
    pub(super) fn has_events(&self) -> bool {
        !self.read.is_empty()
    }

    /// Receives the next message of the reading thread.
    pub(super) fn receive(&mut self) -> Result<Received, Fault> {
        let Stage::Running(pieces) = &self.stage else { return Ok(Received::Nothing) };
        match pieces.try_recv() {
            Ok(Piece::Opened(partition)) => {
                self.stored_in = partition.stored_as().0;
                Ok(Received::Opened(partition))
            }
            Ok(Piece::Read(piece)) => {
                self.is_refold = false;
                self.read = piece.events.into();
                self.read_floor = piece.floor;
                Ok(Received::Events(piece.origin))
            }
            Ok(Piece::Reread(piece)) => {
                self.is_refold = true;
                self.read = piece.events.into();
                self.read_floor = piece.floor;
                // Higher positions of its partition are applied already.
                Ok(Received::Events(PieceOrigin::Archive))
            }
            Ok(Piece::End(refolded)) => {
                self.refolded = refolded;
                Ok(Received::End)
            }
            Ok(Piece::Failed(fault)) => Err(fault),
            Err(TryRecvError::Empty) => Ok(Received::Nothing),
            Err(TryRecvError::Disconnected) => Err(Fault::defect("a rebuild's thread ended")),
        }
    }

    /// Records the outcome of an event that was applied again, if its sender still waits.
    pub(super) fn applied(&mut self, outcome: Outcome) {
        if let Some((_, queued)) = self.works.range_mut(..=outcome.position).next_back()
            && queued.next() == outcome.position
            && !queued.is_done()
        {
            queued.outcomes.push(outcome);
        }
    }

    /// Checks that everything was applied again.
    pub(super) fn check_complete(&self, applied: Position) -> Result<(), Fault> {
        match self.target {
            target if applied < target => {
                Err(Fault::damaged_log(format!("the log has events up to position {applied}, not {target}")))
            }
            _ => Ok(()),
        }
    }
}

fn pause(attempts: u32) -> Duration {
    match attempts {
        0 => Duration::ZERO,
        attempts => (FIRST_PAUSE * 2u32.saturating_pow(attempts.min(16))).min(MAX_PAUSE),
    }
}

/// The reading thread.
struct Reader {
    number: u16,
    stored_in: u16,
    ignores_checkpoint: bool,
    resets_index: bool,
    until: Position,
    context: PartitionContext,
    history: Arc<dyn History>,
    old: Option<Partition>,
    closing: Vec<JoinHandle<()>>,
    cancelled: CancelledJobs,
    copied: Option<CopiedState>,
    pieces: SyncSender<Piece>,
    wake: Wake,
}

impl Reader {
    fn run(mut self) {
        drop(self.old.take());
        self.closing.drain(..).for_each(|closing| drop(closing.join()));
        // A checkpoint in progress must count or fail before the partition is opened.
        self.cancelled.wait(&*self.context.store);
        let end = match self.read() {
            Ok(refolded) => Piece::End(refolded),
            Err(fault) => Piece::Failed(fault),
        };
        self.send(end);
    }

    fn read(&self) -> Result<Vec<(ProjectId, u64)>, Fault> {
        let dead = &self.context.dead;
        dead.record_waiting(self.number).map_err(|error| Fault::io(format!("could not set an event aside: {error}")))?;
        let bases = self.history.bases();
        let (Refold { projects, until }, mut partition) = self.open()?;
        if partition.applied > self.until {
            let (applied, until) = (partition.applied, self.until);
            return Err(Fault::damaged_log(format!("it ends at position {until}, but the state reflects position {applied}")));
        }
        partition.load_bases(&*bases)?;
        let after = if projects.is_empty() { partition.applied } else { until };
        let wanted = Wanted { until: self.until, ..Wanted::partition(self.number, after) };
        if !self.send(Piece::Opened(Box::new(partition))) {
            return Ok(projects);
        }
        let sent = |piece| if self.send(piece) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        for (project, _) in &projects {
            let mut visit = |piece: HistoryPiece| match piece.origin {
                PieceOrigin::EndOfArchive(_) => ControlFlow::Continue(()),
                PieceOrigin::Archive | PieceOrigin::Log => sent(Piece::Reread(piece)),
            };
            self.history.read(&[refold::wanted(*project, until)], &mut visit).map_err(fault::of_history)?;
        }
        // The partition is at the saved position of the other projects, and in order from there on.
        let origin = PieceOrigin::EndOfArchive(after);
        let rest = HistoryPiece { partition: self.number, events: Vec::new(), floor: None, bytes: 0, origin };
        if sent(Piece::Read(rest)).is_continue() {
            self.history.read(&[wanted], &mut |piece| sent(Piece::Read(piece))).map_err(fault::of_history)?;
        }
        Ok(projects)
    }

    /// Opens the partition, without states that may have an erased identity.
    fn open(&self) -> Result<(Refold, Partition), Fault> {
        if self.resets_index {
            Partition::reset_index(self.number, &self.context)?;
        }
        if self.ignores_checkpoint {
            // The partition has no saved state, so everything is read in any case.
            let refold = Refold { projects: self.context.erasures.stale(self.number), until: 0 };
            let empty = Partition::open_empty(self.number, self.context.clone())?;
            self.note_letters(false)?;
            return Ok((refold, empty));
        }
        if self.reflects_a_letter()? {
            // An earlier owner, or the next start, counts without an event that this may count.
            let stale = Fault::damaged_store("a checkpoint may reflect an event that another node set aside");
            self.context.damage.noted(stale);
            Partition::reset_index(self.number, &self.context)?;
            let refold = Refold { projects: self.context.erasures.stale(self.number), until: 0 };
            let empty = Partition::open_empty(self.number, self.context.clone())?;
            self.note_letters(false)?;
            return Ok((refold, empty));
        }
        self.put_copy()?;
        let refold = refold::take_away(&self.context, self.number, self.stored_in)?;
        Ok((refold, Partition::open_in(self.stored_in, self.number, self.context.clone())?))
    }

    /// Begins with the copy of another machine's state, if it reflects more.
    fn put_copy(&self) -> Result<(), Fault> {
        let Some(copied) = self.copied.as_ref().filter(|_| self.stored_in == self.number && !self.resets_index) else {
            return Ok(());
        };
        let context = &self.context;
        let meta: Option<PartitionMeta> = read_meta(&*context.store, &position_key(self.number))?;
        let own = meta.unwrap_or_default().position;
        // Brokers that lost messages end at `until`. A replay skips events set aside since.
        let may_be_used =
            |reflected| reflected <= self.until && copied.letters == context.dead.within(self.number, 0..=reflected).len();
        // The copy may have data of projects whose deletion has not ended.
        let noted = context.deleted.note_again(self.number);
        // It may have an erased identity, if it was published before the record that none has one.
        let erased = context.erasures.published_with(self.number);
        let noted = noted.and_then(|()| context.deleted.note_erased_again(&erased));
        noted.map_err(|error| Fault::io(format!("could not note what a copied state may have: {error}")))?;
        match copied.put_in(self.number, &*context.store, &context.index, own, may_be_used) {
            Ok(Some(position)) => {
                context.erasures.spoil(erased);
                tracing::info!(partition = self.number, own, position, "the saved state of another machine is used")
            }
            Ok(None) => {}
            Err(fault) => {
                // It may have been put in before.
                context.erasures.spoil(erased);
                tracing::warn!(partition = self.number, %fault, "the saved state of another machine can't be used");
            }
        }
        Ok(())
    }

    /// Whether the checkpoint may reflect an event that was set aside since.
    fn reflects_a_letter(&self) -> Result<bool, Fault> {
        let Some(first) = self.context.dead.first_unknown(self.number) else { return Ok(false) };
        let partition = Partition::open_in(self.stored_in, self.number, self.context.clone())?;
        if partition.reflected() >= first {
            return Ok(true);
        }
        self.note_letters(true).map(|()| false)
    }

    fn note_letters(&self, durable: bool) -> Result<(), Fault> {
        let noted = self.context.dead.note_known(self.number, durable);
        noted.map_err(|error| Fault::io(format!("could not note which events were set aside: {error}")))
    }

    /// Delivers a piece. Returns `false` if the shard no longer wants it.
    fn send(&self, piece: Piece) -> bool {
        let sent = self.pieces.send(piece).is_ok();
        (self.wake)();
        sent
    }
}
