//! Measurements of requests by kind, for a whole run and for each of its seconds.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::mix::RequestKind;

/// The maximum measured latency, in microseconds.
const MAX_US: u64 = 120_000_000;
/// The maximum number of points of a time line. Longer time lines merge pairs of points.
const MAX_POINTS: usize = 600;
/// The maximum number of distinct errors and messages.
const MAX_TEXTS: usize = 100;

/// The outcome of an answered request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOutcome {
    /// The status.
    pub(crate) status: u16,
    /// Whether the status was expected.
    pub(crate) is_expected: bool,
    /// The events that it recorded.
    pub(crate) events: u64,
}

/// When a request was due, and when it was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// When it was due.
    pub(crate) due: Instant,
    /// When its answer was complete, or the request failed.
    pub(crate) answered: Instant,
}

/// Measurements of the requests of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Latencies of all answered requests, in microseconds. Never `None`, since the bounds and
    /// digits are valid.
    latencies: Option<Histogram<u64>>,
    /// Responses by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests without a response, by error.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Unexpected responses.
    pub(crate) unexpected: u64,
    /// Recorded events.
    pub(crate) events: u64,
}

impl Tally {
    fn new(digits: u8) -> Self {
        Self {
            latencies: Histogram::new_with_bounds(1, MAX_US, digits).ok(),
            by_status: BTreeMap::new(),
            failures: BTreeMap::new(),
            unexpected: 0,
            events: 0,
        }
    }

