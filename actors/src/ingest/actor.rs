//! The ingest actor: answers senders on their own thread, and submits the events that one turn of
//! that thread has gathered.
//!
//! There is one per HTTP worker (and one for the embedded API), so that an answer wakes only the
//! sender's own thread, once for all senders of a submission. Its mailbox needs no bound, since
//! senders pass the engine's [`Gate`](crate::ingest::Gate) first.

use std::sync::Arc;

use actix::{Actor, Addr, Context, Handler};

use super::answers::{Done, Flush, IngestAddresses, Unsettled, Waiting, refuse};
use super::gathering::Gathering;
use super::refusal::TrackError;

/// The ingest actor of one thread.
pub(crate) struct IngestActor {
    gathering: Arc<Gathering>,
}

impl IngestActor {
    pub(crate) fn new(gathering: Arc<Gathering>) -> Self {
        Self { gathering }
    }
}

/// Returns the addresses for senders and submissions.
pub(super) fn addresses(ingest: &Addr<IngestActor>) -> Arc<IngestAddresses> {
    Arc::new(IngestAddresses { flush: ingest.clone().recipient(), done: ingest.clone().recipient() })
}

impl Drop for IngestActor {
    fn drop(&mut self) {
        self.gathering.close();
    }
}

impl Actor for IngestActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Senders pass a gate of bytes first. The capacity only has to exceed the number of
        // requests that fit through the gate.
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<Flush> for IngestActor {
    type Result = ();

    fn handle(&mut self, Flush(ingest): Flush, _: &mut Context<Self>) {
        self.gathering.flush(&ingest);
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
