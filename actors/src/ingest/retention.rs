//! Raises the floors of projects as their retention says.

use std::sync::Arc;
use std::time::Duration;

use headcount_common::partition_of;
use headcount_domain::{Day, Event, FloorMove, ProjectId, Window};

use super::{Ingest, TrackError};
use crate::admission_gate::Holder;

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(60);
/// The bytes of a floor's record in the admission limit.
const RECORD_BYTES: usize = 64;

impl Ingest {
    /// Whether the day of an event no longer changes, as far as this engine knows. Its shard
    /// decides.
    pub(super) fn is_below_floor(&self, event: &Event) -> bool {
        self.questions.known_floor(event.project).is_some_and(|floor| event.day < floor)
    }

    /// Raises the floor of a project to the day that its retention leaves. Returns its floor, which
    /// never falls.
    ///
    /// The record of the floor is admitted on a nearly full disk, since removing events frees
    /// space.
    ///
    /// # Errors
    /// Returns a [`TrackError`]: the record could not be written, or the outcome is unknown.
    pub async fn apply_retention(&self, project: ProjectId) -> Result<Option<Day>, TrackError> {
        let Some(config) = self.questions.registry().policy(project) else { return Ok(None) };
        if !self.questions.owners().is_here(partition_of(project)) {
            // The owner applies it.
            return Ok(None);
        }
        let known = self.questions.floor(project).await.map_err(|error| TrackError::Unavailable(error.to_string()))?;
        let Some(days) = config.retention_days else { return Ok(known) };
        // A clock that is far ahead raises no floor, because the data below a floor are lost.
        let now = self.clock_guard.now_for(days);
        let Window { start: day, .. } = Window::last_days(days, config.policy.timezone, now);
        if known.is_some_and(|known| known >= day) {
            return Ok(known);
        }
        let holder = [Some(Holder::Project(project)), None];
        let permit = self.admission.gate.take_for(holder, RECORD_BYTES);
        let permit = permit.map_err(|refused| TrackError::Unavailable(refused.to_string()))?;
        // A deletion waits for the permits of its project. No further permit is given.
        if self.admission.is_deleted(project) {
            return Ok(None);
        }
        self.tracker.raise_floor(FloorMove { project, day }, permit).await?;
        Ok(Some(day))
    }

    /// Raises the floors of the projects that `is_wanted` selects. Returns whether all succeeded.
    async fn apply_retentions(&self, is_wanted: impl Fn(ProjectId) -> bool) -> bool {
        let mut succeeded = true;
        for (project, _) in self.questions.registry().retentions().into_iter().filter(|(project, _)| is_wanted(*project)) {
            if self.admission.is_closing() {
                return true;
            }
            if let Err(error) = self.apply_retention(project).await {
                tracing::warn!(%project, %error, "the retention of a project could not be applied; it is tried again");
                succeeded = false;
            }
        }
        succeeded
    }

    /// Applies the quotas of some projects, which other machines changed, and raises the floors of
    /// the projects that `is_wanted` selects once.
    pub(crate) fn apply_changes_soon(
        self: &Arc<Self>,
        quotas: Vec<ProjectId>,
        is_wanted: impl Fn(ProjectId) -> bool + Send + Sync + 'static,
    ) {
        let ingest = Arc::clone(self);
        self.arbiter.spawn(async move {
            for project in quotas {
                if let Err(error) = ingest.apply_quotas(project).await {
                    tracing::warn!(%project, %error, "the quotas of a project hold as soon as its numbers change");
                }
            }
            // Failures are retried with the other floors.
            let _succeeded = ingest.apply_retentions(is_wanted).await;
        });
    }

    /// Raises floors now and at every interval, while the engine exists.
    pub(crate) fn start_retention(self: &Arc<Self>) {
        let (ingest, interval) = (Arc::downgrade(self), self.retention_interval);
        self.arbiter.spawn(async move {
            while let Some(ingest) = ingest.upgrade() {
                let succeeded = ingest.apply_retentions(|_| true).await;
                drop(ingest);
                tokio::time::sleep(if succeeded { interval } else { PAUSE }).await;
            }
        });
    }
}
