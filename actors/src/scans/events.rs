//! The one place where questions read the recorded events of a project.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use headcount_archive::ArchiveError;
use headcount_common::partition_of;
use headcount_domain::facts::{Moment, SESSION_GAP_MS};
use headcount_domain::intake::fields::Entry;
use headcount_domain::queries::{Query, VisitedSession, VisitsQuery};
use headcount_domain::{Day, Event, Instant, KeyHasher, Position, ProjectId, RecordKey, Timezone, Window};
use headcount_storage::external_ids::ExternalIdsView;
use tokio::runtime::Handle;

use super::error::{Result, ScanError};
use super::sealed_group::SealedGroup;
use super::shared::Scans;
use super::spill_dir::SpillDir;
use crate::fault;
use crate::history::{HistoryPart, HistoryPiece, PieceOrigin, SealedColumns, Wanted};
use crate::shard::AskError;

/// The shard is asked after this many ids that only it knows, or this many bytes of events.
pub(super) const IDS_A_QUESTION: usize = 512;
const BYTES_A_QUESTION: usize = 1 << 20;

impl Scans {
    /// Returns a view of the external ids of a project's partition that are on disk or on their way
    /// there.
    pub(super) async fn known_ids(&self, project: ProjectId) -> Result<ExternalIdsView, AskError> {
        self.questions.ask_shard(project, move |shard| shard.known_ids(project)).await
    }

    /// Returns the first positions that have these external ids.
    async fn first_positions(&self, project: ProjectId, ids: Vec<u128>) -> Result<Vec<Option<Position>>, AskError> {
        self.questions.ask_shard(project, move |shard| shard.first_positions(project, &ids)).await
    }
}

/// One pass over a project's events.
pub(super) struct Scan<'e> {
    pub(super) scans: &'e Scans,
    pub(super) project: ProjectId,
    pub(super) until: Position,
    /// The external ids that were on disk, or on their way there, when the scan began.
    pub(super) known: ExternalIdsView,
    /// The first day of which events count, if the project has a floor. Those of earlier days may
    /// be gone.
    pub(super) floor: Option<Day>,
    /// The timezone of the project's days.
    pub(super) timezone: Timezone,
    pub(super) cancelled: &'e AtomicBool,
}

/// Counts the events of a project, in the order of their positions. `P` is what was read of a row
/// group.
pub(super) trait Tally<P> {
    /// Counts a row group of sealed events.
    fn group(&mut self, part: P) -> Result<()>;
    /// Counts an event of the log.
    fn event(&mut self, position: Position, event: &Event) -> Result<()>;
}

/// Reads what a [`Tally`] counts of a row group, in any thread.
pub(super) type GroupRead<'r, P> = dyn Fn(&SealedGroup<'_>) -> Result<P, TallyError> + Sync + 'r;

/// Why a row group could not be read or counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum TallyError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Scan(#[from] ScanError),
}

impl From<io::Error> for TallyError {
    fn from(error: io::Error) -> Self {
        Self::Scan(error.into())
    }
}

/// Takes a part of the events, and breaks off when it has enough.
pub(super) type TakePart<'t> = dyn FnMut(HistoryPart<'_>) -> Result<ControlFlow<()>, TallyError> + 't;

/// Receives events one by one, and breaks off when it has enough.
pub(super) type EventVisitor<'v> = dyn FnMut(Position, Box<Event>) -> Result<ControlFlow<()>> + 'v;

/// An event that waits until it is known whether it is a duplicate.
struct Candidate {
    event: Box<Event>,
    position: Position,
    /// The index of its id among those that the shard is asked for.
    asked: Option<usize>,
}

/// Events that wait, and the ids that the shard is asked for.
#[derive(Default)]
pub(super) struct Batch {
    waiting: Vec<Candidate>,
    ids: Vec<u128>,
    bytes: usize,
}

impl<'e> Scan<'e> {
    /// Asks the project's shard, and waits.
    pub(super) fn ask<Q: Query + Sync>(&self, query: Q) -> Result<Q::Partial, AskError> {
        Handle::current().block_on(self.scans.questions.ask(self.project, query))
    }

