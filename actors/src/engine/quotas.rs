//! Refuses events that would make a new thing of a kind of which their project has as many as it may.
//!
//! Whether a quota is reached is known after an event is applied, and asked for before one is logged. So a project can
//! exceed a quota by what was under way when it was reached; the gate bounds that. What is in the log always counts.

use std::fmt;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Event;
use headcount_domain::quota::{Mentions, Quota, Quotas, Reached};

use super::{AskError, Engine};
use crate::ingest::TrackError;

/// How many events one question is about at most, so that a shard can do something else in between.
const TOGETHER: usize = 256;

/// An event would make a new thing of a kind of which its project has as many as it may. Nothing of the event was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// The kind.
    pub quota: Quota,
    /// How many of the kind a project may have.
    pub limit: usize,
}

impl QuotaExceeded {
    /// The code of this refusal, for programs.
    pub const CODE: &'static str = "quota_exceeded";
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, limit) = (self.quota.name(), self.limit);
        write!(f, "the project has reached its quota of {limit} {name}; events that name only known {name} are still recorded")
    }
}

/// What is asked about one event.
pub(crate) struct Asked {
    /// The place of the event among those that are to be recorded.
    place: usize,
    /// The fingerprint of its idempotency key: a duplicate makes nothing new.
    pub(crate) external_id: Option<u128>,
    pub(crate) mentions: Mentions,
}

impl Engine {
    /// The events, by their places, that would exceed a quota of their project. All of `events` are of one project.
    ///
    /// # Errors
    /// The quotas can't be checked now; nothing may be recorded.
    pub(crate) async fn over_quota(&self, events: &[Box<Event>]) -> Result<Vec<(usize, QuotaExceeded)>, TrackError> {
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

    /// What has to be asked: nothing of an event that names nothing of the kinds that are `reached`.
    fn to_ask(&self, events: &[Box<Event>], reached: Reached) -> Vec<Asked> {
        let hasher = self.hasher();
        let mut asked = Vec::new();
        for (place, event) in events.iter().enumerate() {
            let mentions = Mentions::of(event, reached, hasher);
            if !mentions.is_empty() {
                let external_id = event.external_id.as_deref().map(|id| hasher.external_id(event.project, id));
                asked.push(Asked { place, external_id, mentions });
            }
        }
        asked
    }

    /// The quotas that a project has reached.
    async fn reached(&self, project: ProjectId) -> Reached {
        let inner = &*self.inner;
        if *inner.limits.quotas() == Quotas::UNLIMITED {
            return Reached::default();
        }
        if !inner.versions.contains_key(&project) {
            // Not loaded since the start: asking for it loads it. Where that fails, the project is not known to be at a limit.
            let _ = self.ask(project, |_| ()).await;
        }
        inner.limits.reached(project)
    }

    async fn ask_quotas(&self, project: ProjectId, asked: Vec<Asked>) -> Result<Vec<(usize, QuotaExceeded)>, TrackError> {
        let limits = &self.inner.limits;
        let answer = self.ask_shard(project, move |shard| {
            let exceeded = shard.over_quota(project, &asked)?;
            Ok(asked.iter().map(|asked| asked.place).zip(exceeded).collect::<Vec<_>>())
        });
        let answer = answer.await.and_then(|answer| answer.map_err(AskError::Lost));
        let answer =
            answer.map_err(|error| TrackError::Unavailable(format!("the project's quotas can't be checked: {error}")))?;
        let exceeded = |(place, quota): (usize, Option<Quota>)| {
            let quota = quota?;
            limits.count_refusal(quota);
            Some((place, QuotaExceeded { quota, limit: limits.quotas().limit(quota) }))
        };
        Ok(answer.into_iter().filter_map(exceeded).collect())
    }
}
