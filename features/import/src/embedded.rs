//! Imports directly into a data directory that no server has open.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::admission_gate::Permit;
use headcount_actors::ingest::{ImportReceipt, Origin, Prepared, Refusal};
use headcount_actors::{Engine, TrackError};
use headcount_api::command::Failure;
use headcount_domain::intake::policy::Policy;

use super::events::{Events, too_large};
use super::journal::Journal;
use super::pipeline::Batch;
use super::read_lines::{ImportedPart, runs};
use super::session::{EventSink, Session, save_when_idle};

/// The number of batches in flight: the log writes one while the shard applies another.
const MAX_UNDER_WAY: usize = 6;
/// The memory of an event in flight, beyond its JSON.
const EVENT_OVERHEAD_BYTES: usize = 768;
/// The time limit of the oldest batch in flight. The others don't count: they wait for it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);

/// An engine in this process.
pub(crate) struct EmbeddedEngine {
    engine: Engine,
    policy: Arc<Policy>,
    as_new: bool,
    under_way: VecDeque<BatchUnderWay>,
    /// Whether the results of all finished batches are known.
    is_known: bool,
}

type Recording = Pin<Box<dyn Future<Output = Result<ImportReceipt, TrackError>>>>;

struct BatchUnderWay {
    part: ImportedPart,
    spans: Vec<(Range<usize>, u64)>,
    recording: Recording,
}

impl EmbeddedEngine {
    /// Creates the sink of events of the project with this policy.
    pub(crate) fn new(engine: Engine, policy: Policy, as_new: bool) -> Self {
        Self { engine, policy: Arc::new(policy), as_new, under_way: VecDeque::new(), is_known: true }
    }

    /// Waits for the oldest batch.
    async fn end_oldest(&mut self, session: &mut Session) -> Result<(), Failure> {
        let Some(oldest) = self.under_way.front_mut() else { return Ok(()) };
        let until = oldest.part.until.lines;
        let receipt = match tokio::time::timeout(BATCH_TIMEOUT, &mut oldest.recording).await {
            Ok(receipt) => receipt.map_err(|error| Failure(format!("the lines up to line {until}: {error}"))),
            Err(_) => Err(Failure(format!("the lines up to line {until} were not applied in {BATCH_TIMEOUT:?}"))),
        };
        let Some(BatchUnderWay { part, spans, .. }) = self.under_way.pop_front() else { return Ok(()) };
        let ImportReceipt { batch, position } = receipt.inspect_err(|_| self.is_known = false)?;
        session.reporter.recorded(batch.into(), &spans);
        // Before the journal records these lines as read.
        session.reporter.show()?;
        let Some(journal) = &mut session.journal else { return Ok(()) };
        // The log may have marks of failed batches before this one.
        journal.recorded(&part, position.filter(|_| self.is_known));
        if journal.is_due() { self.save(journal) } else { Ok(()) }
    }

    /// Writes the journal, and releases the marks that the journal has from the log.
    fn save(&self, journal: &mut Journal) -> Result<(), Failure> {
        journal.save()?;
        self.engine.ingest.keep_for_imports(journal.log_after());
        Ok(())
    }

    /// Waits for memory for `bytes` of events.
    async fn permit(&self, bytes: usize) -> Result<Permit, Failure> {
        let bytes = bytes.min(self.engine.vitals().admission_limit_bytes);
        loop {
            if let Some(why) = self.engine.admission.unavailable() {
                return Err(Failure(format!("no more events can be recorded: {why}")));
            }
            if let Some(permit) = self.engine.admission.admit_bytes(bytes) {
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
            None if as_new => engine.ingest.prepare(&policy, json, &Origin::SERVER),
            None => engine.ingest.prepare_import(&policy, json),
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (threads, move |events: &mut Events| events.iter().map(&prepare).collect())
    }

    const IS_SERVER: bool = false;

    async fn submit(&mut self, batch: Batch<Self::Prepared>, session: &mut Session) -> Result<(), Failure> {
        while self.under_way.len() >= MAX_UNDER_WAY {
            self.end_oldest(session).await?;
        }
        let Batch { events, prepared } = batch;
        let permit = self.permit(events.json.len() + prepared.len() * EVENT_OVERHEAD_BYTES).await?;
        let part = part(&events, &prepared);
        let mut mark = None;
        if let Some(journal) = &mut session.journal {
            if journal.recording(self.engine.vitals().log_position)? {
                self.engine.ingest.keep_for_imports(journal.log_after());
            }
            mark = Some(journal.mark(&part));
        }
        let recording = self.engine.ingest.record_imported(self.policy.project, prepared, mark.as_ref(), permit);
        let recording =
            Box::pin(recording.map_err(|error| Failure(format!("the lines up to line {}: {error}", part.until.lines)))?);
        self.under_way.push_back(BatchUnderWay { part, spans: events.spans, recording });
        Ok(())
    }

    async fn idle(&mut self, session: &mut Session) -> Result<(), Failure> {
        if self.under_way.is_empty() { save_when_idle(session).await } else { self.end_oldest(session).await }
    }

    async fn finish(&mut self, session: &mut Session) -> Result<(), Failure> {
        let mut result = Ok(());
        while !self.under_way.is_empty() {
            let ended = self.end_oldest(session).await;
            result = result.and(ended);
        }
        if let Some(journal) = &mut session.journal {
            if self.is_known {
                journal.has_all_marks();
            }
            if journal.is_unsaved() {
                self.save(journal)?;
            }
        }
        result
    }
}

/// The part of the file that a batch covers.
pub(super) fn part(events: &Events, prepared: &[Result<Prepared, Refusal>]) -> ImportedPart {
    let invalid = events.spans.iter().zip(prepared).filter(|(_, prepared)| prepared.is_err()).map(|((_, line), _)| *line);
    let mut refused: Vec<u64> = events.refused.iter().map(|refused| refused.line).chain(invalid).collect();
    refused.sort_unstable();
    ImportedPart { from: events.start, until: events.end, refused: runs(refused) }
}
