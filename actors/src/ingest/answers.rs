//! The way back to senders: the outcomes that they wait for, and the messages that carry them to
//! their thread.

use std::sync::Arc;

use actix::{Message, Recipient};
use headcount_storage::log::LogError;
use tokio::sync::oneshot;

use super::refusal::TrackError;
use crate::shard::Outcome;

/// Answers a sender.
pub(super) type Answer = oneshot::Sender<Result<Vec<Outcome>, TrackError>>;

/// A sender that waits for the outcomes of its events.
pub(super) struct Waiting {
    /// The number of its positions in the submission.
    pub(super) events: usize,
    pub(super) answer: Answer,
}

/// Submits the gathered events.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Flush(pub(super) Arc<IngestAddresses>);

/// The reason why a submission has no outcomes.
pub(super) enum Unsettled {
    /// The log refused it: nothing was recorded.
    Refused(Arc<LogError>),
    /// The events may be in the log.
    Unknown,
}

/// The result of a submission.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Done {
    pub(super) waiting: Vec<Waiting>,
    pub(super) result: Result<Vec<Outcome>, Unsettled>,
}

/// The addresses of an ingest actor.
pub(super) struct IngestAddresses {
    pub(super) flush: Recipient<Flush>,
    pub(super) done: Recipient<Done>,
}

/// The way back to the senders of a submission. Dropping it reports that the outcome is unknown.
pub(crate) struct Return {
    /// The senders; `None` after the result was returned.
    way: Option<(Arc<IngestAddresses>, Vec<Waiting>)>,
}

impl Return {
    pub(super) fn new(ingest: Arc<IngestAddresses>, waiting: Vec<Waiting>) -> Self {
        Self { way: Some((ingest, waiting)) }
    }

    /// Returns the outcomes.
    pub(crate) fn finish(mut self, outcomes: Vec<Outcome>) {
        self.send(Ok(outcomes));
    }

    /// Reports that the log refused the submission.
    pub(crate) fn refuse(mut self, reason: Arc<LogError>) {
        self.send(Err(Unsettled::Refused(reason)));
    }

    /// Answers on the calling thread that nothing was recorded, for events that never reached the
    /// log.
    pub(super) fn unavailable(mut self, why: &str) {
        if let Some((_, waiting)) = self.way.take() {
            refuse(waiting, why);
        }
    }

    fn send(&mut self, result: Result<Vec<Outcome>, Unsettled>) {
        let Some((ingest, waiting)) = self.way.take() else { return };
        #[expect(clippy::disallowed_methods, reason = "one answer per submission, and the gate bounds those under way")]
        ingest.done.do_send(Done { waiting, result });
    }

    /// Returns made-up outcomes. The real ones will find no receiver.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn finish_early(&mut self, outcomes: Vec<Outcome>) {
        self.send(Ok(outcomes));
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        self.send(Err(Unsettled::Unknown));
    }
}

/// Answers senders that nothing was recorded.
pub(super) fn refuse(waiting: Vec<Waiting>, why: &str) {
    for Waiting { answer, .. } in waiting {
        let _ = answer.send(Err(TrackError::Unavailable(why.to_owned())));
    }
}
