//! The report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crowd::{IdleCounts, StreamCounts};
use super::measured::{Measured, Tally};
use super::ramp::Ramp;
use super::usage::ServerUsage;
use super::verify::Verified;

/// The reported quantiles.
pub(crate) const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
/// The number of points of the percentile curve per decade of the distance to the maximum.
const POINTS_PER_NINE: u32 = 8;
/// The last decade.
const NINES: u32 = 5;

/// The settings of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LoadSettings {
    /// The version of the program that sent the load.
    pub(crate) version: String,
    /// The shares of the kinds of requests.
    pub(crate) mix: String,
    /// The events of a batch.
    pub(crate) batch: u32,
    /// Distinct users.
    pub(crate) users: u64,
    /// Projects.
    pub(crate) projects: usize,
    /// Percentage of events for the first project; 0: an even share.
    pub(crate) hot: u32,
    /// Percentage of events that are sent twice.
    pub(crate) duplicates: u32,
    /// Idle connections.
    pub(crate) idle: u32,
    /// Readers of live streams.
    pub(crate) streams: u32,
    /// Dashboards that poll each second.
    pub(crate) dashboards: u32,
    /// Sending threads.
    pub(crate) threads: u32,
}

/// The requests of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KindReport {
    /// The number of responses.
    pub(crate) requests: u64,
    /// Responses per second.
    pub(crate) requests_per_second: f64,
    /// Recorded events per second.
    pub(crate) events_per_second: f64,
    /// Responses by status. The keys are text, since serde reads no other keys in a flattened
    /// object.
    pub(crate) by_status: BTreeMap<String, u64>,
    /// Unexpected responses.
    pub(crate) unexpected: u64,
    /// Requests without a response, by error.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Quantiles of the latency in milliseconds, measured from the time when a request was due
    /// (open) or sent (closed).
    pub(crate) latency_ms: BTreeMap<String, f64>,
    /// The percentile curve: shares of requests, each with its maximum latency in milliseconds.
    pub(crate) percentiles: Vec<(f64, f64)>,
}

/// The requests of one kind in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PointReport {
    /// Responses per second.
    pub(crate) requests_per_second: f64,
    /// The median latency, in milliseconds.
    pub(crate) p50_ms: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(crate) p99_ms: f64,
    /// Requests that were not answered as expected.
    pub(crate) failed: u64,
}

/// The run over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct TimeReport {
    /// The length of each interval, in seconds.
    pub(crate) seconds: u64,
    /// The intervals from the beginning, by kind. The last one may be shorter.
    pub(crate) points: Vec<BTreeMap<String, PointReport>>,
}

/// The report, as `--json` prints it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LoadReport {
    /// `open` (a constant rate), `closed` (as fast as responses arrive) or `ramp` (with the figures
    /// of the knee).
    pub(crate) mode: String,
    /// The requested rate, in requests per second.
    pub(crate) target_rate: Option<f64>,
    /// The number of connections.
    pub(crate) connections: usize,
    /// The duration of the measurement, in seconds.
    pub(crate) seconds: f64,
    /// All requests of the load, without the background load.
    #[serde(flatten)]
    pub(crate) all: KindReport,
    /// The requests by kind.
    #[serde(default)]
    pub(crate) kinds: BTreeMap<String, KindReport>,
    /// The server's first message for each unexpected status.
    #[serde(default)]
    pub(crate) messages: BTreeMap<u16, String>,
    /// The run over time.
    #[serde(default)]
    pub(crate) over_time: TimeReport,
    /// The ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ramp: Option<Ramp>,
    /// Idle connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<IdleCounts>,
    /// The readers of live streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) streams: Option<StreamCounts>,
    /// The resource usage of the server's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<ServerUsage>,
    /// The verification of the server's counts, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<Verified>,
    /// The reason why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_early: Option<String>,
    /// The settings of the run.
    #[serde(default)]
    pub(crate) settings: LoadSettings,
}

impl KindReport {
    fn new(tally: &Tally, seconds: f64) -> Self {
        let requests = tally.responses();
        let mut latency_ms: BTreeMap<String, f64> =
            QUANTILES.iter().map(|(name, at)| ((*name).to_owned(), tally.quantile_ms(*at))).collect();
        latency_ms.insert("max".to_owned(), tally.max_ms());
        Self {
            requests,
            requests_per_second: round(count(requests) / seconds),
            events_per_second: round(count(tally.events) / seconds),
            by_status: tally.by_status.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
            unexpected: tally.unexpected,
            failures: tally.failures.clone(),
            latency_ms,
            percentiles: percentiles(tally),
        }
    }

