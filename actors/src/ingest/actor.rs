//! The ingest actor: gathers what arrives in one turn of its thread, submits it to the log as one batch per project, and
//! answers each sender when its events are applied.
//!
//! There is one per HTTP worker (and one for the embedded API), so that an event crosses threads in batches, and an answer
//! wakes only the sender's own thread. Its mailbox needs no bound of its own: senders pass the engine's
//! [`Gate`](crate::ingest::Gate) first.

use std::collections::HashMap;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use headcount_domain::floor::FloorMove;
use headcount_domain::ids::ProjectId;
use headcount_storage::log::{Commit, LogError};
use tokio::sync::oneshot;

use super::refusal::TrackError;
use crate::admission_gate::Permit;
use crate::event_codec::{Events, LogRecord};
use crate::shard::{Outcome, PartitionHealth, partition_of};

/// The events of one sender, all of one project, and the channel for the answer.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Track {
    pub(crate) events: Events,
    /// Kept until the events are applied, whether or not anybody waits for that.
    pub(crate) permit: Permit,
    pub(crate) answer: oneshot::Sender<Result<Vec<Outcome>, TrackError>>,
}

/// Records a floor of a project. Events that were sent before may come after it.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct RaiseFloor {
    pub(crate) floor: FloorMove,
    pub(crate) permit: Permit,
    pub(crate) answer: oneshot::Sender<Result<Vec<Outcome>, TrackError>>,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Flush;

/// Why a batch has no outcomes.
enum Unsettled {
    /// The log refused it: nothing was recorded.
    Refused(Arc<LogError>),
    /// It may be in the log.
    Unknown,
}

/// The result of a batch.
#[derive(Message)]
#[rtype(result = "()")]
struct Done {
    batch: u64,
    result: Result<Vec<Outcome>, Unsettled>,
}

/// Travels through the log with a batch: its record for the shard, and the way back.
pub(crate) struct Ticket {
    pub(crate) project: ProjectId,
    pub(crate) record: LogRecord,
    pub(crate) permits: Vec<Permit>,
    pub(crate) back: Return,
}

/// The way back to the ingest actor. Dropping it reports that the outcome is unknown.
pub(crate) struct Return {
    /// `None` once the result was returned.
    ingest: Option<Addr<IngestActor>>,
    batch: u64,
}

impl Return {
    /// Returns the outcomes.
    pub(crate) fn finish(mut self, outcomes: Vec<Outcome>) {
        self.send(Ok(outcomes));
    }

    /// Reports that the log refused the batch.
    pub(crate) fn refuse(mut self, reason: Arc<LogError>) {
        self.send(Err(Unsettled::Refused(reason)));
    }

    fn send(&mut self, result: Result<Vec<Outcome>, Unsettled>) {
        let Some(ingest) = self.ingest.take() else { return };
        #[expect(clippy::disallowed_methods, reason = "one answer per batch, and the gate bounds the batches under way")]
        ingest.do_send(Done { batch: self.batch, result });
    }

    /// Returns made-up outcomes; the real ones will find nobody waiting.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn finish_early(&self, outcomes: Vec<Outcome>) {
        let Some(ingest) = &self.ingest else { return };
        #[expect(clippy::disallowed_methods, reason = "as `send`")]
        ingest.do_send(Done { batch: self.batch, result: Ok(outcomes) });
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        self.send(Err(Unsettled::Unknown));
    }
}

struct Waiting {
    /// The number of its positions in the batch.
    events: usize,
    answer: oneshot::Sender<Result<Vec<Outcome>, TrackError>>,
}

/// The senders of a batch.
#[derive(Default)]
struct Senders {
    permits: Vec<Permit>,
    waiting: Vec<Waiting>,
}

#[derive(Default)]
struct Gathering {
    events: Events,
    from: Senders,
}

/// See the module.
pub(crate) struct IngestActor {
    log: Arc<dyn Commit<Ticket>>,
    health: Arc<PartitionHealth>,
    /// What has arrived in this turn.
    gathering: HashMap<ProjectId, Gathering>,
    flushing: bool,
    under_way: HashMap<u64, Vec<Waiting>>,
    next_batch: u64,
}

impl IngestActor {
    pub(crate) fn new(log: Arc<dyn Commit<Ticket>>, health: Arc<PartitionHealth>) -> Self {
        Self { log, health, gathering: HashMap::new(), flushing: false, under_way: HashMap::new(), next_batch: 0 }
    }

    fn submit(&mut self, project: ProjectId, record: LogRecord, from: Senders, me: Addr<Self>) {
        let Senders { permits, waiting } = from;
        let partition = partition_of(project);
        // The last check before the log: logged events are applied, at the latest by the next start.
        if let Err(why) = self.health.check_project(project) {
            return refuse(waiting, why);
        }
        let batch = self.next_batch;
        self.next_batch += 1;
        let count = u32::try_from(record.count()).unwrap_or(u32::MAX);
        let payload = match record.encode() {
            Ok(payload) => payload,
            Err(error) => return refuse(waiting, &format!("an event could not be encoded: {error}")),
        };
        let ticket = Ticket { project, record, permits, back: Return { ingest: Some(me), batch } };
        match self.log.submit(partition, count, payload, ticket) {
            Ok(()) => drop(self.under_way.insert(batch, waiting)),
            Err(_) => refuse(waiting, "the engine is shutting down"),
        }
    }
}

impl Actor for IngestActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Senders pass a gate of bytes first; the capacity only has to exceed what fits through it.
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<Track> for IngestActor {
    type Result = ();

    fn handle(&mut self, Track { events, permit, answer }: Track, ctx: &mut Context<Self>) {
        let Some(project) = events.first().map(|event| event.project) else {
            let _ = answer.send(Ok(Vec::new()));
            return;
        };
        let gathering = self.gathering.entry(project).or_default();
        gathering.from.waiting.push(Waiting { events: events.len(), answer });
        gathering.from.permits.push(permit);
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

impl Handler<RaiseFloor> for IngestActor {
    type Result = ();

    fn handle(&mut self, RaiseFloor { floor, permit, answer }: RaiseFloor, ctx: &mut Context<Self>) {
        let from = Senders { permits: vec![permit], waiting: vec![Waiting { events: 1, answer }] };
        self.submit(floor.project, LogRecord::Floor(floor), from, ctx.address());
    }
}

impl Handler<Flush> for IngestActor {
    type Result = ();

    fn handle(&mut self, _: Flush, ctx: &mut Context<Self>) {
        self.flushing = false;
        for (project, gathering) in std::mem::take(&mut self.gathering) {
            self.submit(project, LogRecord::Events(gathering.events), gathering.from, ctx.address());
        }
    }
}

impl Handler<Done> for IngestActor {
    type Result = ();

    fn handle(&mut self, Done { batch, result }: Done, _: &mut Context<Self>) {
        let Some(waiting) = self.under_way.remove(&batch) else { return };
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

fn refuse(waiting: Vec<Waiting>, why: &str) {
    for Waiting { answer, .. } in waiting {
        let _ = answer.send(Err(TrackError::Unavailable(why.to_owned())));
    }
}
