//! Refuses events that exceed a quota of their project.
//!
//! Whether a quota is reached is known after an event is applied, and checked before an event is
//! logged. So a project can exceed a quota by the events in flight when it was reached, which the
//! admission gate bounds. Logged events always count.

use headcount_common::partition_of;
use headcount_domain::{Event, Mentions, ProjectId, Quota, Quotas, Reached};

use super::{Ingest, QuotaExceeded, TrackError};
use crate::shard::AskError;
use crate::shard::QuotaCheck;

/// The maximum number of events in one request, so that a shard can do other work in between.
const TOGETHER: usize = 256;

impl Ingest {
    /// The quotas of a project.
    #[must_use]
    pub fn quotas(&self, project: ProjectId) -> Quotas {
        self.quotas.of(project)
    }

    /// Applies a project's quotas from the registry, from the next event on.
    ///
    /// # Errors
    /// See [`AskError`]. The quotas still apply as soon as the project's numbers change, or after
    /// the next start.
    pub async fn apply_quotas(&self, project: ProjectId) -> Result<(), AskError> {
        let Some(config) = self.questions.registry().policy(project) else { return Ok(()) };
        self.quotas.set_own(project, config.quotas);
        if !self.questions.owners().is_here(partition_of(project)) {
            // The owner applies them.
            return Ok(());
        }
        self.questions.ask_shard(project, move |shard| shard.recount(project)).await
    }

    /// Returns the events, by index, that would exceed a quota of their project. All `events`
    /// belong to one project.
    ///
    /// # Errors
    /// The quotas can't be checked now, so nothing may be recorded.
    pub(super) async fn over_quota(&self, events: &[Box<Event>]) -> Result<Vec<(usize, QuotaExceeded)>, TrackError> {
        let Some(project) = events.first().map(|event| event.project) else { return Ok(Vec::new()) };
        let reached = self.reached(project).await;
        if reached.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = self.to_ask(events, reached);
        let mut refused = Vec::new();
        while !asked.is_empty() {
            let some = asked.drain(..TOGETHER.min(asked.len())).collect();
            refused.extend(self.ask_quotas(project, some).await?);
        }
        Ok(refused)
    }

    /// Returns the necessary checks. Events that mention no new value of a `reached` kind need
    /// none.
    fn to_ask(&self, events: &[Box<Event>], reached: Reached) -> Vec<QuotaCheck> {
        let hasher = self.questions.hasher();
        let mut asked = Vec::new();
        for (place, event) in events.iter().enumerate() {
            let mentions = Mentions::of(event, reached, hasher);
            if !mentions.is_empty() {
                let external_id = event.external_id.as_deref().map(|id| hasher.external_id(event.project, id));
                asked.push(QuotaCheck { place, external_id, mentions });
            }
        }
        asked
    }

    /// Returns the quotas that a project has reached.
    async fn reached(&self, project: ProjectId) -> Reached {
        if self.quotas.is_unlimited() {
            return Reached::default();
        }
        if !self.questions.versions.contains_key(&project) {
            // Reading loads a project that is not loaded. If that fails, it counts as below its
            // quotas.
            let _ = self.questions.last(project).await;
        }
        self.quotas.reached(project)
    }

    async fn ask_quotas(&self, project: ProjectId, asked: Vec<QuotaCheck>) -> Result<Vec<(usize, QuotaExceeded)>, TrackError> {
        let quotas = &self.quotas;
        let answer = self.questions.ask_shard(project, move |shard| {
            let exceeded = shard.over_quota(project, &asked)?;
            Ok(asked.iter().map(|asked| asked.place).zip(exceeded).collect::<Vec<_>>())
        });
        let answer =
            answer.await.map_err(|error| TrackError::Unavailable(format!("the project's quotas can't be checked: {error}")))?;
        let exceeded = |(place, quota): (usize, Option<Quota>)| {
            let quota = quota?;
            quotas.count_refusal(quota);
            Some((place, QuotaExceeded { quota, limit: quotas.of(project).limit(quota) }))
        };
        Ok(answer.into_iter().filter_map(exceeded).collect())
    }
}
