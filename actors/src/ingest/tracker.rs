//! The way from a sender to an ingest actor.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use headcount_domain::FloorMove;
use tokio::sync::oneshot;

use super::actor::{IngestActor, addresses};
use super::answers::{Answer, IngestAddresses};
use super::gathering::Gathering;
use super::refusal::TrackError;
use crate::admission_gate::Permit;
use crate::event_codec::Events;
use crate::import_mark::ImportMark;
use crate::shard::Outcome;

/// A handle for tracking from one thread of an actix system. Answers wake only that thread.
#[derive(Clone)]
pub struct Tracker {
    gathering: Arc<Gathering>,
    ingest: Arc<IngestAddresses>,
    /// How long senders wait.
    timeout: Duration,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tracker")
    }
}

impl Tracker {
    /// Starts an actor in the calling thread's actix system.
    ///
    /// A sender that waits longer than `timeout` gets [`TrackError::OutcomeUnknown`].
    pub(crate) fn start(gathering: Gathering, timeout: Duration) -> Self {
        let gathering = Arc::new(gathering);
        let ingest = addresses(&IngestActor::new(Arc::clone(&gathering)).start());
        Self { gathering, ingest, timeout }
    }

    /// Records events of one project, and answers when they are durable and applied. Their
    /// [`Permit`] is kept until then, even if the sender has left.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub(crate) async fn record(&self, events: Events, permit: Permit) -> Result<Vec<Outcome>, TrackError> {
        self.answered(|answer| self.gathering.add(events, permit, answer, &self.ingest)).await
    }

    /// Records a floor of a project, and answers when it is durable and applied.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub(crate) async fn raise_floor(&self, floor: FloorMove, permit: Permit) -> Result<(), TrackError> {
        self.answered(|answer| self.gathering.raise_floor(floor, permit, answer, &self.ingest)).await.map(drop)
    }

    /// Records a part of an import, even if the returned future is not polled. Answers like
    /// [`Self::record`], without a time limit.
    pub(crate) fn record_part(
        &self,
        events: Events,
        mark: Option<&ImportMark>,
        permit: Permit,
    ) -> impl Future<Output = Result<Vec<Outcome>, TrackError>> + use<> {
        let (answer, wait) = oneshot::channel();
        self.gathering.add_part(events, mark, (permit, answer), &self.ingest);
        async { wait.await.unwrap_or(Err(TrackError::OutcomeUnknown)) }
    }

    async fn answered(&self, send: impl FnOnce(Answer)) -> Result<Vec<Outcome>, TrackError> {
        let (answer, wait) = oneshot::channel();
        send(answer);
        match tokio::time::timeout(self.timeout, wait).await {
            Ok(Ok(result)) => result,
            _ => Err(TrackError::OutcomeUnknown),
        }
    }
}
