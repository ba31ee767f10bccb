//! The known time, as of which data may be removed, and the regular jobs: see `clock_guard.rs`.

use std::sync::Arc;
use std::time::Duration;

use headcount_domain::Day;

use super::handle::Engine;
use crate::clock_guard::{ClockState, ConfirmClockError};
use crate::intake_counts::{FLUSH_EVERY, logged};
use crate::parts::EngineParts;

/// The time between two checks of the clock.
const INTERVAL: Duration = Duration::from_secs(60);

impl EngineParts {
    /// The time of the clock, and the known time.
    #[must_use]
    pub fn clock_state(&self) -> ClockState {
        self.clock_guard.state()
    }

    /// How far the clock is ahead of the known time, if it is not believed.
    pub(super) fn clock_ahead(&self) -> Option<Duration> {
        let ClockState { shown, believed, is_doubted, .. } = self.clock_state();
        let ahead = u64::try_from(shown.0.saturating_sub(believed.0)).unwrap_or_default();
        is_doubted.then(|| Duration::from_millis(ahead))
    }

    /// The number of projects whose floors wait for [`Engine::confirm_clock`].
    pub(super) fn held_floors(&self) -> usize {
        self.registry().retentions().iter().filter(|(_, days)| self.clock_guard.holds(*days)).count()
    }

    /// Records how far the time has come.
    pub(super) fn keep_time(&self) {
        let shortest = self.registry().retentions().iter().map(|(_, days)| *days).min();
        if let Err(error) = self.clock_guard.keep(shortest) {
            tracing::warn!(%error, "how far the time has come could not be written: will try again");
        }
    }

    /// Like [`Self::keep_time`], and removes expired data that no other job removes.
    fn note_time(&self) {
        self.keep_time();
        let now = self.known_now();
        if let Err(error) = self.secrets().forget_salts(now, self.clock().now()) {
            tracing::error!(%error, "visitor salts of former days could not be removed: will try again");
        }
        if let Err(error) = self.registry().note_time(now) {
            tracing::warn!(%error, "audit logs keep entries for longer");
        }
    }
}

impl Engine {
    /// Confirms the clock although it is far ahead. `day` is the day that it shows, in any
    /// timezone. Does nothing if the clock is already believed.
    ///
    /// Waits for the disk, so async code must call it on a thread that may block.
    ///
    /// # Errors
    /// See [`ConfirmClockError`]; nothing has changed then.
    pub fn confirm_clock(&self, day: Day) -> Result<(), ConfirmClockError> {
        self.clock_guard.confirm(day)?;
        self.ingest.apply_changes_soon(Vec::new(), |_| true);
        Ok(())
    }

    /// Checks the clock now and at every interval.
    pub(super) fn start_known_time(&self) {
        self.note_time();
        let parts = EngineParts::clone(self);
        self.repeat(INTERVAL.min(self.ingest.retention_interval), move || parts.note_time());
    }

    /// Writes the counts of dropped events regularly.
    pub(super) fn start_counting(&self) {
        let (parts, counts) = (EngineParts::clone(self), Arc::clone(&self.ingest.counts));
        self.repeat(FLUSH_EVERY, move || logged(counts.flush(parts.clock().now(), parts.known_now())));
    }

    /// Does blocking work at every interval, while the engine exists.
    fn repeat(&self, interval: Duration, work: impl Fn() + Clone + Send + 'static) {
        let parts = EngineParts::clone(self);
        self.ingest.arbiter.spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                if parts.is_closing() || tokio::task::spawn_blocking(work.clone()).await.is_err() {
                    return;
                }
            }
        });
    }
}