    pub(super) fn hasher(&self) -> &'e KeyHasher {
        self.scans.questions.hasher()
    }

    pub(super) fn scratch(&self) -> &'e SpillDir {
        &self.scans.scratch
    }
}

impl Scan<'_> {
    /// Passes every recorded event of the project to `visit`, in order, without duplicates and
    /// without events that were set aside.
    pub(super) fn visit_events(&self, visit: &mut dyn FnMut(Position, &Event) -> io::Result<()>) -> Result<()> {
        self.visit_after(0, None, &mut |position, event| {
            visit(position, &event)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The events after a position. Those of files and row groups without events on `days` are not
    /// wanted.
    pub(super) fn wanted(&self, after: Position, days: Option<Window>) -> Wanted {
        let days = match self.floor {
            None => days,
            Some(floor) => {
                let Window { start, end } = days.unwrap_or(Window { start: floor, end: Day(i32::MAX) });
                Some(Window { start: start.max(floor), end })
            }
        };
        Wanted { partition: partition_of(self.project), project: Some(self.project), after, until: self.until, days }
    }

    /// Checks that the events of all days from `start` on are kept: the floor may have risen since
    /// the question was read.
    pub(super) fn check_is_kept(&self, start: Day) -> Result<()> {
        match self.floor.filter(|floor| start < *floor) {
            Some(floor) => Err(AskError::BelowFloor(floor).into()),
            None => Ok(()),
        }
    }

    /// Whether events of a day count no more.
    pub(super) fn is_below_floor(&self, day: Day) -> bool {
        self.floor.is_some_and(|floor| day < floor)
    }

    /// Returns what is known of the session of an event if it began below the floor, and when it
    /// ended: its address is not known. `named` is the key of the event's identity.
    pub(super) fn session_below_floor(&self, named: RecordKey, time_ms: i64) -> Result<Option<(Entry, Instant)>> {
        let began = Instant(time_ms.saturating_sub(SESSION_GAP_MS));
        if !self.is_below_floor(self.timezone.day_of(began)) {
            return Ok(None);
        }
        let query = VisitsQuery { events: vec![(named, Moment::last_of(Instant(time_ms)))] };
        let visits = self.ask(query)?;
        let session = visits.into_iter().flatten().next().and_then(|visit| visit.session);
        Ok(session.and_then(|session| Some((self.entry_of(&session)?, session.last))))
    }

    /// Returns what is known of a session that began below the floor.
    pub(super) fn entry_of(&self, session: &VisitedSession) -> Option<Entry> {
        self.is_below_floor(session.day).then_some(Entry { url: None, channel: Some(session.channel) })
    }

    /// Passes the events after a position to `visit`, as [`Scan::visit_events`] does, until it
    /// breaks off. Some events of other days than `days` are skipped.
    pub(super) fn visit_after(&self, after: Position, days: Option<Window>, visit: &mut EventVisitor<'_>) -> Result<()> {
        let wanted = self.wanted(after, days);
        let mut outcome = Ok(ControlFlow::Continue(()));
        let mut batch = Batch::default();
        let result = self.scans.history.read(&[wanted], &mut |piece: HistoryPiece| {
            outcome = self.take(piece, &mut batch, visit);
            if let Ok(flow) = outcome { flow } else { ControlFlow::Break(()) }
        });
        if outcome?.is_break() {
            return Ok(());
        }
        result.map_err(|error| AskError::Lost(fault::of_history(error)))?;
        self.hand_over(&mut batch, visit).map(drop)
    }

    /// Passes the events after a position to `tally`, the sealed ones as what `read` returns of
    /// their row groups; row groups without events on `days` are skipped.
    pub(super) fn tally<P: Send>(
        &self,
        after: Position,
        days: Option<Window>,
        read: &GroupRead<'_, P>,
        tally: &mut dyn Tally<P>,
    ) -> Result<()> {
        let mut batch = Batch::default();
        let _end = self.read_parts(&self.wanted(after, days), &mut |part| match part {
            HistoryPart::Columns(columns) => self.take_columns(&columns, read, tally).map(ControlFlow::Continue),
            HistoryPart::Events(piece) => Ok(self.take(piece, &mut batch, &mut passed_to(tally))?),
        })?;
        self.hand_over(&mut batch, &mut passed_to(tally)).map(drop)
    }

    /// Passes the parts of the wanted events to `take`, until it breaks off.
    pub(super) fn read_parts(&self, wanted: &Wanted, take: &mut TakePart<'_>) -> Result<ControlFlow<()>> {
        let mut outcome = Ok(ControlFlow::Continue(()));
        let result = self.scans.history.read_columns(self.project, wanted, &mut |part| match take(part) {
            Ok(flow) => {
                outcome = Ok(flow);
                Ok(flow)
            }
            Err(TallyError::Archive(error)) => Err(error),
            Err(TallyError::Scan(error)) => {
                outcome = Err(error);
                Ok(ControlFlow::Break(()))
            }
        });
        let flow = outcome?;
        result.map_err(|error| AskError::Lost(fault::of_history(error)))?;
        Ok(flow)
    }

    fn take_columns<P: Send>(
        &self,
        columns: &[SealedColumns<'_>],
        read: &GroupRead<'_, P>,
        tally: &mut dyn Tally<P>,
    ) -> Result<(), TallyError> {
        let read = |columns: &SealedColumns<'_>| {
            self.check_goes_on()?;
            read(&self.group(*columns))
        };
        self.scans.turns.helpers.read_in_order(columns, &read, &mut |part| Ok(tally.group(part)?))
    }

    /// A row group, with the events of it that were set aside.
    pub(super) fn group<'p>(&self, columns: SealedColumns<'p>) -> SealedGroup<'p> {
        SealedGroup::new(columns, self.scans.dead.within(partition_of(self.project), columns.reader.positions()), self.floor)
    }

    pub(super) fn check_goes_on(&self) -> Result<()> {
        self.scans.check_goes_on(self.cancelled)
    }

    /// Passes the events of a piece to `visit`, or collects them in `batch` until
    /// [`Scan::hand_over`].
    pub(super) fn take(&self, piece: HistoryPiece, batch: &mut Batch, visit: &mut EventVisitor<'_>) -> Result<ControlFlow<()>> {
        self.check_goes_on()?;
        for (position, event) in piece.events {
            if self.is_below_floor(event.day) || self.scans.dead.contains(piece.partition, position) || event.is_remainder() {
                continue;
            }
            // The archive has no duplicates.
            if piece.origin == PieceOrigin::Archive {
                if visit(position, event)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            let mut asked = None;
            if let Some(external_id) = &event.external_id {
                let id = self.hasher().external_id(self.project, external_id);
                match self.known.get(id).map_err(|error| ScanError::Read(error.to_string()))? {
                    Some(first) if first < position => continue,
                    Some(_) => {}
                    None => {
                        asked = Some(batch.ids.len());
                        batch.ids.push(id);
                    }
                }
            }
            batch.waiting.push(Candidate { event, position, asked });
            if batch.ids.len() >= IDS_A_QUESTION && self.hand_over(batch, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        batch.bytes += piece.bytes;
        if batch.bytes >= BYTES_A_QUESTION { self.hand_over(batch, visit) } else { Ok(ControlFlow::Continue(())) }
    }

    /// Asks the shard for ids that only it knows, and passes on the events that are not duplicates.
    pub(super) fn hand_over(&self, batch: &mut Batch, visit: &mut EventVisitor<'_>) -> Result<ControlFlow<()>> {
        let Batch { waiting, ids, .. } = std::mem::take(batch);
        let firsts = match ids.is_empty() {
            true => Vec::new(),
            false => Handle::current().block_on(self.scans.first_positions(self.project, ids))?,
        };
        for Candidate { event, position, asked } in waiting {
            if let Some(index) = asked {
                // It was applied, so its id is known, unless the state was lost meanwhile.
                let first = firsts.get(index).copied().flatten().ok_or(AskError::NoAnswer)?;
                if first < position {
                    continue;
                }
            }
            if visit(position, event)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn passed_to<P>(tally: &mut dyn Tally<P>) -> impl FnMut(Position, Box<Event>) -> Result<ControlFlow<()>> {
    |position, event| {
        tally.event(position, &event)?;
        Ok(ControlFlow::Continue(()))
    }
}
