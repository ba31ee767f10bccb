//! Importing into the data directory itself, when no server holds it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::ingest::Permit;
use headcount_actors::ingest::{BatchReceipt, Origin, Prepared, Refusal};
use headcount_actors::{Engine, TrackError};
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::submission::Invalid;
use tokio::task::JoinHandle;

use super::events::{Events, Reading, RefusedLine};
use super::journal::Journal;
use super::lines::{Opening, Place};
use super::pipeline;
use super::report::Reporter;
use crate::cli::failure::Failure;
use crate::http::extract::body::EVENT_LIMIT_BYTES;

/// How many batches are under way at once: the log writes one while the shard applies another.
const UNDER_WAY: usize = 6;
/// What an event weighs under way beyond its JSON.
const EVENT_OVERHEAD_BYTES: usize = 768;

type Prepare = Vec<Result<Prepared, Refusal>>;

struct UnderWay {
    end: Place,
    lines: Vec<u64>,
    recording: JoinHandle<Result<BatchReceipt, TrackError>>,
}

/// Records all blocks. Returns whether the end was reached; otherwise `stop` came first.
pub(crate) async fn run(
    engine: &Engine,
    policy: Arc<Policy>,
    (opening, reading): (Opening, Reading),
    mut journal: Option<&mut Journal>,
    report: &mut Reporter,
    stop: impl Future<Output = ()>,
) -> Result<bool, Failure> {
    let preparing = engine.clone();
    let prepare =
        move |events: &mut Events| -> Prepare { events.iter().map(|json| prepare(&preparing, &policy, json)).collect() };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut batches = pipeline::start(opening, threads, reading, prepare)?;
    if let Some(journal) = journal.as_deref_mut() {
        journal.begin(Some(engine.vitals().log_position)).map_err(|error| Failure(error.to_string()))?;
    }
    let mut under_way = VecDeque::new();
    let mut stop = std::pin::pin!(stop);
    let mut outcome = Ok(true);
    loop {
        // What was spawned begins now, and signals are noticed, also when batches are always at hand.
        tokio::task::yield_now().await;
        let batch = tokio::select! {
            biased;
            () = &mut stop => { outcome = Ok(false); break }
            batch = batches.next() => batch,
        };
        let pipeline::Batch { events, prepared } = match batch {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        };
        if let Err(failure) = make_room(engine, &mut under_way, journal.as_deref_mut(), report).await {
            outcome = Err(failure);
            break;
        }
        match submit(engine, events, prepared, &mut journal, report).await {
            Ok(submitted) => under_way.push_back(submitted),
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        }
        report.show();
    }
    // Whatever ended it: what was begun is waited for, and a failure before the end is the one that is told.
    for batch in under_way {
        let finished = finish(batch, report).await;
        outcome = outcome.and_then(|reached| finished.map(|()| reached));
    }
    outcome
}

/// Waits for batches under way until another may begin. Now and then it waits for all, and the journal begins anew.
async fn make_room(
    engine: &Engine,
    under_way: &mut VecDeque<UnderWay>,
    journal: Option<&mut Journal>,
    report: &mut Reporter,
) -> Result<(), Failure> {
    let journal = journal.filter(|journal| journal.is_long());
    let most = if journal.is_some() { 0 } else { UNDER_WAY - 1 };
    while under_way.len() > most
        && let Some(first) = under_way.pop_front()
    {
        finish(first, report).await?;
    }
    if let Some(journal) = journal {
        let shortened = journal.shorten().and_then(|()| journal.begin(Some(engine.vitals().log_position)));
        shortened.map_err(|error| Failure(error.to_string()))?;
    }
    Ok(())
}

fn prepare(engine: &Engine, policy: &Policy, json: &[u8]) -> Result<Prepared, Refusal> {
    if json.len() > EVENT_LIMIT_BYTES {
        let message = format!("the event has {} bytes; at most {EVENT_LIMIT_BYTES} are allowed", json.len());
        return Err(Refusal::Invalid(Invalid { code: "event_too_large", param: None, message }));
    }
    engine.prepare(policy, json, &Origin::SERVER)
}

async fn submit(
    engine: &Engine,
    events: Events,
    prepared: Prepare,
    journal: &mut Option<&mut Journal>,
    report: &mut Reporter,
) -> Result<UnderWay, Failure> {
    let Events { end, json, spans, refused, skipped, .. } = events;
    report.summary.skipped += skipped;
    report.summary.lines += u64::try_from(spans.len() + refused.len()).unwrap_or(0) + skipped;
    report.refuse(refused);
    let permit = permit(engine, json.len() + prepared.len() * EVENT_OVERHEAD_BYTES).await?;
    if let Some(journal) = journal {
        let recorded = prepared.iter().flatten().filter(|event| event.is_recorded()).count();
        journal.announce(u64::try_from(recorded).unwrap_or(0), end).map_err(|error| Failure(error.to_string()))?;
    }
    let recording = engine.clone();
    // Tasks of this runtime begin in the order in which they are spawned, and so do their events in the log.
    let recording = tokio::spawn(async move { recording.record_batch(&recording.tracker(), prepared, permit).await });
    Ok(UnderWay { end, lines: spans.into_iter().map(|(_, line)| line).collect(), recording })
}

/// Waits for room.
async fn permit(engine: &Engine, bytes: usize) -> Result<Permit, Failure> {
    let bytes = bytes.min(engine.vitals().admission_limit_bytes);
    loop {
        if let Some(why) = engine.unavailable() {
            return Err(Failure(format!("nothing more can be recorded: {why}")));
        }
        if let Some(permit) = engine.admit_bytes(bytes) {
            return Ok(permit);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn finish(batch: UnderWay, report: &mut Reporter) -> Result<(), Failure> {
    let UnderWay { end, lines, recording } = batch;
    let receipt = recording.await.map_err(|_| Failure("recording failed".into()))?;
    let receipt = receipt.map_err(|error| Failure(format!("the lines up to line {}: {error}", end.lines)))?;
    let BatchReceipt { recorded, duplicates, dropped, errors } = receipt;
    let count = |count| u64::try_from(count).unwrap_or(0);
    report.summary.recorded += count(recorded);
    report.summary.duplicates += count(duplicates);
    report.summary.dropped += count(dropped);
    let refused = errors.into_iter().map(|(index, invalid)| RefusedLine {
        line: lines.get(index).copied().unwrap_or(0),
        code: invalid.code.into(),
        message: invalid.message,
    });
    report.refuse(refused.collect());
    Ok(())
}
