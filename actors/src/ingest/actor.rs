//! The ingest actor: answers senders on their own thread, and submits what a turn of that thread has gathered.
//!
//! There is one per HTTP worker (and one for the embedded API), so that an answer wakes only the sender's own thread, once for
//! all senders of a submission. Its mailbox needs no bound of its own: senders pass the engine's [`Gate`](crate::ingest::Gate) first.

use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use headcount_storage::log::LogError;
use tokio::sync::oneshot;

use super::gathering::Gathering;
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

/// Submit what was gathered.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Flush;

/// Why a submission has no outcomes.
enum Unsettled {
    /// The log refused it: nothing was recorded.
    Refused(Arc<LogError>),
    /// It may be in the log.
    Unknown,
}

/// The result of a submission.
#[derive(Message)]
#[rtype(result = "()")]
struct Done {
    waiting: Vec<Waiting>,
    result: Result<Vec<Outcome>, Unsettled>,
}

/// The way back to the senders of a submission. Dropping it reports that the outcome is unknown.
pub(crate) struct Return {
    /// `None` once the result was returned.
    way: Option<(Addr<IngestActor>, Vec<Waiting>)>,
}

impl Return {
    pub(super) fn new(ingest: Addr<IngestActor>, waiting: Vec<Waiting>) -> Self {
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

    /// Answers on the calling thread that nothing was recorded, for what never came to the log.
    pub(super) fn unavailable(mut self, why: &str) {
        if let Some((_, waiting)) = self.way.take() {
            refuse(waiting, why);
        }
    }

    fn send(&mut self, result: Result<Vec<Outcome>, Unsettled>) {
        let Some((ingest, waiting)) = self.way.take() else { return };
        #[expect(clippy::disallowed_methods, reason = "one answer per submission, and the gate bounds those under way")]
        ingest.do_send(Done { waiting, result });
    }

    /// Returns made-up outcomes; the real ones will find nobody waiting.
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

/// See the module.
pub(crate) struct IngestActor {
    gathering: Arc<Gathering>,
}

impl IngestActor {
    pub(crate) fn new(gathering: Arc<Gathering>) -> Self {
        Self { gathering }
    }
}

impl Drop for IngestActor {
    fn drop(&mut self) {
        self.gathering.close();
    }
}

impl Actor for IngestActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Senders pass a gate of bytes first; the capacity only has to exceed what fits through it.
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<Flush> for IngestActor {
    type Result = ();

    fn handle(&mut self, _: Flush, ctx: &mut Context<Self>) {
        self.gathering.flush(&ctx.address());
    }
}

impl Handler<Done> for IngestActor {
    type Result = ();

    fn handle(&mut self, Done { waiting, result }: Done, _: &mut Context<Self>) {
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(Unsettled::Refused(error)) => return refuse(waiting, &error.to_string()),
            Err(Unsettled::Unknown) => {
                return waiting.into_iter().for_each(|waiting| drop(waiting.answer.send(Err(TrackError::OutcomeUnknown))));
            }
        };
        let mut rest = outcomes.into_iter();
        for Waiting { events, answer } in waiting {
            let _ = answer.send(Ok(rest.by_ref().take(events).collect()));
        }
    }
}

/// Answers senders that nothing was recorded.
pub(super) fn refuse(waiting: Vec<Waiting>, why: &str) {
    for Waiting { answer, .. } in waiting {
        let _ = answer.send(Err(TrackError::Unavailable(why.to_owned())));
    }
}
