//! Gathers the events of senders, and submits them to the log: few submissions when there are many
//! senders, and no delay when there are few.

use std::collections::HashMap;
use std::sync::Arc;

use headcount_common::partition_of;
use headcount_domain::{FloorMove, ProjectId};
use headcount_storage::codec::CodecError;
use headcount_storage::log::Commit;
use parking_lot::Mutex;

use super::answers::{Answer, Flush, IngestAddresses, Return, Waiting, refuse};
use super::refusal::TrackError;
use crate::admission_gate::Permit;
use crate::event_codec::{self, Events, LogRecord};
use crate::import_mark::ImportMark;
use crate::shard::PartitionHealth;

/// From this many events on, a project's events are submitted at once. The log and the shard work
/// on them while the thread parses the next ones. In a single submission per turn, each event would
/// wait for all others.
const SUBMITTED_AT_ONCE: usize = 16;

const SHUTTING_DOWN: &str = "the engine is shutting down";

/// Travels through the log with a submission: its record for the shard, and the way back.
pub struct Ticket {
    pub(crate) project: ProjectId,
    pub(crate) record: LogRecord,
    pub(crate) permits: Vec<Permit>,
    pub(crate) back: Return,
}

/// The senders of a submission.
#[derive(Default)]
struct Senders {
    /// Kept until the events are applied, even if their senders have left.
    permits: Vec<Permit>,
    waiting: Vec<Waiting>,
}

impl Senders {
    fn add(&mut self, events: usize, permit: Permit, answer: Answer) {
        self.permits.push(permit);
        self.waiting.push(Waiting { events, answer });
    }
}

#[derive(Default)]
struct Gathered {
    events: Events,
    from: Senders,
}

#[derive(Default)]
struct GatheredByProject {
    by_project: HashMap<ProjectId, Gathered>,
    /// Whether a [`Flush`] is scheduled.
    flushing: bool,
    /// Whether the actor is gone, so that gathered events would never be submitted.
    closed: bool,
}

/// Gathers events of one thread (or of all callers of the embedded API).
pub(crate) struct Gathering {
    log: Arc<dyn Commit<Ticket>>,
    health: Arc<PartitionHealth>,
    state: Mutex<GatheredByProject>,
}

impl Gathering {
    pub(crate) fn new(log: Arc<dyn Commit<Ticket>>, health: Arc<PartitionHealth>) -> Self {
        Self { log, health, state: Mutex::default() }
    }

