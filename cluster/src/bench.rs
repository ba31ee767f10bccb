//! Measures how many events brokers record, with the code that a cluster uses.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use headcount_storage::log::{Commit as _, Outcome, ReadLog as _, Record};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::connection::{ConnectError, Connection, Credentials};
use crate::log::{LogEnd, LogError, LogWriter, StreamCommit, StreamLog};
use crate::stream::{StreamError, StreamName};

/// Brokers reserve the maximum size of a stream, so several large streams would not fit.
const UNLIMITED: i64 = -1;
/// How long to wait for the last outcomes.
const LAST_OUTCOMES: Duration = Duration::from_secs(60);

/// The load to record.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// The addresses of all brokers.
    pub brokers: Vec<String>,
    /// The credentials for the brokers.
    pub credentials: Credentials,
    /// The number of brokers that keep each message.
    pub replicas: usize,
    /// The number of partitions. Each has its own stream.
    pub partitions: u16,
    /// The number of submissions of each partition in flight.
    pub in_flight: usize,
    /// The number of events in a submission.
    pub batch: u32,
    /// The encoded size of an event, in bytes.
    pub event_bytes: usize,
    /// How long to record events.
    pub duration: Duration,
}

/// The results of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The number of events recorded and read again.
    pub events: u64,
    /// The time from the first submission to the last outcome, in seconds.
    pub seconds: f64,
    /// Events per second.
    pub events_per_second: f64,
    /// The median time from a submission to its outcome, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of the time from a submission to its outcome, in milliseconds.
    pub p99_ms: f64,
    /// The time to read all events, in seconds.
    pub read_seconds: f64,
}

/// The reason why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A stream can't be created.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A stream can't be taken over.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Events can't be recorded or read.
    #[error("{0}")]
    Storage(String),
    /// The events that were read differ from the recorded events.
    #[error("{found} events were read where {recorded} were recorded")]
    Differs {
        /// The number of events that were read.
        found: u64,
        /// The number of events that were recorded.
        recorded: u64,
    },
}

/// A submission in flight: its partition and its start.
type Ticket = (u16, Instant);

/// Records events in temporary streams for a while, reads them, and deletes the streams. A task of
/// the runtime must not call this.
///
/// # Errors
/// Returns a [`BenchError`].
pub fn measure(runtime: &Handle, options: &BenchOptions) -> Result<Measured, BenchError> {
    let connection = runtime.block_on(Connection::open(&options.brokers, &options.credentials))?;
    let nonce = fastrand::u64(..);
    let name = |partition: u16| StreamName {
        stream: format!("HC_BENCH_{nonce:016x}_{partition}"),
        subject: format!("hc_bench.{nonce:016x}.{partition}"),
    };
    let names: Vec<StreamName> = (0..options.partitions).map(name).collect();
    let (mut created, mut result) = (0, Ok(()));
    while created < names.len() && result.is_ok() {
        result = runtime.block_on(names[created].create(&connection, options.replicas, UNLIMITED));
        created += usize::from(result.is_ok());
    }
    let measured = result.map_err(BenchError::from).and_then(|()| record_and_read(runtime, &connection, &names, options));
    for name in &names[..created] {
        if let Err(error) = runtime.block_on(name.delete(&connection)) {
            tracing::warn!(stream = name.stream, %error, "a stream of the benchmark can't be deleted");
        }
    }
    measured
}

fn record_and_read(
    runtime: &Handle,
    connection: &Connection,
    names: &[StreamName],
    options: &BenchOptions,
) -> Result<Measured, BenchError> {
    let (outcomes, received) = channel();
    let commit = StreamCommit::start(runtime, move |some| drop(outcomes.send(some)));
    let log = StreamLog::new(runtime.clone());
    for (partition, name) in (0..).zip(names) {
        let writer = runtime.block_on(LogWriter::take_over(connection, name, 1, LogEnd::default(), &mut |_, _| {}))?;
        log.adopt(partition, writer.reader(), 0);
        commit.adopt(partition, writer);
    }
    let recorded = record(&commit, &received, options);
    commit.close();
    let (events, seconds, times) = recorded?;
    let (began, mut found) = (Instant::now(), 0);
    let mut count = |record: Record<'_>| {
        found += u64::from(record.count);
        ControlFlow::Continue(())
    };
    log.read(&|_| Some(0), &mut count).map_err(storage)?;
    if found != events {
        return Err(BenchError::Differs { found, recorded: events });
    }
    let at = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
    let events_per_second = events as f64 / seconds;
    Ok(Measured {
        events,
        seconds,
        events_per_second,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        read_seconds: began.elapsed().as_secs_f64(),
    })
}

/// Submits events until the time is up. Each outcome triggers the next submission. Returns the
/// number of recorded events, the elapsed time and the durations of the submissions.
fn record(
    commit: &StreamCommit<Ticket>,
    outcomes: &Receiver<Vec<Outcome<Ticket>>>,
    options: &BenchOptions,
) -> Result<(u64, f64, Histogram<u64>), BenchError> {
    let mut times = Histogram::<u64>::new_with_bounds(1, LAST_OUTCOMES.as_micros() as u64, 3).map_err(storage)?;
    let (began, mut events, mut waiting) = (Instant::now(), 0, 0usize);
    let submit = |partition: u16| {
        let submitted = commit.submit(partition, options.batch, payload(options), (partition, Instant::now()));
        submitted.map_err(|_| BenchError::Storage("a partition takes nothing".to_owned()))
    };
    for partition in (0..options.partitions).cycle().take(usize::from(options.partitions) * options.in_flight) {
        submit(partition)?;
        waiting += 1;
    }
    while waiting > 0 {
        for outcome in outcomes.recv_timeout(LAST_OUTCOMES).map_err(storage)? {
            waiting -= 1;
            let (partition, submitted) = match outcome {
                Outcome::Committed(committed) => {
                    events += u64::from(committed.count);
                    committed.ticket
                }
                Outcome::Refused(refused) => return Err(storage(&*refused.reason)),
                Outcome::Undecided(_) => return Err(BenchError::Storage("whether events were recorded is not known".to_owned())),
            };
            times.saturating_record(u64::try_from(submitted.elapsed().as_micros()).unwrap_or(u64::MAX));
            if began.elapsed() < options.duration {
                submit(partition)?;
                waiting += 1;
            }
        }
    }
    Ok((events, began.elapsed().as_secs_f64(), times))
}

/// Returns the payload of a submission. It hardly compresses.
fn payload(options: &BenchOptions) -> Vec<u8> {
    let bytes = options.batch as usize * options.event_bytes;
    let mut payload = vec![b'a'; bytes];
    payload.iter_mut().step_by(3).for_each(|byte| *byte = fastrand::u8(..));
    payload
}

fn storage(error: impl std::fmt::Display) -> BenchError {
    BenchError::Storage(error.to_string())
}
