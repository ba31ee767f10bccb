//! The measurements of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest latency that is measured, in microseconds.
const MAX_US: u64 = 120_000_000;

/// Measurements of one or more threads.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Latencies of all answered requests, in microseconds.
    latencies: Option<Histogram<u64>>,
    /// Responses by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests without a response, by error.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Events in requests with the expected status.
    pub(crate) events: u64,
}

impl Measured {
    /// Creates empty measurements.
    pub(crate) fn new() -> Self {
        // Always `Some`: these bounds and three digits are valid.
        Self {
            latencies: Histogram::new_with_bounds(1, MAX_US, 3).ok(),
            by_status: BTreeMap::new(),
            failures: BTreeMap::new(),
            events: 0,
        }
    }

    /// Counts a response.
    pub(crate) fn answered(&mut self, status: u16, latency: Duration) {
        *self.by_status.entry(status).or_default() += 1;
        if let Some(latencies) = &mut self.latencies {
            latencies.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(MAX_US).max(1));
        }
    }

    /// Counts a request without a response.
    pub(crate) fn failed(&mut self, error: &std::io::Error) {
        *self.failures.entry(error.to_string()).or_default() += 1;
    }

    /// Adds the measurements of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.latencies, &other.latencies) {
            // Can't fail: the bounds are the same.
            let _ = mine.add(theirs);
        }
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        for (what, count) in other.failures {
            *self.failures.entry(what).or_default() += count;
        }
        self.events += other.events;
    }

    fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latencies.as_ref().map_or(0.0, |latencies| ms(latencies.value_at_quantile(quantile)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most two minutes in microseconds")]
fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct LoadReport {
    /// `open` (a constant rate) or `closed` (as fast as responses arrive).
    pub(crate) mode: &'static str,
    /// The requested rate, in requests per second.
    pub(crate) target_rate: Option<f64>,
    /// The number of connections.
    pub(crate) connections: usize,
    /// The duration of the measurement, in seconds.
    pub(crate) seconds: f64,
    /// The number of responses.
    pub(crate) requests: u64,
    /// Responses per second.
    pub(crate) requests_per_second: f64,
    /// Events per second, in requests with the expected status.
    pub(crate) events_per_second: f64,
    /// Responses by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests without a response, by error.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Quantiles of the latency in milliseconds, measured from when a request was due (open) or sent (closed).
    pub(crate) latency_ms: BTreeMap<&'static str, f64>,
    /// The verification of the server's counts, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<Verified>,
}

/// What the server counted of the acknowledged events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Verified {
    /// Orders in acknowledged requests, including the warm-up.
    pub(crate) orders_sent: u64,
    /// Orders by which the server's count rose.
    pub(crate) orders_counted: i64,
    /// Users in acknowledged requests.
    pub(crate) users_sent: u64,
    /// Users by which the server's count rose.
    pub(crate) users_counted: i64,
    /// Whether the counts match. Requests without a response may have been recorded.
    pub(crate) agrees: bool,
}

const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

impl LoadReport {
    /// Creates the report of what was measured in `lasting`.
    pub(crate) fn new(measured: Measured, lasting: Duration, connections: usize, target_rate: Option<f64>) -> Self {
        let seconds = lasting.as_secs_f64().max(0.001);
        let requests: u64 = measured.by_status.values().sum();
        let mut latency_ms: BTreeMap<&'static str, f64> =
            QUANTILES.iter().map(|(name, at)| (*name, measured.quantile_ms(*at))).collect();
        latency_ms.insert("max", measured.latencies.as_ref().map_or(0.0, |latencies| ms(latencies.max())));
        Self {
            mode: if target_rate.is_some() { "open" } else { "closed" },
            target_rate,
            connections,
            seconds: round(seconds),
            requests,
            requests_per_second: round(count(requests) / seconds),
            events_per_second: round(count(measured.events) / seconds),
            by_status: measured.by_status,
            failures: measured.failures,
            latency_ms,
            verified: None,
        }
    }

    /// Formats the report for people.
    pub(crate) fn describe(&self) -> String {
        let mut text = match self.target_rate {
            Some(rate) => format!("open loop, {rate} requests/s wanted, {} connections\n", self.connections),
            None => format!("closed loop, {} connections\n", self.connections),
        };
        text.push_str(&format!(
            "{} answers in {:.1} s: {:.0} requests/s, {:.0} events/s\n",
            self.requests, self.seconds, self.requests_per_second, self.events_per_second
        ));
        let statuses: Vec<String> = self.by_status.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        text.push_str(&format!("answers  {}\n", statuses.join(", ")));
        for (what, count) in &self.failures {
            text.push_str(&format!("no answer  {count} × {what}\n"));
        }
        let of = |name: &str| self.latency_ms.get(name).copied().unwrap_or(0.0);
        let latencies: Vec<String> = QUANTILES.iter().map(|(name, _)| format!("{name} {:.2}", of(name))).collect();
        text.push_str(&format!("latency in ms  {}, max {:.2}", latencies.join(", "), of("max")));
        if let Some(it) = &self.verified {
            let verdict = if it.agrees { "as sent" } else { "NOT AS SENT" };
            text.push_str(&format!(
                "\ncounted  {verdict}: {} of {} orders, {} of {} users",
                it.orders_counted, it.orders_sent, it.users_counted, it.users_sent
            ));
        }
        text
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run")]
fn count(number: u64) -> f64 {
    number as f64
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_all_threads_make_one_distribution() {
        let mut all = Measured::new();
        for thread in 0..2u64 {
            let mut one = Measured::new();
            (0..500).for_each(|n| one.answered(202, Duration::from_micros(1_000 * (2 * n + thread + 1))));
            one.failed(&std::io::ErrorKind::ConnectionRefused.into());
            one.events = 500;
            all.add(one);
        }
        all.answered(503, Duration::from_secs(1_000));
        let report = LoadReport::new(all, Duration::from_secs(10), 8, Some(100.0));
        assert_eq!((report.requests, report.by_status[&202], report.by_status[&503]), (1_001, 1_000, 1));
        assert!((report.events_per_second - 100.0).abs() < 0.01);
        for (name, expected) in [("p50", 501.0), ("p90", 901.0), ("p99", 991.0)] {
            let measured = report.latency_ms[name];
            assert!((measured - expected).abs() <= expected / 500.0, "{name}: {measured}");
        }
        // Longer latencies count as the longest one.
        assert!((report.latency_ms["max"] - 120_000.0).abs() < 200.0);
        assert_eq!(report.failures.values().sum::<u64>(), 2);
    }
}
