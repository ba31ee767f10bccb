//! The counts of events that arrived at a project: recorded, duplicate, dropped, invalid.

use std::sync::Arc;

use headcount_domain::ProjectId;
use headcount_domain::queries::{Intake, IntakeQuery};

use super::{BatchReceipt, Ingest, Receipt, Status};
use crate::intake_counts::{DropCounts, RepairCounts};
use crate::shard::AskError;

/// The events that arrived at a project on the days of a window.
#[derive(Debug, Clone, Copy)]
pub struct ProjectIntake {
    /// The recorded events. This count is exact.
    pub recorded: Intake,
    /// The events that were not recorded.
    pub dropped: DropCounts,
    /// Whether the events that were not recorded may lack up to 10 s before a crash, or those of a
    /// project for which there was no room.
    pub is_approximate: bool,
}

impl Ingest {
    /// Returns the events that arrived at a project on the days of a window.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn intake(&self, project: ProjectId, query: IntakeQuery) -> Result<ProjectIntake, AskError> {
        let recorded = self.questions.ask(project, query).await?;
        let counts = Arc::clone(&self.counts);
        let read = tokio::task::spawn_blocking(move || counts.of(project, query.window, query.timezone)).await;
        let (dropped, is_approximate) = read.map_err(|_| AskError::NoAnswer)?.map_err(|error| {
            tracing::error!(%error, "the counts of dropped events can't be read");
            AskError::NoAnswer
        })?;
        Ok(ProjectIntake { recorded, dropped, is_approximate })
    }

    /// Counts an event that was refused because it is invalid. Batches count their own.
    pub fn count_invalid(&self, project: ProjectId) {
        self.count_drops(project, &DropCounts { invalid: 1, ..DropCounts::default() });
    }

    /// Counts the outcome of an event unless it was recorded, and its repairs.
    pub(super) fn count_receipt(&self, project: ProjectId, receipt: &Receipt, repaired: RepairCounts) {
        let mut counts = DropCounts { repaired, ..DropCounts::default() };
        match receipt.status {
            Status::Recorded => {}
            Status::Duplicate => counts.duplicates = 1,
            Status::Dropped(reason) => counts.count(reason),
        }
        self.count_drops(project, &counts);
    }

    /// Counts the outcomes of a batch. `dropped` has its dropped events.
    pub(super) fn count_batch(&self, project: ProjectId, receipt: &BatchReceipt, dropped: &DropCounts) {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let counts = DropCounts { duplicates: count(receipt.duplicates), invalid: count(receipt.errors.len()), ..*dropped };
        self.count_drops(project, &counts);
    }

    fn count_drops(&self, project: ProjectId, counts: &DropCounts) {
        if counts.is_empty() {
            return;
        }
        if let Some(config) = self.questions.registry.policy(project) {
            self.counts.add(project, config.policy.timezone.day_of(self.questions.clock().now()), counts);
        }
    }
}
