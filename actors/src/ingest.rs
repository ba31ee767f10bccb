//! The ingest actor: gathers what arrives in one turn of its thread, has it logged as one batch per partition, and
//! answers each sender when its events are in the state.
//!
//! One per HTTP worker (and one for the embedded API), so that an event crosses threads in batches, and an answer is a
//! wake-up on the sender's own thread. Its mailbox needs no bound of its own: senders pass the engine's [`crate::gate::Gate`] first.

use std::collections::HashMap;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use headcount_storage::log::{GroupCommit, LogError};
use tokio::sync::oneshot;

use crate::aggregator::{Events, Outcome, partition_of};
use crate::logged;

/// Why events were not recorded, or why nobody knows.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TrackError {
    /// The engine can't take them now; nothing was recorded.
    #[error("nothing was recorded: {0}")]
    Unavailable(String),
    /// They are in the log, and their shard did not come back: they may or may not be counted until it does.
    #[error("the outcome is not known yet")]
    OutcomeUnknown,
}

/// The events of one sender, all of one project, and where to answer.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Track {
    pub(crate) events: Events,
    pub(crate) answer: oneshot::Sender<Result<Vec<Outcome>, TrackError>>,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Flush;

/// What became of a batch.
#[derive(Message)]
#[rtype(result = "()")]
struct Done {
    batch: u64,
    result: Result<Vec<Outcome>, Arc<LogError>>,
}

/// What the log carries along with a batch, for the shard and the way back.
pub(crate) struct Ticket {
    pub(crate) events: Events,
    ingest: Addr<Ingest>,
    batch: u64,
}

impl Ticket {
    /// Takes the ticket apart: the events, and how to answer.
    pub(crate) fn split(self) -> (Events, Return) {
        (self.events, Return { ingest: self.ingest, batch: self.batch })
    }
}

/// The way back to the ingest actor; dropping it says that the outcome is unknown.
pub(crate) struct Return {
    ingest: Addr<Ingest>,
    batch: u64,
}

impl Return {
    /// Brings the result back.
    pub(crate) fn finish(self, result: Result<Vec<Outcome>, Arc<LogError>>) {
        #[expect(clippy::disallowed_methods, reason = "one answer per batch, and the gate bounds the batches under way")]
        self.ingest.do_send(Done { batch: self.batch, result });
    }

    /// Brings outcomes back that are made up; the real ones find nobody waiting.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn finish_early(&self, outcomes: Vec<Outcome>) {
        #[expect(clippy::disallowed_methods, reason = "as `finish`")]
        self.ingest.do_send(Done { batch: self.batch, result: Ok(outcomes) });
    }
}

struct Waiting {
    events: usize,
    answer: oneshot::Sender<Result<Vec<Outcome>, TrackError>>,
}

#[derive(Default)]
struct Gathering {
    events: Events,
    waiting: Vec<Waiting>,
}

/// See the module.
pub(crate) struct Ingest {
    log: Arc<GroupCommit<Ticket>>,
    /// What has arrived in this turn, by partition.
    gathering: Vec<(u16, Gathering)>,
    flushing: bool,
    under_way: HashMap<u64, Vec<Waiting>>,
    next_batch: u64,
}

impl Ingest {
    pub(crate) fn new(log: Arc<GroupCommit<Ticket>>) -> Self {
        Self { log, gathering: Vec::new(), flushing: false, under_way: HashMap::new(), next_batch: 0 }
    }

    /// What has arrived for a partition; a turn brings few different ones.
    fn gathering_of(&mut self, partition: u16) -> &mut Gathering {
        let place = self.gathering.iter().position(|(known, _)| *known == partition).unwrap_or_else(|| {
            self.gathering.push((partition, Gathering::default()));
            self.gathering.len() - 1
        });
        &mut self.gathering[place].1
    }

    fn submit(&mut self, partition: u16, gathering: Gathering, me: Addr<Self>) {
        let Gathering { events, waiting } = gathering;
        let batch = self.next_batch;
        self.next_batch += 1;
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let payload = match logged::encode(&events) {
            Ok(payload) => payload,
            Err(error) => return refuse(waiting, &format!("an event could not be encoded: {error}")),
        };
        let ticket = Ticket { events, ingest: me, batch };
        match self.log.submit(partition, count, payload, ticket) {
            Ok(()) => drop(self.under_way.insert(batch, waiting)),
            Err(_) => refuse(waiting, "the engine is shutting down"),
        }
    }
}

impl Actor for Ingest {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Senders pass a gate of bytes first; this only has to be larger than what fits through it.
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<Track> for Ingest {
    type Result = ();

    fn handle(&mut self, Track { events, answer }: Track, ctx: &mut Context<Self>) {
        let Some(partition) = events.first().map(|event| partition_of(event.project)) else {
            let _ = answer.send(Ok(Vec::new()));
            return;
        };
        let gathering = self.gathering_of(partition);
        gathering.waiting.push(Waiting { events: events.len(), answer });
        if gathering.events.is_empty() {
            gathering.events = events;
        } else {
            gathering.events.extend(events);
        }
        if !self.flushing {
            self.flushing = true;
            ctx.notify(Flush);
        }
    }
}

impl Handler<Flush> for Ingest {
    type Result = ();

    fn handle(&mut self, _: Flush, ctx: &mut Context<Self>) {
        self.flushing = false;
        for (partition, gathering) in std::mem::take(&mut self.gathering) {
            self.submit(partition, gathering, ctx.address());
        }
    }
}

impl Handler<Done> for Ingest {
    type Result = ();

    fn handle(&mut self, Done { batch, result }: Done, _: &mut Context<Self>) {
        let Some(waiting) = self.under_way.remove(&batch) else { return };
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(error) => return refuse(waiting, &error.to_string()),
        };
        let mut rest = outcomes.into_iter();
        for Waiting { events, answer } in waiting {
            let _ = answer.send(Ok(rest.by_ref().take(events).collect()));
        }
    }
}

fn refuse(waiting: Vec<Waiting>, why: &str) {
    for Waiting { answer, .. } in waiting {
        let _ = answer.send(Err(TrackError::Unavailable(why.to_owned())));
    }
}
