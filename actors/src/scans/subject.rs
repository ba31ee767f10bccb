//! The events of one person in a project: found by the columns of ids, so that most of the archive
//! is not decoded.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant as Stopwatch};

use super::error::Result;
use headcount_archive::ArchiveError;
use headcount_domain::intake::event::EVENT_VERSION;
use headcount_domain::{Event, Position, ProjectId, RecordKey, SentKeys};
use headcount_storage::codec;

use super::events::{Batch, Scan, TallyError};
use super::group_ids::GroupIds;
use super::sealed_group::SealedGroup;
use super::shared::Scans;
use crate::history::{HistoryPart, HistoryPiece, SealedColumns};
use crate::shard::AskError;
use crate::subject::SubjectEvents;

/// About how many bytes of events a page has.
const PAGE_BYTES: usize = 4 << 20;
/// How long events are read for a page: an answer has to come in time, whether or not it has any.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// Takes the events of a page.
struct PageSink {
    ids: HashSet<RecordKey>,
    events: Vec<(Position, Vec<u8>)>,
    bytes: usize,
    began: Stopwatch,
}

impl PageSink {
    fn is_enough(&self) -> bool {
        self.bytes >= PAGE_BYTES || self.began.elapsed() >= PAGE_TIME
    }

    fn take(&mut self, position: Position, event: &Event) -> io::Result<()> {
        let encoded = codec::encode(EVENT_VERSION, event).map_err(io::Error::other)?;
        self.bytes += encoded.len();
        self.events.push((position, encoded));
        Ok(())
    }
}

impl Scans {
    /// Returns events of a project that name one of `ids`: in order those after one position and up
    /// to another, until the page is full. Events that were set aside, duplicates, and events below
    /// the project's floor are left out. Takes a turn of scans for exports.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn subject_page(
        &self,
        project: ProjectId,
        (after, until): (Position, Position),
        ids: HashSet<RecordKey>,
    ) -> Result<SubjectEvents, AskError> {
        let turn = self.node_turns.questions.take(self.questions.organization_of(project)).await?;
        self.scan_with(turn, project, move |mut scan, _| {
            if scan.until < until {
                return Err(AskError::NoAnswer.into());
            }
            scan.until = until;
            let mut sink = PageSink { ids, events: Vec::new(), bytes: 0, began: Stopwatch::now() };
            let reached = scan.visit_subject(after, &mut sink)?;
            Ok(SubjectEvents { events: sink.events, reached })
        })
        .await
    }

    /// Runs a part of an export that asks the shards, on a thread of its own. Takes a turn of scans
    /// for exports. Dropping the future ends it.
    pub(crate) async fn run_for_export<R: Send + 'static>(
        &self,
        project: ProjectId,
        run: impl FnOnce(&AtomicBool) -> Result<R, AskError> + Send + 'static,
    ) -> Result<R, AskError> {
        let turn = self.node_turns.questions.take(self.questions.organization_of(project)).await?;
        self.run_scan(turn, move |_, cancelled, _| Ok(run(cancelled)?)).await
    }

    /// As [`Self::run_for_export`], for a part of a backup of whole partitions.
    #[cfg(feature = "cluster")]
    pub(crate) async fn run_for_backup<R: Send + 'static>(
        &self,
        run: impl FnOnce(&AtomicBool) -> Result<R, AskError> + Send + 'static,
    ) -> Result<R, AskError> {
        let turn = self.node_turns.backups.take(None).await?;
        self.run_scan(turn, move |_, cancelled, _| Ok(run(cancelled)?)).await
    }
}

impl Scan<'_> {
    /// Returns the position up to which the sink has all events after `after`.
    fn visit_subject(&self, after: Position, sink: &mut PageSink) -> Result<Position> {
        let wanted = self.wanted(after, None);
        let mut pass = SubjectPass { scan: self, sink, reached: after, seen: after };
        let mut batch = Batch::default();
        if self.read_parts(&wanted, &mut |part| pass.take(part, &mut batch))?.is_break() {
            return Ok(pass.reached);
        }
        match self.hand_over(&mut batch, &mut |position, event| pass.pass_on(position, event))? {
            ControlFlow::Break(()) => Ok(pass.reached),
            ControlFlow::Continue(()) => Ok(self.until),
        }
    }
}

