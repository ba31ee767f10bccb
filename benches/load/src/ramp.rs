//! The ramp: finds the highest rate that the server sustains.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The minimum share of its rate that a sustained step achieves.
const MIN_ACHIEVED: f64 = 0.95;
/// The maximum share of failed requests in a sustained step.
const MAX_FAILED: f64 = 0.001;
/// The limit of the p99, as a multiple of the first step's p99.
const P99_GROWTH: f64 = 10.0;
/// The minimum limit of the p99, in milliseconds.
const MIN_P99_LIMIT_MS: f64 = 20.0;

/// The lowest and the highest rate, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateRange {
    from: f64,
    to: f64,
}

/// Parses a rate.
pub(crate) fn rate(text: &str) -> Result<f64, &'static str> {
    let is_allowed = |rate: &f64| *rate > 0.0 && *rate <= 10_000_000.0;
    text.parse().ok().filter(is_allowed).ok_or("must be a positive number of requests per second")
}

impl std::str::FromStr for RateRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, to) = text.split_once("..").ok_or("must be FROM..TO, such as 1000..20000 requests per second")?;
        let (from, to) = (rate(from)?, rate(to)?);
        if from < to { Ok(Self { from, to }) } else { Err("FROM must be lower than TO") }
    }
}

impl RateRange {
    /// The rates of this many steps, evenly spaced.
    pub(crate) fn steps(self, count: u32) -> Vec<f64> {
        let last = f64::from(count.max(2) - 1);
        (0..count.max(2)).map(|step| (self.from + (self.to - self.from) * f64::from(step) / last).round().max(1.0)).collect()
    }
}

/// The measurements at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RampStep {
    /// Requests that were due, per second.
    pub(crate) target_rate: f64,
    /// Requests that were answered as expected, per second.
    pub(crate) achieved_rate: f64,
    /// Requests that were not answered as expected, or not at all, as a share of all.
    pub(crate) failed: f64,
    /// The median latency, in milliseconds.
    pub(crate) p50_ms: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(crate) p99_ms: f64,
    /// The reason why it was not sustained, if any.
    pub(crate) not_sustained: Option<String>,
}

/// A ramp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ramp {
    /// The highest p99 of a sustained step, in milliseconds.
    pub(crate) max_p99_ms: f64,
    /// All steps in order. A repeated step is in the list twice.
    pub(crate) steps: Vec<RampStep>,
    /// The highest sustained rate.
    pub(crate) knee: Option<f64>,
}

/// What to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Go on with the next rate.
    Raise,
    /// Repeat the rate.
    Repeat,
    /// End: the server does not sustain the rate.
    End,
}

impl Ramp {
    /// Creates a ramp without steps.
    pub(crate) fn new(max_p99: Option<Duration>) -> Self {
        Self { max_p99_ms: max_p99.map_or(0.0, |limit| limit.as_secs_f64() * 1_000.0), steps: Vec::new(), knee: None }
    }

    /// Adds a step, checks it, and returns what to do next.
    pub(crate) fn add(&mut self, mut step: RampStep) -> NextStep {
        if self.max_p99_ms <= 0.0 {
            self.max_p99_ms = (P99_GROWTH * step.p99_ms).max(MIN_P99_LIMIT_MS);
        }
        step.not_sustained = self.objection(&step);
        let is_sustained = step.not_sustained.is_none();
        let is_again = self.steps.last().is_some_and(|last| last.target_rate >= step.target_rate);
        if is_sustained {
            self.knee = Some(step.target_rate);
        }
        self.steps.push(step);
        match (is_sustained, is_again) {
            (true, _) => NextStep::Raise,
            (false, false) => NextStep::Repeat,
            (false, true) => NextStep::End,
        }
    }

