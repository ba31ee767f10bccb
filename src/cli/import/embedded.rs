//! Importing into the data directory itself, when no server holds it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::admission_gate::Permit;
use headcount_actors::ingest::{BatchReceipt, Origin, Prepared, Refusal};
use headcount_actors::{Engine, TrackError};
use headcount_domain::intake::policy::Policy;
use tokio::task::JoinHandle;

use super::events::{Events, too_large};
use super::lines::Place;
use super::pipeline::Batch;
use super::report::Reporter;
use super::session::{EventSink, Session};
use crate::cli::failure::Failure;

/// How many batches are under way at once: the log writes one while the shard applies another.
const MAX_UNDER_WAY: usize = 6;
/// The memory that an event takes under way beyond its JSON.
const EVENT_OVERHEAD_BYTES: usize = 768;
/// How long the oldest batch under way may take. The others don't count: they wait for it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);

/// An engine in this process.
pub(crate) struct EmbeddedEngine {
    engine: Engine,
    policy: Arc<Policy>,
    as_new: bool,
    under_way: VecDeque<BatchUnderWay>,
}

struct BatchUnderWay {
    end: Place,
    spans: Vec<(Range<usize>, u64)>,
    recording: JoinHandle<Result<BatchReceipt, TrackError>>,
}

impl EmbeddedEngine {
    /// Creates the sink of events of the project with this policy.
    pub(crate) fn new(engine: Engine, policy: Policy, as_new: bool) -> Self {
        Self { engine, policy: Arc::new(policy), as_new, under_way: VecDeque::new() }
    }

    /// Waits until another batch may begin. From time to time it waits for all batches, and truncates the journal.
    async fn make_room(&mut self, session: &mut Session) -> Result<(), Failure> {
        let journal = session.journal.as_mut().filter(|journal| journal.is_long());
        let most = if journal.is_some() { 0 } else { MAX_UNDER_WAY - 1 };
        while self.under_way.len() > most
            && let Some(first) = self.under_way.pop_front()
        {
            first.finish(&mut session.reporter).await?;
        }
        Ok(journal.map_or(Ok(()), |journal| journal.restart(self.log_position()))?)
    }

    /// Waits for memory for `bytes` of events.
    async fn permit(&self, bytes: usize) -> Result<Permit, Failure> {
        let bytes = bytes.min(self.engine.vitals().admission_limit_bytes);
        loop {
            if let Some(why) = self.engine.unavailable() {
                return Err(Failure(format!("nothing more can be recorded: {why}")));
            }
            if let Some(permit) = self.engine.admit_bytes(bytes) {
                return Ok(permit);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl EventSink for EmbeddedEngine {
    type Prepared = Vec<Result<Prepared, Refusal>>;

    fn prepare(&self) -> (usize, impl Fn(&mut Events) -> Self::Prepared + Send + Sync + 'static) {
        let (engine, policy, as_new) = (self.engine.clone(), Arc::clone(&self.policy), self.as_new);
        let prepare = move |json: &[u8]| match too_large(json) {
            Some(invalid) => Err(Refusal::Invalid(invalid)),
            None if as_new => engine.prepare(&policy, json, &Origin::SERVER),
            None => engine.prepare_import(&policy, json),
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (threads, move |events: &mut Events| events.iter().map(&prepare).collect())
    }

    fn log_position(&self) -> Option<u64> {
        Some(self.engine.vitals().log_position)
    }

    async fn submit(&mut self, batch: Batch<Self::Prepared>, session: &mut Session) -> Result<(), Failure> {
        self.make_room(session).await?;
        let Batch { events: Events { end, json, spans, .. }, prepared } = batch;
        let permit = self.permit(json.len() + prepared.len() * EVENT_OVERHEAD_BYTES).await?;
        session.announce(prepared.iter().flatten().filter(|event| event.is_recorded()).count(), end)?;
        let (engine, project) = (self.engine.clone(), self.policy.project);
        // Tasks of this runtime begin in the order in which they are spawned, and so do their events in the log.
        let recording =
            tokio::spawn(
                async move { engine.record_batch(&engine.tracker().without_timeout(), project, prepared, permit).await },
            );
        self.under_way.push_back(BatchUnderWay { end, spans, recording });
        Ok(())
    }

    async fn finish(&mut self, reporter: &mut Reporter) -> Result<(), Failure> {
        let mut result = Ok(());
        for batch in self.under_way.drain(..) {
            let finished = batch.finish(reporter).await;
            result = result.and(finished);
        }
        result
    }
}

impl BatchUnderWay {
    async fn finish(self, reporter: &mut Reporter) -> Result<(), Failure> {
        let until = self.end.lines;
        let receipt = tokio::time::timeout(BATCH_TIMEOUT, self.recording).await;
        let receipt =
            receipt.map_err(|_| Failure(format!("the lines up to line {until} were not applied in {BATCH_TIMEOUT:?}")))?;
        let receipt = receipt.map_err(|_| Failure("recording failed".into()))?;
        let receipt = receipt.map_err(|error| Failure(format!("the lines up to line {until}: {error}")))?;
        reporter.recorded(receipt.into(), &self.spans);
        Ok(())
    }
}
