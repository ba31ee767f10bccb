//! Appends in flight: their figures for `/metrics`, and an alarm if one waits for long.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headcount_storage::boot_time::boot_time;
use tokio::time::{sleep, timeout};

/// How long an append may wait before an alarm, and the time between two alarms.
pub(super) const ALARM_EVERY: Duration = Duration::from_secs(30);
/// How long to wait for the name of the stream's leader.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The figures of a writer.
#[derive(Debug, Default)]
pub(crate) struct AppendFigures {
    /// The start of the append in flight, in milliseconds of [`boot_time`]; 0 if there is none.
    since: AtomicU64,
    /// The sequence of the last message that brokers confirmed.
    confirmed: AtomicU64,
    /// The number of messages sent again.
    retries: AtomicU64,
}

/// An append in flight.
struct UnderWay<'f>(&'f AppendFigures);

impl AppendFigures {
    /// Returns how long the append in flight has waited; zero if there is none.
    pub(crate) fn waits(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => boot_time().saturating_sub(Duration::from_millis(since)),
        }
    }

    /// Returns the sequence of the last confirmed message; 0 before the first.
    pub(crate) fn last_confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Returns the number of messages sent again.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    pub(super) fn confirmed(&self, sequence: u64) {
        self.confirmed.store(sequence, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    fn begin(&self) -> UnderWay<'_> {
        let now = u64::try_from(boot_time().as_millis()).unwrap_or(u64::MAX);
        self.since.store(now.max(1), Ordering::Relaxed);
        UnderWay(self)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Relaxed);
    }
}

/// Waits for an append. While it waits, an error is logged every `alarm_every` with the leader of
/// the stream: brokers may report themselves healthy and record nothing.
pub(super) async fn watched<T, L: Future<Output = String>>(
    figures: &AppendFigures,
    stream: &str,
    alarm_every: Duration,
    append: impl Future<Output = T>,
    leader: impl Fn() -> L,
) -> T {
    let _under_way = figures.begin();
    let alarms = async {
        loop {
            sleep(alarm_every).await;
            let leader = timeout(ANSWER_TIMEOUT, leader()).await.unwrap_or_else(|_| "unknown: no broker says it".to_owned());
            let waits_s = figures.waits().as_secs();
            tracing::error!(stream, leader, waits_s, "brokers do not confirm a message; look at the leader of the stream");
        }
    };
    let (mut append, mut alarms) = (pin!(append), pin!(alarms));
    tokio::select! {
        biased;
        appended = &mut append => appended,
        never = &mut alarms => never,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn an_append_that_waits_raises_alarms_until_it_ends() {
        let (figures, asked) = (AppendFigures::default(), Cell::new(0));
        let leader = || {
            asked.set(asked.get() + 1);
            std::future::ready("b1".to_owned())
        };
        let append = async {
            sleep(Duration::from_millis(50)).await;
            assert!(figures.waits() >= Duration::from_millis(40));
            7
        };
        assert_eq!(watched(&figures, "EV_000", Duration::from_millis(10), append, &leader).await, 7);
        assert!((1..=5).contains(&asked.get()), "{}", asked.get());
        assert_eq!(figures.waits(), Duration::ZERO);
        asked.set(0);
        watched(&figures, "EV_000", ALARM_EVERY, async {}, &leader).await;
        assert_eq!(asked.get(), 0);
        drop(watched(&figures, "EV_000", ALARM_EVERY, std::future::pending::<()>(), &leader));
        assert_eq!(figures.waits(), Duration::ZERO, "an append that is given up waits no longer");
    }
}