    fn answered(&mut self, outcome: RequestOutcome, latency: Duration) {
        *self.by_status.entry(outcome.status).or_default() += 1;
        self.unexpected += u64::from(!outcome.is_expected);
        self.events += outcome.events;
        if let Some(latencies) = &mut self.latencies {
            latencies.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(MAX_US).max(1));
        }
    }

    fn add(&mut self, other: &Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.latencies, &other.latencies) {
            // Can't fail: the bounds are the same.
            let _ = mine.add(theirs);
        }
        for (status, count) in &other.by_status {
            *self.by_status.entry(*status).or_default() += count;
        }
        for (what, count) in &other.failures {
            *self.failures.entry(what.clone()).or_default() += count;
        }
        self.unexpected += other.unexpected;
        self.events += other.events;
    }

    /// Responses of any status.
    pub(crate) fn responses(&self) -> u64 {
        self.by_status.values().sum()
    }

    /// Requests without a response.
    pub(crate) fn unanswered(&self) -> u64 {
        self.failures.values().sum()
    }

    /// A quantile of the latency, in milliseconds.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latencies.as_ref().map_or(0.0, |latencies| ms(latencies.value_at_quantile(quantile)))
    }

    /// The longest latency, in milliseconds.
    pub(crate) fn max_ms(&self) -> f64 {
        self.latencies.as_ref().map_or(0.0, |latencies| ms(latencies.max()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most two minutes in microseconds")]
fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// Measurements by kind. Kinds without measurements take no memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tallies([Option<Box<Tally>>; RequestKind::COUNT]);

impl Tallies {
    /// The measurements that exist, by kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestKind, &Tally)> {
        RequestKind::ALL.into_iter().zip(&self.0).filter_map(|(kind, tally)| Some((kind, tally.as_deref()?)))
    }

    /// All kinds together, without the background load.
    pub(crate) fn together(&self) -> Tally {
        let mut all = Tally::new(3);
        let is_load = |kind| !matches!(kind, RequestKind::Dashboard | RequestKind::Idle);
        self.iter().filter(|(kind, _)| is_load(*kind)).for_each(|(_, tally)| all.add(tally));
        all
    }

    fn of(&mut self, kind: RequestKind, digits: u8) -> Option<&mut Tally> {
        let tally = self.0.get_mut(kind as usize)?;
        Some(tally.get_or_insert_with(|| Box::new(Tally::new(digits))))
    }

    fn add(&mut self, other: &Self, digits: u8) {
        for (kind, tally) in other.iter() {
            if let Some(mine) = self.of(kind, digits) {
                mine.add(tally);
            }
        }
    }
}

/// Measurements of short intervals of equal length.
#[derive(Debug, Clone)]
pub(crate) struct TimeLine {
    /// The length of an interval, in seconds.
    pub(crate) seconds: u64,
    /// The intervals, from the beginning.
    pub(crate) points: Vec<Tallies>,
}

impl TimeLine {
    /// The significant digits of the histograms. They are few, since each point has histograms.
    const DIGITS: u8 = 2;

    fn add(&mut self, second: u64, tallies: &Tallies) {
        let mut at = usize::try_from(second / self.seconds).unwrap_or(usize::MAX);
        while at >= MAX_POINTS {
            self.halve();
            at /= 2;
        }
        if self.points.len() <= at {
            self.points.resize_with(at + 1, Tallies::default);
        }
        if let Some(point) = self.points.get_mut(at) {
            point.add(tallies, Self::DIGITS);
        }
    }

    fn halve(&mut self) {
        self.seconds *= 2;
        let points = std::mem::take(&mut self.points);
        for pair in points.chunks(2) {
            let mut both = Tallies::default();
            pair.iter().for_each(|one| both.add(one, Self::DIGITS));
            self.points.push(both);
        }
    }
}

/// All measurements of a run.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The whole run.
    pub(crate) total: Tallies,
    /// Its parts.
    pub(crate) line: TimeLine,
    /// The server's first message for each unexpected status.
    pub(crate) messages: BTreeMap<u16, String>,
    /// The latest second.
    latest: (u64, Tallies),
}

/// The measurements of a run. Recorders add to them.
#[derive(Debug)]
pub(crate) struct Measurement {
    from: Instant,
    measured: Mutex<Measured>,
}

impl Measurement {
    /// Creates a measurement that begins at `from`.
    pub(crate) fn new(from: Instant) -> Arc<Self> {
        let line = TimeLine { seconds: 1, points: Vec::new() };
        let measured = Measured { total: Tallies::default(), line, messages: BTreeMap::new(), latest: (0, Tallies::default()) };
        Arc::new(Self { from, measured: Mutex::new(measured) })
    }

    /// When it begins. Requests that were due before are warm-up.
    pub(crate) fn from(&self) -> Instant {
        self.from
    }

    /// The measurements so far.
    pub(crate) fn so_far(&self) -> Measured {
        self.lock().clone()
    }

    /// The measurements of `second`, if it is the latest.
    pub(crate) fn in_second(&self, second: u64) -> Tally {
        let measured = self.lock();
        if measured.latest.0 == second { measured.latest.1.together() } else { Tally::new(3) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, second: u64, tallies: &Tallies) {
        let mut measured = self.lock();
        measured.total.add(tallies, 3);
        measured.line.add(second, tallies);
        if measured.latest.0 < second {
            measured.latest = (second, Tallies::default());
        }
        if measured.latest.0 == second {
            measured.latest.1.add(tallies, 3);
        }
    }

    /// Keeps the server's message, if it is the first with this status.
    fn said(&self, status: u16, message: impl FnOnce() -> String) {
        let mut measured = self.lock();
        if measured.messages.len() < MAX_TEXTS {
            measured.messages.entry(status).or_insert_with(message);
        }
    }
}

/// Records the requests of one thread, and adds them to the measurement each second.
#[derive(Debug)]
pub(crate) struct Recorder {
    measurement: Arc<Measurement>,
    second: u64,
    tallies: Tallies,
    said: Vec<u16>,
}

impl Recorder {
    /// Creates an empty recorder.
    pub(crate) fn new(measurement: Arc<Measurement>) -> Self {
        Self { measurement, second: 0, tallies: Tallies::default(), said: Vec::new() }
    }

    /// Records a request that was due and answered or failed at these times. `body` is the body of
    /// the answer.
    pub(crate) fn record(&mut self, kind: RequestKind, times: Times, outcome: &io::Result<RequestOutcome>, body: &[u8]) {
        let from = self.measurement.from;
        let Times { due, answered } = times;
        if due < from {
            return;
        }
        let second = answered.saturating_duration_since(from).as_secs();
        if second != self.second {
            self.flush();
            self.second = second;
        }
        let Some(tally) = self.tallies.of(kind, 3) else { return };
        match outcome {
            Ok(outcome) => {
                tally.answered(*outcome, answered.saturating_duration_since(due));
                if !outcome.is_expected && !self.said.contains(&outcome.status) {
                    self.said.push(outcome.status);
                    self.measurement.said(outcome.status, || message_of(body));
                }
            }
            Err(error) => {
                let text = error.to_string();
                if tally.failures.len() < MAX_TEXTS || tally.failures.contains_key(&text) {
                    *tally.failures.entry(text).or_default() += 1;
                }
            }
        }
    }

    /// Adds the records to the measurement.
    pub(crate) fn flush(&mut self) {
        let tallies = std::mem::take(&mut self.tallies);
        self.measurement.add(self.second, &tallies);
    }
}

/// The message of an answer, in one line.
pub(crate) fn message_of(body: &[u8]) -> String {
    const MAX_CHARACTERS: usize = 200;
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let text = match (json["error"]["code"].as_str(), json["error"]["message"].as_str()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(MAX_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16) -> io::Result<RequestOutcome> {
        Ok(RequestOutcome { status, is_expected: status == 202, events: u64::from(status == 202) })
    }

    fn now() -> Times {
        Times { due: Instant::now(), answered: Instant::now() }
    }

    #[test]
    fn recorders_of_all_threads_make_one_distribution_by_kind() {
        let measurement = Measurement::new(Instant::now());
        for thread in 0..2u64 {
            let mut recorder = Recorder::new(Arc::clone(&measurement));
            for number in 0..500 {
                let mut tally = Tally::new(3);
                tally.answered(outcome(202).unwrap(), Duration::from_micros(1_000 * (2 * number + thread + 1)));
                recorder.tallies.of(RequestKind::Single, 3).unwrap().add(&tally);
            }
            recorder.record(RequestKind::Poll, now(), &outcome(429), br#"{"error":{"code":"slow","message":"Later"}}"#);
            recorder.record(RequestKind::Poll, now(), &Err(io::ErrorKind::ConnectionRefused.into()), b"");
            recorder.flush();
        }
        let measured = measurement.so_far();
        let kinds: Vec<RequestKind> = measured.total.iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [RequestKind::Single, RequestKind::Poll]);
        let all = measured.total.together();
        assert_eq!((all.responses(), all.unexpected, all.unanswered(), all.events), (1_002, 2, 2, 1_000));
        let (_, singles) = measured.total.iter().next().unwrap();
        for (quantile, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
            let found = singles.quantile_ms(quantile);
            assert!((found - expected).abs() <= expected / 500.0, "{quantile}: {found}");
        }
        assert_eq!(measured.messages[&429], "slow: Later");
        assert_eq!(measured.line.points.iter().map(|point| point.together().events).sum::<u64>(), 1_000);
    }

    #[test]
    fn what_was_due_before_the_measurement_is_not_measured() {
        let measurement = Measurement::new(Instant::now() + Duration::from_secs(3_600));
        let mut recorder = Recorder::new(Arc::clone(&measurement));
        recorder.record(RequestKind::Single, now(), &outcome(202), b"");
        recorder.flush();
        assert_eq!(measurement.so_far().total.iter().count(), 0);
    }

    #[test]
    fn a_long_time_line_has_longer_points() {
        let mut one = Tallies::default();
        one.of(RequestKind::Single, 3).unwrap().answered(outcome(202).unwrap(), Duration::from_secs(1_000));
        let mut line = TimeLine { seconds: 1, points: Vec::new() };
        (0..2_000).for_each(|second| line.add(second, &one));
        assert_eq!((line.seconds, line.points.len()), (4, 500));
        assert!(line.points.iter().all(|point| point.together().events == 4));
        // Longer latencies count as the maximum.
        assert!((line.points[0].together().max_ms() - 120_000.0).abs() < 1_500.0);
    }

    #[test]
    fn messages_are_one_short_line() {
        assert_eq!(message_of(b"a\nb"), "a b");
        assert_eq!(message_of("\u{e4}".repeat(1_000).as_bytes()).chars().count(), 200);
    }
}
