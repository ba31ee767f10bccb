//! The recording of events by the program that embeds the engine.

use headcount_domain::ProjectId;
use headcount_domain::intake::policy::Policy;

use super::handle::Engine;
use crate::admission_gate::Permit;
use crate::ingest::{BatchReceipt, NewEvent, Prepared, Receipt, Refusal, TrackError};

impl Engine {
    /// Records one event of `project`, and returns when it is durable and counted. Part of the
    /// embedded API.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn track(&self, project: ProjectId, event: &NewEvent) -> Result<Receipt, Refusal> {
        let config = self.registry().policy(project).ok_or(Refusal::UnknownProject)?;
        let permit = self.embedded_permit(project, event.size_bytes())?;
        let prepare = |policy: &Policy| {
            event.with_submission(|submission| self.ingest.prepare_submission(policy, submission, &event.origin()))
        };
        let prepared = self
            .ingest
            .with_pinned_config(config, prepare, |prepared| prepared.as_ref().is_ok_and(Prepared::is_recorded))
            .await?;
        if matches!(prepared, Err(Refusal::Invalid(_))) {
            self.ingest.count_invalid(project);
        }
        let prepared = prepared?;
        Ok(self.ingest.record(&self.ingest.tracker, project, prepared, permit).await?)
    }

    /// Records a batch of one project in one commit. Part of the embedded API.
    ///
    /// # Errors
    /// See [`Refusal`]; single invalid events are in the receipt.
    pub async fn track_batch(&self, project: ProjectId, events: &[NewEvent]) -> Result<BatchReceipt, Refusal> {
        let config = self.registry().policy(project).ok_or(Refusal::UnknownProject)?;
        let permit = self.embedded_permit(project, events.iter().map(NewEvent::size_bytes).sum())?;
        let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
            let one = |event: &NewEvent| {
                event.with_submission(|submission| self.ingest.prepare_submission(policy, submission, &event.origin()))
            };
            events.iter().map(one).collect()
        };
        let prepared = self
            .ingest
            .with_pinned_config(config, prepare, |prepared| prepared.iter().flatten().any(Prepared::is_recorded))
            .await?;
        Ok(self.ingest.record_batch(&self.ingest.tracker, project, prepared, permit).await?)
    }

    fn embedded_permit(&self, project: ProjectId, bytes: usize) -> Result<Permit, Refusal> {
        self.admission.admit(project, None, bytes).map_err(|why| TrackError::Unavailable(why.to_string()).into())
    }
}