    fn objection(&self, step: &RampStep) -> Option<String> {
        if step.failed > MAX_FAILED {
            return Some(format!("{:.1} % of the requests failed", step.failed * 100.0));
        }
        if step.achieved_rate < step.target_rate * MIN_ACHIEVED {
            return Some(format!("{:.0} % of the rate", step.achieved_rate / step.target_rate * 100.0));
        }
        (step.p99_ms > self.max_p99_ms).then(|| format!("p99 above {:.1} ms", self.max_p99_ms))
    }

    /// Formats the ramp as text.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("ramp  target/s  answered/s   p50 ms   p99 ms\n");
        for step in &self.steps {
            let verdict = step.not_sustained.as_deref().map_or("sustained".to_owned(), |why| format!("not sustained: {why}"));
            text.push_str(&format!(
                "    {:>10.0}  {:>10.0} {:>8.2} {:>8.2}  {verdict}\n",
                step.target_rate, step.achieved_rate, step.p50_ms, step.p99_ms
            ));
        }
        let is_open = self.steps.last().is_some_and(|step| step.not_sustained.is_none());
        text.push_str(&match self.knee {
            Some(knee) if is_open => format!("knee  {knee:.0} requests/s or more: every step was sustained"),
            Some(knee) => format!("knee  {knee:.0} requests/s"),
            None => "knee  none: no step was sustained".to_owned(),
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(target_rate: f64, achieved: f64, p99_ms: f64, failed: f64) -> RampStep {
        RampStep { target_rate, achieved_rate: target_rate * achieved, failed, p50_ms: 1.0, p99_ms, not_sustained: None }
    }

    #[test]
    fn rates_are_evenly_spaced() {
        let range: RateRange = "1000..5000".parse().unwrap();
        assert_eq!(range.steps(5), [1_000.0, 2_000.0, 3_000.0, 4_000.0, 5_000.0]);
        for text in ["", "1000", "5..5", "5..4", "0..10", "-5..10", "a..b", "1..99999999999"] {
            assert!(text.parse::<RateRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_knee_is_the_highest_rate_that_was_sustained() {
        let mut ramp = Ramp::new(None);
        assert_eq!(ramp.add(step(1_000.0, 1.0, 3.0, 0.0)), NextStep::Raise);
        assert!((ramp.max_p99_ms - 30.0).abs() < 1e-9);
        // A hiccup.
        assert_eq!(ramp.add(step(2_000.0, 1.0, 31.0, 0.0)), NextStep::Repeat);
        assert_eq!(ramp.add(step(2_000.0, 0.96, 29.0, 0.001)), NextStep::Raise);
        assert_eq!(ramp.add(step(3_000.0, 0.94, 5.0, 0.0)), NextStep::Repeat);
        assert_eq!(ramp.add(step(3_000.0, 1.0, 5.0, 0.002)), NextStep::End);
        assert_eq!(ramp.knee, Some(2_000.0));
        let why: Vec<Option<&str>> = ramp.steps.iter().map(|step| step.not_sustained.as_deref()).collect();
        assert_eq!(why, [None, Some("p99 above 30.0 ms"), None, Some("94 % of the rate"), Some("0.2 % of the requests failed")]);
        assert!(ramp.describe().ends_with("knee  2000 requests/s"), "{}", ramp.describe());
    }

    #[test]
    fn the_limit_may_be_given_and_there_may_be_no_knee() {
        let mut ramp = Ramp::new(Some(Duration::from_millis(5)));
        assert_eq!(ramp.add(step(100.0, 1.0, 6.0, 0.0)), NextStep::Repeat);
        assert_eq!(ramp.add(step(100.0, 1.0, 6.0, 0.0)), NextStep::End);
        assert_eq!(ramp.knee, None);
        assert!(ramp.describe().contains("no step was sustained"));
        let mut ramp = Ramp::new(None);
        ramp.add(step(100.0, 1.0, 0.5, 0.0));
        assert!((ramp.max_p99_ms - 20.0).abs() < 1e-9);
        assert!(ramp.describe().contains("100 requests/s or more"), "{}", ramp.describe());
    }
}
