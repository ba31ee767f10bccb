//! The events of one person in a project: found by the columns of ids, so that most of the archive is not decoded.

use std::io;
use std::ops::ControlFlow;

use headcount_archive::error::ArchiveError;
use headcount_domain::identity::SentKeys;
use headcount_domain::ids::{ProjectId, RecordKey};
use headcount_domain::intake::event::{Event, Position};

use super::error::ScanError;
use super::events::{Batch, Scan, TallyError};
use super::group_ids::GroupIds;
use super::sealed_group::SealedGroup;
use crate::engine::handle::Engine;
use crate::engine::shard_client::AskError;
use crate::fault;
use crate::history::{HistoryPart, SealedColumns};

/// Says whose events are wanted, and takes them.
pub(in crate::engine) trait SubjectSink: Send + 'static {
    /// Whether the events that name this id are wanted.
    fn wants(&self, project: ProjectId, named: RecordKey) -> bool;

    /// Whether the pass goes on.
    fn goes_on(&self) -> bool;

    /// Takes an event.
    ///
    /// # Errors
    /// It can't be kept: the pass ends.
    fn take(&mut self, position: Position, event: Box<Event>) -> io::Result<()>;
}

impl Engine {
    /// Passes the wanted events of a project up to a position to `sink`, in order, and returns it. Those that were set aside, duplicates, and those below
    /// the project's floor are left out.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(in crate::engine) async fn collect_subject<S: SubjectSink>(
        &self,
        project: ProjectId,
        until: Position,
        mut sink: S,
    ) -> Result<S, AskError> {
        self.scan_with((), project, move |mut scan, _| {
            scan.until = scan.until.min(until);
            scan.visit_subject(&mut sink)?;
            Ok(sink)
        })
        .await
    }
}

impl Scan<'_> {
    fn visit_subject<S: SubjectSink>(&self, sink: &mut S) -> Result<(), ScanError> {
        let wanted = self.wanted(0, None);
        let mut pass = SubjectPass { scan: self, sink };
        let (mut batch, mut outcome) = (Batch::default(), Ok(()));
        let result =
            self.engine.inner.history.read_columns(self.project, &wanted, &mut |part| match pass.take(part, &mut batch) {
                Ok(()) => Ok(ControlFlow::Continue(())),
                Err(TallyError::Archive(error)) => Err(error),
                Err(TallyError::Scan(error)) => {
                    outcome = Err(error);
                    Ok(ControlFlow::Break(()))
                }
            });
        outcome?;
        result.map_err(|error| AskError::Lost(fault::of_history(error)))?;
        self.hand_over(&mut batch, &mut |position, event| pass.pass_on(position, event)).map(drop)
    }
}

struct SubjectPass<'p, 's, S> {
    scan: &'p Scan<'s>,
    sink: &'p mut S,
}

impl<S: SubjectSink> SubjectPass<'_, '_, S> {
    fn check_goes_on(&self) -> Result<(), ScanError> {
        self.scan.check_goes_on()?;
        if self.sink.goes_on() { Ok(()) } else { Err(ScanError::Cancelled) }
    }

    fn take(&mut self, part: HistoryPart<'_>, batch: &mut Batch) -> Result<(), TallyError> {
        self.check_goes_on()?;
        match part {
            HistoryPart::Columns(groups) => groups.into_iter().try_for_each(|columns| self.take_group(columns)),
            HistoryPart::Events(mut piece) => {
                let (scan, sink) = (self.scan, &*self.sink);
                let hasher = scan.engine.hasher();
                let named = |event: &Event| SentKeys::of(&event.who, hasher).named();
                piece.events.retain(|(_, event)| named(event).is_some_and(|named| sink.wants(scan.project, named)));
                Ok(scan.take(piece, batch, &mut |position, event| self.pass_on(position, event)).map(drop)?)
            }
        }
    }

    /// The rows of a row group that are wanted.
    fn rows(&self, group: &SealedGroup<'_>) -> Result<Vec<u32>, ArchiveError> {
        let mut counted = group.counted()?;
        let hasher = self.scan.engine.hasher();
        let (mut ids, visitors) = (GroupIds::read(group, hasher)?, group.visitors()?);
        let mut rows = Vec::new();
        counted.retain(|row| {
            let named = ids.named(row).or_else(|| visitors[row].map(|visitor| hasher.visitor(visitor)));
            named.is_some_and(|named| self.sink.wants(self.scan.project, named))
        });
        counted.for_each(|row| rows.push(u32::try_from(row).unwrap_or(u32::MAX)));
        Ok(rows)
    }

    fn take_group(&mut self, columns: SealedColumns<'_>) -> Result<(), TallyError> {
        self.check_goes_on()?;
        let rows = self.rows(&self.scan.group(columns))?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut outcome = Ok(ControlFlow::Continue(()));
        columns.reader.visit_rows_at(&rows, &mut |row| {
            outcome = self.pass_on(row.position, Box::new(row.event));
            if let Ok(flow) = outcome { flow } else { ControlFlow::Break(()) }
        })?;
        let _passed = outcome?;
        Ok(())
    }

    /// Passes on an event, without what is erased: files may have it still.
    fn pass_on(&mut self, position: Position, event: Box<Event>) -> Result<ControlFlow<()>, ScanError> {
        let mut events = vec![(position, event)];
        self.scan.engine.inner.erasures.filter(&mut events);
        for (position, event) in events.into_iter().filter(|(_, event)| !event.is_remainder()) {
            self.sink.take(position, event)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}
