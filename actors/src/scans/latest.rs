//! The latest events, read from the end: the log first, then the archive's row groups that can have
//! later events than those that were found.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::ControlFlow;

use super::error::Result;
use headcount_archive::ArchiveError;
use headcount_domain::facts::Moment;
use headcount_domain::{Day, Event, Instant, Position, Predicate, Timezone, Window};

use super::events::{Batch, Scan, TallyError};
use super::page_events::PageEvents;
use super::sealed_group::{Rows, SealedGroup};
use crate::fault;
use crate::history::{HistoryPart, LatestVisitor, SealedColumns, Wanted};
use crate::shard::AskError;

/// What is asked of the latest events.
pub(super) struct LatestQuestion<'q> {
    pub(super) window: Option<Window>,
    /// Without conditions on sessions.
    pub(super) predicate: &'q Predicate,
    /// Only events before this moment are wanted.
    pub(super) before: Option<Moment>,
    /// The most events that are wanted.
    pub(super) limit: usize,
}

impl Scan<'_> {
    /// Offers the latest events for which `question` holds to `found`, and some others.
    pub(super) fn find_latest(&self, question: &LatestQuestion<'_>, found: &mut PageEvents) -> Result<()> {
        let wanted = self.wanted(0, question.window);
        let mut pass = LatestPass { scan: self, question, found, batch: Batch::default(), outcome: Ok(()) };
        let result = self.scans.history.read_latest(self.project, &wanted, &mut pass);
        let LatestPass { mut batch, outcome, found, .. } = pass;
        outcome?;
        result.map_err(|error| AskError::Lost(fault::of_history(error)))?;
        self.hand_over(&mut batch, &mut |position, event| Ok(question.offer(position, event, found))).map(drop)
    }

    /// Passes the events at these positions to `visit`. They were applied, and are no duplicates.
    pub(super) fn find_events(&self, positions: &BTreeSet<Position>, visit: &mut dyn FnMut(Position, &Event)) -> Result<()> {
        let (Some(first), Some(last)) = (positions.first(), positions.last()) else { return Ok(()) };
        // The entry of a session may have been recorded after the scan's last event.
        let wanted = Wanted { until: *last, ..self.wanted(first.saturating_sub(1), None) };
        let _end = self.read_parts(&wanted, &mut |part| {
            match part {
                HistoryPart::Events(piece) => {
                    let found = piece.events.iter().filter(|(position, _)| positions.contains(position));
                    found.for_each(|(position, event)| visit(*position, event));
                }
                HistoryPart::Columns(groups) => {
                    for SealedColumns { reader, .. } in groups {
                        if positions.range(reader.positions()).next().is_none() {
                            continue;
                        }
                        let rows = (0..).zip(reader.read_positions()?).filter(|(_, position)| positions.contains(position));
                        let rows: Vec<u32> = rows.map(|(row, _)| row).collect();
                        reader.rows_at(&rows)?.iter().for_each(|row| visit(row.position, &row.event));
                    }
                }
            }
            self.check_goes_on()?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.check_goes_on()
    }
}

impl LatestQuestion<'_> {
    /// Whether the day, and the moment, are wanted.
    fn has(&self, at: Moment, day: Day) -> bool {
        self.before.is_none_or(|before| at < before) && self.window.is_none_or(|window| window.contains(day))
    }

    fn offer(&self, position: Position, event: Box<Event>, found: &mut PageEvents) -> ControlFlow<()> {
        let at = Moment { time: event.time, position };
        if self.has(at, event.day) && self.predicate.matches_event(&event) {
            found.offer(at, event);
        }
        ControlFlow::Continue(())
    }
}

struct LatestPass<'p, 's> {
    scan: &'p Scan<'s>,
    question: &'p LatestQuestion<'p>,
    found: &'p mut PageEvents,
    batch: Batch,
    outcome: Result<()>,
}

impl LatestVisitor for LatestPass<'_, '_> {
    fn wants(&self, first: Day, last: Day) -> bool {
        let in_window = self.question.window.is_none_or(|window| last >= window.start && first <= window.end);
        // A day in any timezone differs from that of UTC by one at most.
        let day = |at: Moment| Timezone::UTC.day_of(at.time);
        in_window
            && self.question.before.is_none_or(|before| first <= day(before).plus(1))
            && self.found.cut.is_none_or(|cut| last >= day(cut).plus(-1))
    }

    fn visit(&mut self, part: HistoryPart<'_>) -> Result<ControlFlow<()>, ArchiveError> {
        match self.take(part) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(TallyError::Archive(error)) => Err(error),
            Err(TallyError::Scan(error)) => {
                self.outcome = Err(error);
                Ok(ControlFlow::Break(()))
            }
        }
    }
}

impl LatestPass<'_, '_> {
    fn take(&mut self, part: HistoryPart<'_>) -> Result<(), TallyError> {
        let Self { scan, question, found, batch, .. } = self;
        let offer = &mut |position, event| Ok(question.offer(position, event, found));
        match part {
            HistoryPart::Events(piece) => scan.take(piece, batch, offer).map(drop)?,
            HistoryPart::Columns(groups) => {
                // The log is over.
                scan.hand_over(batch, offer).map(drop)?;
                groups.into_iter().rev().try_for_each(|columns| self.take_group(columns))?;
            }
        }
        Ok(())
    }

    /// Whether a row group can have events that are wanted.
    fn can_have(&self, columns: &SealedColumns<'_>) -> bool {
        let days = columns.reader.days();
        self.wants(*days.start(), *days.end())
            && columns.reader.times().is_none_or(|times| {
                self.question.before.is_none_or(|before| *times.start() <= before.time)
                    && self.found.cut.is_none_or(|cut| *times.end() >= cut.time)
            })
    }

    fn take_group(&mut self, columns: SealedColumns<'_>) -> Result<(), TallyError> {
        if !self.can_have(&columns) {
            return Ok(());
        }
        self.scan.check_goes_on()?;
        let group = self.scan.group(columns);
        let mut rows = group.counted()?;
        if let Some(window) = self.question.window {
            group.retain_days(&mut rows, window)?;
        }
        group.retain_matching(&mut rows, self.question.predicate)?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in columns.reader.rows_at(&self.latest(&group, &rows)?)? {
            let at = Moment { time: row.event.time, position: row.position };
            self.found.offer(at, Box::new(row.event));
        }
        Ok(())
    }

    /// Returns the latest of these rows, in order: one more than are wanted, so that it is known
    /// whether there are more.
    fn latest(&self, group: &SealedGroup<'_>, rows: &Rows) -> Result<Vec<u32>, ArchiveError> {
        let (times, positions) = (group.times()?, group.positions()?);
        let cut = self.found.cut;
        let mut latest: BinaryHeap<Reverse<(Moment, usize)>> = BinaryHeap::new();
        rows.for_each(|row| {
            let at = Moment { time: Instant(times[row]), position: positions[row] };
            if self.question.before.is_some_and(|before| at >= before) || cut.is_some_and(|cut| at < cut) {
                return;
            }
            latest.push(Reverse((at, row)));
            if latest.len() > self.question.limit + 1 {
                latest.pop();
            }
        });
        let mut rows: Vec<u32> = latest.into_iter().map(|Reverse((_, row))| u32::try_from(row).unwrap_or(u32::MAX)).collect();
        rows.sort_unstable();
        Ok(rows)
    }
}
