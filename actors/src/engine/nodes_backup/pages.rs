//! The owner's answers with the events of a partition.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::nodes::AskNodeError;
use headcount_common::partition_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::codec::CodecError;

use super::questions::{
    HoldQuestion, PartitionEnd, PartitionEndQuestion, PartitionEvents, PartitionEventsQuestion, PartitionRecord,
};
use crate::copied_records::copy_records;
use crate::dead_letters::DeadLetters;
use crate::engine::handle::Engine;
use crate::history::{HistoryPiece, PieceOrigin, Wanted};
use crate::shard::AskError;

/// The approximate number of bytes of events in a page.
const PAGE_BYTES: usize = 4 << 20;
/// The maximum number of bytes of a record with more than one event.
const RECORD_BYTES: usize = 256 << 10;

/// Returns the error that there is no answer now. There may be one later, here or elsewhere.
pub(super) fn no_answer(error: impl std::fmt::Display) -> AskError {
    AskNodeError::NoAnswer(error.to_string()).into()
}

/// Collects the events of a page.
struct PartitionPage<'p> {
    question: &'p PartitionEventsQuestion,
    dead: &'p DeadLetters,
    cancelled: &'p AtomicBool,
    records: Vec<PartitionRecord>,
    bytes: usize,
    /// The last position of its events.
    reached: Position,
    ended: Option<PageEnd>,
}

/// The reason why a page ends before the last event.
enum PageEnd {
    Full,
    /// The events of the log have been sealed meanwhile.
    Sealed,
    Cancelled,
    Failed(CodecError),
}

impl PartitionPage<'_> {
    fn take(&mut self, piece: HistoryPiece) -> ControlFlow<()> {
        self.ended = if self.cancelled.load(Ordering::Acquire) {
            Some(PageEnd::Cancelled)
        } else if self.question.project.is_none() && piece.origin != PieceOrigin::Log {
            Some(PageEnd::Sealed)
        } else {
            match self.add(piece) {
                Ok(()) if self.bytes >= PAGE_BYTES => Some(PageEnd::Full),
                Ok(()) => None,
                Err(error) => Some(PageEnd::Failed(error)),
            }
        };
        if self.ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn add(&mut self, piece: HistoryPiece) -> Result<(), CodecError> {
        let (dead, partition) = (self.dead, piece.partition);
        let is_wanted = |position, _| !dead.contains(partition, position);
        let _all = copy_records(piece, RECORD_BYTES, is_wanted, &mut |project, positions, payload| {
            self.push(PartitionRecord { project, positions, payload });
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn push(&mut self, record: PartitionRecord) {
        self.bytes += record.payload.len();
        self.reached = record.positions.last().copied().unwrap_or(self.reached);
        self.records.push(record);
    }
}

impl Engine {
    /// Returns the end of a partition on this machine.
    pub(super) async fn partition_end(&self, question: PartitionEndQuestion) -> Result<PartitionEnd, AskError> {
        // Done before the projects with bases are read.
        self.hold_first_bases(HoldQuestion { partition: question.partition }).await?;
        let PartitionEndQuestion { partition, applied } = question;
        self.read_for_backup(applied, move |engine, cancelled| {
            let last = engine.scans.history.last_position(partition);
            Ok(PartitionEnd { last, with_bases: engine.projects_with_bases(partition, cancelled)? })
        })
        .await
    }

    /// Answers a question for events of a partition on this machine.
    pub(super) async fn partition_events(&self, question: PartitionEventsQuestion) -> Result<PartitionEvents, AskError> {
        self.read_for_backup(question.applied, move |engine, cancelled| engine.read_partition(&question, cancelled)).await
    }

    /// Reads events for a backup, once this machine has applied a record of the control log, so
    /// that it leaves out erased events.
    pub(super) async fn read_for_backup<R: Send + 'static>(
        &self,
        applied: u64,
        read: impl FnOnce(&Self, &AtomicBool) -> Result<R, AskError> + Send + 'static,
    ) -> Result<R, AskError> {
        let engine = self.clone();
        let work = move |cancelled: &AtomicBool| match engine.partitions.follow_until(applied).map_err(no_answer)? {
            true => read(&engine, cancelled),
            false => Err(no_answer("the node does not know yet what is erased")),
        };
        self.scans.run_for_backup(work).await
    }

    /// Returns the projects of a partition that have a base, since some of their events may have
    /// been removed.
    fn projects_with_bases(&self, partition: u16, cancelled: &AtomicBool) -> Result<Vec<ProjectId>, AskError> {
        let sealed = self.partitions.archives.of(partition);
        let mut with_bases = Vec::new();
        let projects = sealed.catalog();
        for (project, last) in projects.projects().filter(|(project, _)| partition_of(*project) == partition) {
            if cancelled.load(Ordering::Relaxed) {
                return Err(AskError::NoAnswer);
            }
            if sealed.is_deleted(project) {
                continue;
            }
            if sealed.list(project, last).map_err(no_answer)?.manifest().base().is_some() {
                with_bases.push(project);
            }
        }
        Ok(with_bases)
    }

    /// Returns the sealed part of the events in question, if the first of them are sealed.
    fn sealed_part(&self, question: &PartitionEventsQuestion) -> Option<PartitionEvents> {
        let PartitionEventsQuestion { partition, after, until, .. } = *question;
        let catalog = self.partitions.archives.of(partition).catalog();
        let is_its = |project: ProjectId| partition_of(project) == partition;
        let sealed = catalog.sealed_until_of(is_its).min(until);
        let projects = || catalog.projects().filter(|(project, last)| is_its(*project) && *last > after);
        (sealed > after)
            .then(|| PartitionEvents::Sealed { until: sealed, projects: projects().map(|(project, _)| project).collect() })
    }

    fn read_partition(&self, question: &PartitionEventsQuestion, cancelled: &AtomicBool) -> Result<PartitionEvents, AskError> {
        let PartitionEventsQuestion { partition, project, after, until, .. } = *question;
        if project.is_none()
            && let Some(sealed) = self.sealed_part(question)
        {
            return Ok(sealed);
        }
        if self.scans.history.last_position(partition) < until {
            return Err(no_answer("the node does not know yet what was recorded"));
        }
        let (dead, records) = (&*self.partitions.dead, Vec::new());
        let mut page = PartitionPage { question, dead, cancelled, records, bytes: 0, reached: after, ended: None };
        let wanted = Wanted { partition, project, after, until, days: None };
        self.scans.history.read(&[wanted], &mut |piece| page.take(piece)).map_err(no_answer)?;
        let PartitionPage { records, reached, ended, .. } = page;
        match ended {
            None => Ok(PartitionEvents::Found { records, reached: until }),
            Some(PageEnd::Full) => Ok(PartitionEvents::Found { records, reached }),
            Some(PageEnd::Sealed) => self.sealed_part(question).ok_or_else(|| no_answer("events are being sealed")),
            Some(PageEnd::Cancelled) => Err(AskError::NoAnswer),
            Some(PageEnd::Failed(error)) => Err(no_answer(error)),
        }
    }
}
