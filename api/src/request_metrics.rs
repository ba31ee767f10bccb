//! Counts of requests for `/metrics`.

use std::time::Duration;

use actix_web::http::StatusCode;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// Counts of answers by class of status, and of their latencies.
#[derive(Debug)]
pub struct RequestMetrics {
    /// All classes.
    answers: IntCounterVec,
    /// The counters of the classes 1xx to 5xx, which are found without a look-up.
    by_class: [IntCounter; 5],
    latencies: Histogram,
    rate_limited: IntCounter,
    forwarded: IntCounterVec,
}

/// What came of a request of a project that another node owns.
#[derive(Debug, Clone, Copy)]
pub enum Forwarded {
    /// The owner answered.
    Answered,
    /// The owner could not be reached: nothing was sent.
    NotSent,
    /// The owner did not answer.
    Lost,
    /// Too many requests to the owner were under way: nothing was sent.
    Busy,
    /// No owner is known, or another node took this one for the owner.
    NoOwner,
}

impl Forwarded {
    const ALL: [Self; 5] = [Self::Answered, Self::NotSent, Self::Lost, Self::Busy, Self::NoOwner];

    fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotSent => "not_sent",
            Self::Lost => "lost",
            Self::Busy => "busy",
            Self::NoOwner => "no_owner",
        }
    }
}

impl RequestMetrics {
    /// Returns counters that are 0.
    pub fn new() -> prometheus::Result<Self> {
        let answers = Opts::new("headcount_http_requests_total", "Answers by class of status.");
        let answers = IntCounterVec::new(answers, &["class"])?;
        let latencies = HistogramOpts::new("headcount_http_request_duration_seconds", "How long answers took.");
        let forwarded =
            Opts::new("headcount_forwarded_requests_total", "Requests of projects that another node owns, by outcome.");
        let forwarded = IntCounterVec::new(forwarded, &["outcome"])?;
        for outcome in Forwarded::ALL {
            // Shown before there is one.
            forwarded.with_label_values(&[outcome.as_str()]);
        }
        Ok(Self {
            forwarded,
            by_class: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| answers.with_label_values(&[class])),
            answers,
            latencies: Histogram::with_opts(latencies.buckets(BUCKETS.to_vec()))?,
            rate_limited: IntCounter::new(
                "headcount_rate_limit_refusals_total",
                "Requests that the rate limit of their public key refused.",
            )?,
        })
    }

    /// Records one answer.
    pub fn count(&self, status: StatusCode, latency: Duration) {
        if let Some(class) = self.by_class.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            class.inc();
        }
        self.latencies.observe(latency.as_secs_f64());
    }

    /// Counts a request that the limit of its public key refused.
    pub fn count_rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// Counts a request of a project that another node owns.
    pub(crate) fn count_forwarded(&self, outcome: Forwarded) {
        self.forwarded.with_label_values(&[outcome.as_str()]).inc();
    }

    /// Returns the counters, for a registry.
    pub fn collectors(&self) -> [Box<dyn Collector>; 4] {
        [
            Box::new(self.answers.clone()),
            Box::new(self.latencies.clone()),
            Box::new(self.rate_limited.clone()),
            Box::new(self.forwarded.clone()),
        ]
    }
}