struct SubjectPass<'p, 's> {
    scan: &'p Scan<'s>,
    sink: &'p mut PageSink,
    /// The sink has all events up to this position.
    reached: Position,
    /// The last position that was read.
    seen: Position,
}

impl SubjectPass<'_, '_> {
    /// Takes a part, and breaks off when the sink has enough.
    fn take(&mut self, part: HistoryPart<'_>, batch: &mut Batch) -> Result<ControlFlow<()>, TallyError> {
        self.scan.check_goes_on()?;
        match part {
            HistoryPart::Columns(groups) => {
                for columns in groups {
                    let last = (*columns.reader.positions().end()).min(columns.until);
                    if self.take_group(columns)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    (self.reached, self.seen) = (last, last);
                    if self.sink.is_enough() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            HistoryPart::Events(piece) => self.take_piece(piece, batch),
        }
    }

    fn take_piece(&mut self, mut piece: HistoryPiece, batch: &mut Batch) -> Result<ControlFlow<()>, TallyError> {
        let (scan, sink) = (self.scan, &*self.sink);
        let last = piece.events.last().map(|(position, _)| *position);
        let hasher = scan.hasher();
        let named = |event: &Event| SentKeys::of(&event.who, hasher).named();
        piece.events.retain(|(_, event)| named(event).is_some_and(|named| sink.ids.contains(&named)));
        let visit = &mut |position, event| self.pass_on(position, event);
        if scan.take(piece, batch, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.seen = last.unwrap_or(self.seen);
        // Else there would be no way on from here.
        if self.sink.is_enough() && self.seen > self.reached {
            // Those that wait are passed on first.
            let flow = scan.hand_over(batch, &mut |position, event| self.pass_on(position, event))?;
            if flow.is_continue() {
                self.reached = self.seen;
            }
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The rows of a row group that are wanted.
    fn rows(&self, group: &SealedGroup<'_>) -> Result<Vec<u32>, ArchiveError> {
        let mut counted = group.counted()?;
        let hasher = self.scan.hasher();
        let (mut ids, visitors) = (GroupIds::read(group, hasher)?, group.visitors()?);
        let mut rows = Vec::new();
        counted.retain(|row| {
            let named = ids.named(row).or_else(|| visitors[row].map(|visitor| hasher.visitor(visitor)));
            named.is_some_and(|named| self.sink.ids.contains(&named))
        });
        counted.for_each(|row| rows.push(u32::try_from(row).unwrap_or(u32::MAX)));
        Ok(rows)
    }

    fn take_group(&mut self, columns: SealedColumns<'_>) -> Result<ControlFlow<()>, TallyError> {
        self.scan.check_goes_on()?;
        let rows = self.rows(&self.scan.group(columns))?;
        if rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut outcome = Ok(ControlFlow::Continue(()));
        columns.reader.visit_rows_at(&rows, &mut |row| {
            outcome = self.pass_on(row.position, Box::new(row.event));
            if let Ok(flow) = outcome { flow } else { ControlFlow::Break(()) }
        })?;
        Ok(outcome?)
    }

    /// Passes on an event, without what is erased: files may have it still. Breaks off when the
    /// sink has enough.
    fn pass_on(&mut self, position: Position, event: Box<Event>) -> Result<ControlFlow<()>> {
        let mut events = vec![(position, event)];
        self.scan.scans.erasures.filter(&mut events);
        for (position, event) in events.into_iter().filter(|(_, event)| !event.is_remainder()) {
            self.sink.take(position, &event)?;
        }
        self.reached = position;
        Ok(if self.sink.is_enough() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
