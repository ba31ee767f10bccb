//! Counts of requests for `/metrics`, and their ids.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;

/// Upper bounds of the latency buckets, in microseconds.
pub(crate) const BUCKETS_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000];

/// Counts of answers by class of status, and of their latencies.
#[derive(Debug, Default)]
pub(crate) struct RequestMetrics {
    by_class: [AtomicU64; 5],
    buckets: [AtomicU64; BUCKETS_US.len()],
    total: AtomicU64,
    total_us: AtomicU64,
    rate_limited: AtomicU64,
}

/// The values of [`RequestMetrics`] at one moment.
#[derive(Debug)]
pub(crate) struct RequestFigures {
    /// Answers of the classes 1xx to 5xx.
    pub(crate) by_class: [u64; 5],
    /// Answers not slower than each of [`BUCKETS_US`].
    pub(crate) not_slower: [u64; BUCKETS_US.len()],
    /// All answers.
    pub(crate) total: u64,
    /// The sum of their latencies, in microseconds.
    pub(crate) total_us: u64,
    /// Requests that the limit of their public key refused.
    pub(crate) rate_limited: u64,
}

impl RequestMetrics {
    /// Records one answer.
    pub(crate) fn count(&self, status: StatusCode, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        if let Some(class) = self.by_class.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.total.fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Counts a request that the limit of its public key refused.
    pub(crate) fn count_rate_limited(&self) {
        self.rate_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(crate) fn figures(&self) -> RequestFigures {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut not_slower = [0; BUCKETS_US.len()];
        let mut sum = 0;
        for (total, bucket) in not_slower.iter_mut().zip(&self.buckets) {
            sum += load(bucket);
            *total = sum;
        }
        let by_class = std::array::from_fn(|class| load(&self.by_class[class]));
        RequestFigures {
            by_class,
            not_slower,
            total: load(&self.total),
            total_us: load(&self.total_us),
            rate_limited: load(&self.rate_limited),
        }
    }
}

/// A new request id: 16 hex digits, unlikely to repeat, not secret.
pub(crate) fn next_request_id() -> HeaderValue {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(seed());
    }
    let mut state = STATE.get();
    // xorshift64*: the ids need to differ, nothing more.
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    STATE.set(state);
    let mut text = [0u8; 16];
    let mut rest = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
    }
    HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("0"))
}

fn seed() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    now.rotate_left(20) ^ THREADS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}
