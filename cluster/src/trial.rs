//! A trial: does everything that a cluster relies on with a stream, and deletes the stream.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::connection::Connection;
use crate::lease::{Candidate, Holder, Lease, LeaseError, Leases, Timing};
use crate::log::{Content, Entry, LogEnd, LogError, LogReader, LogWriter, Message};
use crate::stream::{StreamError, StreamName};

/// How long the brokers may take for the whole trial.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of the stream.
const MAX_BYTES: i64 = 64 << 20;
/// The number of events in a message.
const EVENTS: u32 = 100;
const EVENT_BYTES: usize = 200;

/// The results of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The number of messages recorded, one after the other.
    pub messages: u64,
    /// The median time until a message was on the disks of a majority, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of this time, in milliseconds.
    pub p99_ms: f64,
    /// The time that the second owner took to read the messages and begin its epoch, in
    /// milliseconds.
    pub take_over_ms: f64,
}

/// The reason why the trial failed.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The stream can't be created.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The brokers took too long.
    #[error("the brokers took more than {} s", TIMEOUT.as_secs())]
    Slow,
    /// A message can't be written or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A lease can't be taken or given up.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A free lease was refused to the node that could take it, or a held one was given to another
    /// node.
    #[error("the lease went to the wrong node")]
    NotExclusive,
    /// The brokers accepted a message of a former owner.
    #[error("a former owner could write to the stream after another one had taken it over")]
    NotFenced,
    /// The messages that were read differ from those written.
    #[error("{found} messages were read where {written} were written")]
    Differs {
        /// The number of messages that were read.
        found: u64,
        /// The number of messages that were written.
        written: u64,
    },
}

/// Records `messages` messages as an owner, and takes over as a second owner. Checks that the first
/// owner can't write any more, and that every message is there once.
pub(crate) async fn run(connection: &Connection, replicas: usize, messages: u64) -> Result<Trial, TrialError> {
    let nonce = fastrand::u64(..);
    let name = StreamName { stream: format!("HC_CHECK_{nonce:016x}"), subject: format!("hc_check.{nonce:016x}") };
    name.create(connection, replicas, MAX_BYTES).await?;
    let result = with_leases(connection, &name, replicas, messages).await;
    if let Err(error) = name.delete(connection).await {
        tracing::warn!(stream = name.stream, %error, "the stream of the trial can't be deleted");
    }
    result
}

/// Runs the trial with leases in a bucket that has the name of the stream.
async fn with_leases(connection: &Connection, name: &StreamName, replicas: usize, messages: u64) -> Result<Trial, TrialError> {
    let leases = Leases::create(connection, &name.stream, replicas, Timing::default()).await?;
    let result = tokio::time::timeout(TIMEOUT, owners(connection, name, &leases, messages)).await;
    if let Err(error) = Leases::delete(connection, &name.stream).await {
        tracing::warn!(bucket = name.stream, %error, "the bucket of the trial can't be deleted");
    }
    result.unwrap_or(Err(TrialError::Slow))
}

/// Takes the lease as a node that can take it.
async fn take(candidate: &mut Candidate) -> Result<Lease, TrialError> {
    candidate.take().await?.ok_or(TrialError::NotExclusive)
}

async fn owners(connection: &Connection, name: &StreamName, leases: &Leases, messages: u64) -> Result<Trial, TrialError> {
    let candidate = |node: &str| leases.candidate("lease", Holder { node: node.to_owned(), boot: "trial".to_owned() });
    let (mut former, mut next) = (candidate("former"), candidate("next"));
    let mut lease = take(&mut former).await?;
    let mut first = LogWriter::take_over(connection, name, lease.epoch, LogEnd::default(), &mut |_, _| {}).await?;
    let mut times = Vec::new();
    for number in 0..messages {
        let began = Instant::now();
        first.append(entries(number)).await?;
        times.push(began.elapsed());
    }
    lease.renew().await?;
    if next.take().await?.is_some() || !lease.is_valid() {
        return Err(TrialError::NotExclusive);
    }
    lease.release().await?;
    let (began, mut found) = (Instant::now(), 0);
    let epoch = take(&mut next).await?.epoch;
    let mut count = |_, message| found += u64::from(is_next(&message, found));
    let mut second = LogWriter::take_over(connection, name, epoch, LogEnd::default(), &mut count).await?;
    let take_over_ms = began.elapsed().as_secs_f64() * 1000.0;
    if found != messages {
        return Err(TrialError::Differs { found, written: messages });
    }
    match first.append(entries(messages)).await {
        Err(LogError::Fenced { by }) if by == epoch => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(TrialError::NotFenced),
    }
    second.append(entries(messages)).await?;
    let mut found = 0;
    let reader = LogReader::open(connection, &name.stream).await?;
    let mut count = |_, message| {
        found += u64::from(is_next(&message, found));
        ControlFlow::Continue(())
    };
    reader.read(LogEnd::default(), &mut count).await?;
    if found != messages + 1 {
        return Err(TrialError::Differs { found, written: messages + 1 });
    }
    times.sort_unstable();
    // The longest time of the fastest `part` of 100 messages.
    let at = |part: usize| {
        times.get((times.len() * part).div_ceil(100).saturating_sub(1)).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    Ok(Trial { messages, p50_ms: at(50), p99_ms: at(99), take_over_ms })
}

/// Returns the entries of the message `number`: of the size of events, and hard to compress.
fn entries(number: u64) -> Vec<Entry> {
    let mut random = fastrand::Rng::with_seed(number);
    let payload = std::iter::repeat_with(|| random.u8(..)).take(EVENTS as usize * EVENT_BYTES).collect();
    vec![Entry { count: EVENTS, payload }]
}

/// Whether a message has the events of the message `number`.
fn is_next(message: &Message, number: u64) -> bool {
    matches!(&message.content, Content::Events(found) if *found == entries(number))
}