    /// A quantile of the latency, in milliseconds.
    pub(crate) fn latency(&self, name: &str) -> f64 {
        self.latency_ms.get(name).copied().unwrap_or(0.0)
    }

    /// Requests that were not answered as expected, or not at all, as a share of all.
    pub(crate) fn failed(&self) -> f64 {
        let unanswered: u64 = self.failures.values().sum();
        count(self.unexpected + unanswered) / count(self.requests + unanswered).max(1.0)
    }

    fn describe(&self, name: &str) -> String {
        let statuses: Vec<String> = self.by_status.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        let events =
            if self.events_per_second > 0.0 { format!(", {:.0} events/s", self.events_per_second) } else { String::new() };
        let mut text =
            format!("{name:<10} {:>9.0} requests/s{events}  answers {}\n", self.requests_per_second, statuses.join(", "));
        if self.unexpected > 0 {
            text.push_str(&format!("{:10} {} unexpected answers ({:.2} % failed)\n", "", self.unexpected, self.failed() * 100.0));
        }
        for (what, count) in &self.failures {
            text.push_str(&format!("{:10} no answer  {count} × {what}\n", ""));
        }
        let latencies: Vec<String> = QUANTILES.iter().map(|(name, _)| format!("{name} {:.2}", self.latency(name))).collect();
        text.push_str(&format!("{:10} latency in ms  {}, max {:.2}\n", "", latencies.join(", "), self.latency("max")));
        text
    }
}

/// Points of the curve of percentiles, closer together towards the maximum.
fn percentiles(tally: &Tally) -> Vec<(f64, f64)> {
    let responses = count(tally.responses());
    let steps = (0..=NINES * POINTS_PER_NINE).map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(POINTS_PER_NINE)));
    // Beyond one request there is only the maximum.
    let mut points: Vec<(f64, f64)> = steps
        .take_while(|quantile| responses * (1.0 - quantile) >= 1.0)
        .map(|quantile| ((quantile * 1e6).round() / 1e6, tally.quantile_ms(quantile)))
        .collect();
    if responses > 0.0 {
        points.push((1.0, tally.max_ms()));
    }
    points
}

impl LoadReport {
    /// Creates the report of the measurements in `lasting`.
    pub(crate) fn new(measured: &Measured, lasting: Duration, connections: usize, target_rate: Option<f64>) -> Self {
        let seconds = lasting.as_secs_f64().max(0.001);
        let point = |tally: &Tally| PointReport {
            requests_per_second: round(count(tally.responses()) / count(measured.line.seconds)),
            p50_ms: tally.quantile_ms(0.5),
            p99_ms: tally.quantile_ms(0.99),
            failed: tally.unexpected + tally.unanswered(),
        };
        let points = measured.line.points.iter();
        let points = points.map(|tallies| tallies.iter().map(|(kind, tally)| (kind.name().to_owned(), point(tally))).collect());
        let kinds = measured.total.iter();
        Self {
            mode: if target_rate.is_some() { "open" } else { "closed" }.to_owned(),
            target_rate,
            connections,
            seconds: round(seconds),
            all: KindReport::new(&measured.total.together(), seconds),
            kinds: kinds.map(|(kind, tally)| (kind.name().to_owned(), KindReport::new(tally, seconds))).collect(),
            messages: measured.messages.clone(),
            over_time: TimeReport { seconds: measured.line.seconds, points: points.collect() },
            ..Self::default()
        }
    }

    /// A one-line summary of the run.
    pub(crate) fn headline(&self) -> String {
        let mode = match self.target_rate {
            Some(rate) if self.ramp.is_some() => format!("step of a ramp, target {rate} requests/s"),
            Some(rate) => format!("open loop, target {rate} requests/s"),
            None => "closed loop".to_owned(),
        };
        let projects = if self.settings.projects > 1 { format!(", {} projects", self.settings.projects) } else { String::new() };
        format!("{mode}, {} connections{projects}", self.connections)
    }