    /// Takes the events of one sender and one project, and answers when they are durable and
    /// applied.
    pub(super) fn add(&self, events: Events, permit: Permit, answer: Answer, ingest: &Arc<IngestAddresses>) {
        let Some(project) = events.first().map(|event| event.project) else {
            let _ = answer.send(Ok(Vec::new()));
            return;
        };
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            let _ = answer.send(Err(TrackError::Unavailable(SHUTTING_DOWN.to_owned())));
            return;
        }
        let gathered = state.by_project.entry(project).or_default();
        gathered.from.add(events.len(), permit, answer);
        if gathered.events.is_empty() {
            gathered.events = events;
        } else {
            gathered.events.extend(events);
        }
        if gathered.events.len() >= SUBMITTED_AT_ONCE {
            let gathered = state.by_project.remove(&project);
            drop(state);
            return self.submit_events(project, gathered.unwrap_or_default(), ingest);
        }
        if !std::mem::replace(&mut state.flushing, true) {
            drop(state);
            #[expect(clippy::disallowed_methods, reason = "one is on its way at most")]
            ingest.flush.do_send(Flush(Arc::clone(ingest)));
        }
    }

    /// Records a floor of a project. Events sent before may come after it.
    pub(super) fn raise_floor(&self, floor: FloorMove, permit: Permit, answer: Answer, ingest: &Arc<IngestAddresses>) {
        let mut from = Senders::default();
        from.add(1, permit, answer);
        self.submit(floor.project, LogRecord::Floor(floor), from, ingest);
    }

    /// Records a part of an import, with its mark if it has one, after all parts sent before.
    pub(super) fn add_part(
        &self,
        events: Events,
        mark: Option<&ImportMark>,
        (permit, answer): (Permit, Answer),
        ingest: &Arc<IngestAddresses>,
    ) {
        let Some(project) = events.first().map(|event| event.project) else { return };
        let mut from = Senders::default();
        from.add(events.len(), permit, answer);
        let marked = mark.map(|mark| event_codec::encode_marked(mark, &events));
        let record = LogRecord::Events(events);
        let payload = marked.unwrap_or_else(|| record.encode());
        self.submit_encoded(project, (record, payload), from, ingest);
    }

    /// Submits the gathered events.
    pub(super) fn flush(&self, ingest: &Arc<IngestAddresses>) {
        let mut state = self.state.lock();
        state.flushing = false;
        let gathered: Vec<_> = state.by_project.drain().collect();
        drop(state);
        for (project, gathered) in gathered {
            self.submit_events(project, gathered, ingest);
        }
    }

    /// Refuses the gathered events, and all later ones. Called when the actor is gone.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let gathered = std::mem::take(&mut state.by_project);
        drop(state);
        gathered.into_values().for_each(|gathered| refuse(gathered.from.waiting, SHUTTING_DOWN));
    }

    fn submit_events(&self, project: ProjectId, Gathered { events, from }: Gathered, ingest: &Arc<IngestAddresses>) {
        self.submit(project, LogRecord::Events(events), from, ingest);
    }

    fn submit(&self, project: ProjectId, record: LogRecord, from: Senders, ingest: &Arc<IngestAddresses>) {
        let payload = record.encode();
        self.submit_encoded(project, (record, payload), from, ingest);
    }

    fn submit_encoded(
        &self,
        project: ProjectId,
        (record, payload): (LogRecord, Result<Vec<u8>, CodecError>),
        from: Senders,
        ingest: &Arc<IngestAddresses>,
    ) {
        let Senders { permits, waiting } = from;
        let back = Return::new(Arc::clone(ingest), waiting);
        // The last check before the log: logged events are applied, at the latest by the next
        // start.
        if let Err(why) = self.health.check_project(project) {
            return back.unavailable(why);
        }
        let count = u32::try_from(record.count()).unwrap_or(u32::MAX);
        let payload = match payload {
            Ok(payload) => payload,
            Err(error) => return back.unavailable(&format!("an event could not be encoded: {error}")),
        };
        let ticket = Ticket { project, record, permits, back };
        if let Err(ticket) = self.log.submit(partition_of(project), count, payload, ticket) {
            ticket.back.unavailable(SHUTTING_DOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix::{Actor, System};
    use headcount_domain::intake::event::{Details, SentIds};
    use headcount_domain::{Day, Event, Instant};
    use tokio::sync::oneshot;

    use super::*;
    use crate::admission_gate::Gate;
    use crate::ingest::actor::{IngestActor, addresses};
    use crate::shard::Outcome;

    /// A log that takes everything, and forgets it.
    struct Forgetful;

    impl Commit<Ticket> for Forgetful {
        fn submit(&self, _: u16, _: u32, _: Vec<u8>, ticket: Ticket) -> Result<(), Ticket> {
            ticket.back.finish(Vec::new());
            Ok(())
        }

        fn end_segment(&self, _: u64) -> bool {
            true
        }

        fn close(&self) {}
    }

    fn event() -> Event {
        Event {
            project: ProjectId(1),
            time: Instant(0),
            received: Instant(0),
            day: Day(0),
            interactive: true,
            name: "pageview".into(),
            who: SentIds::default(),
            external_id: None,
            money: None,
            company: None,
            company_domain: None,
            email_company: None,
            details: Details::default(),
        }
    }

    fn send(gathering: &Gathering, ingest: &Arc<IngestAddresses>) -> oneshot::Receiver<Result<Vec<Outcome>, TrackError>> {
        let (answer, wait) = oneshot::channel();
        let permit = Gate::new(1).take(1).unwrap();
        gathering.add(vec![Box::new(event())], permit, answer, ingest);
        wait
    }

    #[test]
    fn senders_hear_at_once_that_the_actor_is_gone() {
        let gathering = Arc::new(Gathering::new(Arc::new(Forgetful), Arc::default()));
        let system = System::new();
        let (ingest, before) = system.block_on(async {
            let ingest = addresses(&IngestActor::new(Arc::clone(&gathering)).start());
            let answered = tokio::time::timeout(Duration::from_secs(10), send(&gathering, &ingest)).await.unwrap();
            assert!(answered.unwrap().is_ok());
            // Gathered, and not submitted: the system ends first.
            (ingest.clone(), send(&gathering, &ingest))
        });
        drop(system);
        let refused = |mut wait: oneshot::Receiver<_>| matches!(wait.try_recv(), Ok(Err(TrackError::Unavailable(_))));
        assert!(refused(before));
        assert!(refused(send(&gathering, &ingest)));
    }
}
