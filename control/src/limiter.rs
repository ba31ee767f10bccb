//! A rate limit: a bucket of `burst` tokens that refills at a constant rate.
//!
//! The bucket is a single number, the time at which it will be full again (the "theoretical arrival
//! time" of the generic cell rate algorithm, ITU-T I.371). It therefore needs no lock and no timer,
//! and its memory does not grow with use.
//!
//! A request needs one token but takes one per event, so a batch may leave the bucket in debt.
//! Whether a batch is accepted therefore doesn't depend on its size, and no batch is too large for
//! every bucket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::model::RateLimit;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A token bucket. All times passed to it count from the same arbitrary origin; it starts full.
#[derive(Debug)]
pub struct Limiter {
    /// The limit that the bucket enforces.
    pub limit: RateLimit,
    /// The time to refill one token.
    token_ns: u64,
    /// The time to refill an empty bucket.
    capacity_ns: u64,
    /// The time at which the bucket is full if nothing more is taken.
    full_at_ns: AtomicU64,
}

/// The state of a bucket at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The capacity, in events or requests.
    pub burst: u32,
    /// The number of available tokens; 0 in debt.
    pub remaining: u64,
    /// The seconds until the bucket is full, rounded up.
    pub full_in_seconds: u64,
}

/// The error for a bucket without a token; nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rate limit of {} a second, {} at once, is used up", limit.per_second, limit.burst())]
pub struct LimitUsedUp {
    /// The limit.
    pub limit: RateLimit,
    /// The seconds until a token is available, rounded up; at least 1.
    pub retry_after_seconds: u64,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit) -> Self {
        // Rounded up, so that the limit is never exceeded; the error is below a thousandth, as
        // rates go up to a million.
        let token_ns = NS_PER_SECOND.div_ceil(u64::from(limit.per_second.max(1)));
        let capacity_ns = token_ns.saturating_mul(u64::from(limit.burst().max(1)));
        Self { limit, token_ns, capacity_ns, full_at_ns: AtomicU64::new(0) }
    }

    /// Takes one token per event if at least one token is available.
    ///
    /// # Errors
    /// Returns a [`LimitUsedUp`] if there is none.
    pub fn take(&self, now: Duration, events: usize) -> Result<(), LimitUsedUp> {
        let now_ns = as_ns(now);
        let cost_ns = u64::try_from(events).unwrap_or(u64::MAX).saturating_mul(self.token_ns);
        // No other memory is published through this number, so relaxed ordering suffices.
        let update = self.full_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at_ns| {
            self.has_one(full_at_ns, now_ns).ok()?;
            Some(full_at_ns.max(now_ns).saturating_add(cost_ns))
        });
        update.map(drop).or_else(|full_at_ns| self.has_one(full_at_ns, now_ns))
    }

    /// Checks for a token without taking any, so that requests can be refused before their body is
    /// read.
    ///
    /// # Errors
    /// Returns a [`LimitUsedUp`] if there is none.
    pub fn check(&self, now: Duration) -> Result<(), LimitUsedUp> {
        self.has_one(self.full_at_ns.load(Ordering::Relaxed), as_ns(now))
    }

    /// Returns the bucket's state at `now`.
    pub fn standing(&self, now: Duration) -> Standing {
        let missing_ns = self.full_at_ns.load(Ordering::Relaxed).saturating_sub(as_ns(now));
        Standing {
            burst: self.limit.burst(),
            remaining: self.capacity_ns.saturating_sub(missing_ns) / self.token_ns,
            full_in_seconds: missing_ns.div_ceil(NS_PER_SECOND),
        }
    }

    fn has_one(&self, full_at_ns: u64, now_ns: u64) -> Result<(), LimitUsedUp> {
        let missing_ns = full_at_ns.saturating_sub(now_ns);
        match missing_ns.saturating_sub(self.capacity_ns - self.token_ns) {
            0 => Ok(()),
            wait_ns => Err(LimitUsedUp { limit: self.limit, retry_after_seconds: wait_ns.div_ceil(NS_PER_SECOND) }),
        }
    }
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn limiter(per_second: u32, burst: u32) -> Limiter {
        Limiter::new(RateLimit { per_second, burst: Some(burst) })
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_table_of_times_and_events() {
        // Two events a second, three at once.
        let limiter = limiter(2, 3);
        let table = [
            // at, events, refused for, remaining, full in
            (ms(0), 1, None, 2, 1),
            (ms(0), 1, None, 1, 1),
            (ms(0), 1, None, 0, 2),
            (ms(0), 1, Some(1), 0, 2),
            (ms(499), 1, Some(1), 0, 2),
            (ms(500), 1, None, 0, 2),
            (ms(999), 1, Some(1), 0, 2),
            (ms(1_500), 1, None, 1, 1),
            // A batch needs one token, and leaves a debt of six seconds.
            (ms(1_500), 13, None, 0, 8),
            (ms(1_500), 1, Some(7), 0, 8),
            (ms(1_501), 1, Some(7), 0, 8),
            (ms(7_500), 1, Some(1), 0, 2),
            (ms(7_999), 1, Some(1), 0, 2),
            (ms(8_000), 1, None, 0, 2),
            // The bucket never exceeds its capacity.
            (ms(1_000_000), 1, None, 2, 1),
            // A thread that read the clock slightly earlier sees the bucket at that time: 1.01 s
            // from full.
            (ms(999_990), 1, None, 0, 2),
            (ms(1_000_000), 0, None, 1, 1),
        ];
        for (row, (at, events, refused_for, remaining, full_in_seconds)) in table.into_iter().enumerate() {
            let refused = limiter.take(at, events).err().map(|used_up| used_up.retry_after_seconds);
            let expected = Standing { burst: 3, remaining, full_in_seconds };
            assert_eq!((refused, limiter.standing(at)), (refused_for, expected), "row {row}");
        }
    }

    #[test]
    fn checking_takes_nothing() {
        let limiter = limiter(1, 1);
        let at = ms(5_000);
        assert_eq!((limiter.check(at), limiter.check(at)), (Ok(()), Ok(())));
        assert_eq!(limiter.standing(at), Standing { burst: 1, remaining: 1, full_in_seconds: 0 });
        limiter.take(at, 1).unwrap();
        let refused = limiter.check(at).unwrap_err();
        assert_eq!(refused.retry_after_seconds, 1);
        assert_eq!(refused.to_string(), "the rate limit of 1 a second, 1 at once, is used up");
    }

    /// At any rate, a sender without pauses gets the burst plus the refill of the elapsed time, and
    /// never more.
    #[test]
    fn the_rate_is_kept() {
        for per_second in [1, 3, 7, 60, 999, 1_000, 77_777, 1_000_000] {
            let limiter = limiter(per_second, 5);
            let every_ns = NS_PER_SECOND / u64::from(per_second) / 7 + 1;
            let seconds = if per_second > 1_000 { 1 } else { 60 };
            let times = (0..).map(|i| i * every_ns).take_while(|at| *at < seconds * NS_PER_SECOND);
            let taken = times.filter(|at| limiter.take(Duration::from_nanos(*at), 1).is_ok()).count() as u64;
            let allowed = 5 + seconds * u64::from(per_second);
            assert!(taken <= allowed && taken + 1 + allowed / 1_000 >= allowed, "{per_second}: {taken} of {allowed}");
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        for limiter in [limiter(1_000_000, 1_000_000), limiter(1, 1_000_000), limiter(1, 1)] {
            let now = Duration::from_secs(u64::from(u32::MAX));
            limiter.take(now, usize::MAX).unwrap();
            assert!(limiter.take(now, 1).unwrap_err().retry_after_seconds > 5_000);
            assert_eq!(limiter.standing(Duration::MAX).remaining, u64::from(limiter.limit.burst()));
        }
    }

    #[test]
    fn threads_take_no_more_than_there_is() {
        let limiter = limiter(1, 1_000);
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let took = (0..500).filter(|_| limiter.take(ms(0), 1).is_ok()).count();
                    taken.fetch_add(took, Ordering::Relaxed);
                });
            }
        });
        assert_eq!((taken.into_inner(), limiter.standing(ms(0)).remaining), (1_000, 0));
    }
}