    /// Formats the report as text.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        if let Some(ramp) = &self.ramp {
            text.push_str(&format!(
                "{}\n\nat the {}\n",
                ramp.describe(),
                if ramp.knee.is_some() { "knee" } else { "first rate" }
            ));
        }
        text.push_str(&format!(
            "{}\n{} answers in {:.1} s: {:.0} requests/s, {:.0} events/s\n",
            self.headline(),
            self.all.requests,
            self.seconds,
            self.all.requests_per_second,
            self.all.events_per_second
        ));
        if let Some(why) = &self.ended_early {
            text.push_str(&format!("ended early: {why}\n"));
        }
        for (name, kind) in &self.kinds {
            text.push_str(&kind.describe(name));
        }
        if self.kinds.len() > 1 {
            text.push_str(&self.all.describe("all"));
        }
        for (status, message) in &self.messages {
            text.push_str(&format!("{status}  {message}\n"));
        }
        if let Some(idle) = &self.idle {
            text.push_str(&idle.describe());
        }
        if let Some(streams) = &self.streams {
            text.push_str(&streams.describe());
        }
        if let Some(server) = &self.server {
            text.push_str(&format!("{}\n", server.describe()));
        }
        if let Some(verified) = &self.verified {
            text.push_str(&format!("{}\n", verified.describe()));
        }
        text.trim_end().to_owned()
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
    use std::time::Instant;

    use super::*;
    use crate::measured::{Measurement, Recorder, RequestOutcome, Times};
    use crate::mix::RequestKind;

    fn report() -> LoadReport {
        let measurement = Measurement::new(Instant::now());
        let mut recorder = Recorder::new(measurement.clone());
        for number in 0..1_000u64 {
            let due = measurement.from() + Duration::from_millis(number);
            let times = |ms| Times { due, answered: due + Duration::from_millis(ms) };
            let outcome = |status| Ok(RequestOutcome { status, is_expected: status != 429, events: u64::from(status == 202) });
            recorder.record(RequestKind::Single, times(1 + number / 10), &outcome(202), b"");
            recorder.record(RequestKind::Dashboard, times(7), &outcome(if number % 2 == 0 { 200 } else { 304 }), b"");
            if number % 100 == 0 {
                recorder.record(RequestKind::Single, times(500), &outcome(429), b"slow down");
                recorder.record(RequestKind::Single, times(500), &Err(std::io::ErrorKind::ConnectionRefused.into()), b"");
            }
        }
        recorder.flush();
        LoadReport::new(&measurement.so_far(), Duration::from_secs(2), 8, Some(505.0))
    }

    #[test]
    fn a_report_has_all_and_each_kind() {
        let report = report();
        assert_eq!((report.mode.as_str(), report.all.requests, report.all.by_status["202"]), ("open", 1_010, 1_000));
        assert_eq!((report.all.by_status["429"], report.all.unexpected), (10, 10));
        // The background load is separate.
        assert_eq!(report.kinds["dashboard"].by_status, [("200".to_owned(), 500), ("304".to_owned(), 500)].into());
        assert_eq!(report.kinds["single"].requests, 1_010);
        assert!((report.all.events_per_second - 500.0).abs() < 0.01);
        assert!((report.kinds["dashboard"].latency("p99") - 7.0).abs() < 0.1);
        assert!((report.all.failed() - 20.0 / 1_020.0).abs() < 1e-9);
        assert_eq!(report.messages[&429], "slow down");
        let curve = &report.all.percentiles;
        assert_eq!(curve.first().unwrap().0, 0.0);
        assert_eq!(curve.last().unwrap().0, 1.0);
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{curve:?}");
        let answered: f64 =
            report.over_time.points.iter().filter_map(|point| point.get("single")).map(|it| it.requests_per_second).sum();
        assert!((answered - 1_010.0).abs() < 0.01);
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let mut report = report();
        report.verified = Some(Verified { agrees: true, ..Verified::default() });
        report.streams = Some(StreamCounts { wanted: 3, refused: [("503".to_owned(), 1)].into(), ..StreamCounts::default() });
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<LoadReport>(&text).unwrap(), report);
        let text = report.describe();
        for part in [
            "target 505 requests/s",
            "304: 500",
            "429  slow down",
            "no answer  10 × ",
            "10 unexpected answers (1.96 % failed)",
            "counted  as sent",
            "refused 1 × 503",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
