//! Schedules requests.
//!
//! Open loop: like visitors, request `n` comes at `start + n / rate` and waits for no earlier
//! response. Latency is measured from the due time, so a server that stalls is charged for every
//! waiting request, which corrects for coordinated omission. Closed loop: a connection sends its
//! next request as soon as it has a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The interval at which due requests are released. The runtime's timers have a resolution of a
/// millisecond, so a thread sleeps instead.
const TICK: Duration = Duration::from_micros(250);

/// Hands out requests to connections.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    start: Instant,
    end: Instant,
    rate: Option<f64>,
    first: u64,
    next: Arc<AtomicU64>,
    due: Arc<Semaphore>,
    is_stopped: Arc<AtomicBool>,
}

/// A request to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turn {
    /// The number of the request.
    pub(crate) number: u64,
    /// The time when it was due.
    pub(crate) due: Instant,
}

impl Pace {
    /// Starts now, for `lasting`, with `rate` requests per second or as fast as responses arrive.
    /// The first request has the number `first`.
    pub(crate) fn start(rate: Option<f64>, lasting: Duration, first: u64) -> std::io::Result<Self> {
        let start = Instant::now();
        let due = Arc::new(Semaphore::new(0));
        let pace = Self { start, end: start + lasting, rate, first, next: Arc::default(), due, is_stopped: Arc::default() };
        if let Some(rate) = rate {
            let pacer = pace.clone();
            std::thread::Builder::new().name("load-pace".into()).spawn(move || pacer.release(rate))?;
        }
        Ok(pace)
    }

    /// Waits until the next request is due. Returns `None` when time is up.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        let Some(rate) = self.rate else {
            let now = Instant::now();
            let goes_on = now < self.end && !self.is_stopped();
            return goes_on.then(|| Turn { number: self.first + self.next.fetch_add(1, Ordering::Relaxed), due: now });
        };
        self.due.acquire().await.ok()?.forget();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Some(Turn { number: self.first + number, due: due(self.start, number, rate) })
    }

    /// The number of the first request that was not sent.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.next.load(Ordering::Relaxed)
    }

    /// Ends it now: even due requests are not sent.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.due.close();
    }

    /// Whether it ended early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Releases requests as they become due. Requests that are due before the end are sent, however
    /// late.
    fn release(&self, rate: f64) {
        let mut released = 0;
        loop {
            let now = Instant::now().min(self.end);
            let due = due_by(now - self.start, rate);
            let more = usize::try_from(due.saturating_sub(released)).unwrap_or(0).min(Semaphore::MAX_PERMITS >> 1);
            self.due.add_permits(more);
            released += more as u64;
            if now >= self.end || self.is_stopped() {
                break;
            }
            std::thread::sleep(TICK);
        }
        // Once all released requests are taken, wake the waiting connections.
        while self.due.available_permits() > 0 && !self.is_stopped() {
            std::thread::sleep(TICK);
        }
        self.due.close();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a microsecond of a year is far above the precision that is lost")]
fn due(start: Instant, number: u64, rate: f64) -> Instant {
    start + Duration::from_secs_f64(number as f64 / rate)
}

/// Returns the number of requests that are due after `elapsed`. The first one is due at once.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of requests")]
fn due_by(elapsed: Duration, rate: f64) -> u64 {
    (elapsed.as_secs_f64() * rate) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_the_rate() {
        let start = Instant::now();
        assert_eq!(due(start, 500, 1_000.0) - start, Duration::from_millis(500));
        for (ms, expected) in [(0, 1), (1, 2), (10, 11), (1_000, 1_001)] {
            assert_eq!(due_by(Duration::from_millis(ms), 1_000.0), expected);
        }
    }

    #[test]
    fn a_late_request_keeps_the_time_at_which_it_was_due() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pace = Pace::start(Some(1_000.0), Duration::from_millis(50), 1_000).unwrap();
            // The only connection is stalled all the time.
            std::thread::sleep(Duration::from_millis(80));
            let mut turns = Vec::new();
            while let Some(turn) = pace.turn().await {
                turns.push(turn);
            }
            assert_eq!(turns.len(), 51);
            assert_eq!((turns[0].number, turns[50].number, pace.next_number()), (1_000, 1_050, 1_051));
            assert!(turns.iter().all(|turn| turn.due.elapsed() >= Duration::from_millis(30)));
        });
    }

    #[test]
    fn a_pace_that_is_stopped_hands_out_nothing_more() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for rate in [None, Some(1_000_000.0)] {
            let pace = Pace::start(rate, Duration::from_secs(3_600), 0).unwrap();
            runtime.block_on(async {
                assert!(pace.turn().await.is_some());
                pace.stop();
                assert!(pace.is_stopped());
                assert_eq!(pace.turn().await, None);
            });
        }
    }
}
