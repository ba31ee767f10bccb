//! The events of one person in a project: found by the columns of ids, so that most of the archive is not decoded.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use headcount_archive::error::ArchiveError;
use headcount_domain::identity::SentKeys;
use headcount_domain::ids::{ProjectId, RecordKey};
use headcount_domain::intake::event::{Event, Position};

use super::error::ScanError;
use super::events::{Batch, Scan, TallyError};
use super::group_ids::GroupIds;
use super::sealed_group::SealedGroup;
use super::shared::Scans;
use crate::history::{HistoryPart, HistoryPiece, SealedColumns};
use crate::shard::AskError;

/// Says whose events are wanted, and takes them.
pub(crate) trait SubjectSink: Send + 'static {
    /// Whether the events that name this id are wanted.
    fn wants(&self, project: ProjectId, named: RecordKey) -> bool;

    /// Whether the pass goes on. If not, it has no result.
    fn goes_on(&self) -> bool;

    /// Whether the pass ends before its end: enough was taken, or it has lasted for long enough.
    fn is_enough(&self) -> bool {
        false
    }

    /// Takes an event.
    ///
    /// # Errors
    /// It can't be kept: the pass ends.
    fn take(&mut self, position: Position, event: Box<Event>) -> io::Result<()>;
}

impl Scans {
    /// Passes the wanted events of a project up to a position to `sink`, in order, and returns it. Those that were set aside, duplicates, and those below
    /// the project's floor are left out.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn collect_subject<S: SubjectSink>(
        &self,
        project: ProjectId,
        until: Position,
        mut sink: S,
    ) -> Result<S, AskError> {
        self.scan_with((), project, move |mut scan, _| {
            scan.until = scan.until.min(until);
            scan.visit_subject(0, &mut sink)?;
            Ok(sink)
        })
        .await
    }

    /// As [`Self::collect_subject`], for events after a position, until the sink has enough. Returns the position up to which it has all. Takes a turn of scans for other nodes.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn collect_part<S: SubjectSink>(
        &self,
        project: ProjectId,
        (after, until): (Position, Position),
        mut sink: S,
    ) -> Result<(S, Position), AskError> {
        let turn = self.node_turns.questions.take(self.questions.organization_of(project)).await?;
        self.scan_with(turn, project, move |mut scan, _| {
            if scan.until < until {
                return Err(AskError::NoAnswer.into());
            }
            scan.until = until;
            let reached = scan.visit_subject(after, &mut sink)?;
            Ok((sink, reached))
        })
        .await
    }

    /// Runs a part of an export that asks the shards, on a thread of its own. Takes a turn of scans for other nodes. Dropping the future ends it.
    pub(crate) async fn run_for_export<R: Send + 'static>(
        &self,
        project: ProjectId,
        run: impl FnOnce(&AtomicBool) -> Result<R, AskError> + Send + 'static,
    ) -> Result<R, AskError> {
        let turn = self.node_turns.questions.take(self.questions.organization_of(project)).await?;
        self.run_scan(turn, move |_, cancelled, _| Ok(run(cancelled)?)).await
    }

    /// As [`Self::run_for_export`], for a part of a backup of whole partitions.
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
    fn visit_subject<S: SubjectSink>(&self, after: Position, sink: &mut S) -> Result<Position, ScanError> {
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

struct SubjectPass<'p, 's, S> {
    scan: &'p Scan<'s>,
    sink: &'p mut S,
    /// The sink has all events up to this position.
    reached: Position,
    /// The last position that was read.
    seen: Position,
}

impl<S: SubjectSink> SubjectPass<'_, '_, S> {
    fn check_goes_on(&self) -> Result<(), ScanError> {
        self.scan.check_goes_on()?;
        if self.sink.goes_on() { Ok(()) } else { Err(ScanError::Cancelled) }
    }

    /// Takes a part, and breaks off when the sink has enough.
    fn take(&mut self, part: HistoryPart<'_>, batch: &mut Batch) -> Result<ControlFlow<()>, TallyError> {
        self.check_goes_on()?;
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
        piece.events.retain(|(_, event)| named(event).is_some_and(|named| sink.wants(scan.project, named)));
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
            named.is_some_and(|named| self.sink.wants(self.scan.project, named))
        });
        counted.for_each(|row| rows.push(u32::try_from(row).unwrap_or(u32::MAX)));
        Ok(rows)
    }

    fn take_group(&mut self, columns: SealedColumns<'_>) -> Result<ControlFlow<()>, TallyError> {
        self.check_goes_on()?;
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

    /// Passes on an event, without what is erased: files may have it still. Breaks off when the sink has enough.
    fn pass_on(&mut self, position: Position, event: Box<Event>) -> Result<ControlFlow<()>, ScanError> {
        let mut events = vec![(position, event)];
        self.scan.scans.erasures.filter(&mut events);
        for (position, event) in events.into_iter().filter(|(_, event)| !event.is_remainder()) {
            self.sink.take(position, event)?;
        }
        self.reached = position;
        Ok(if self.sink.is_enough() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
