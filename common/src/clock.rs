//! The clock enters the engine here, and nowhere else.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use headcount_domain::Instant;

/// A source of time. Tests supply their own.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Instant;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Instant(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        #[cfg(feature = "fault-injection")]
        let now = now.plus_ms(ahead_ms());
        now
    }
}

/// The milliseconds by which the clock is deliberately ahead, from the file that a variable names.
/// Replacing the file makes the clock jump.
#[cfg(feature = "fault-injection")]
fn ahead_ms() -> i64 {
    static FILE: std::sync::OnceLock<Option<std::path::PathBuf>> = std::sync::OnceLock::new();
    let file = FILE.get_or_init(|| std::env::var_os("HEADCOUNT_CLOCK_AHEAD").map(Into::into));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// A clock that stands still until it is set.
#[derive(Debug, Clone, Default)]
pub struct FixedClock(Arc<AtomicI64>);

impl FixedClock {
    /// Creates a clock that stands at `now`.
    pub fn at(now: Instant) -> Self {
        let clock = Self::default();
        clock.set(now);
        clock
    }

    /// Sets the clock to `now`.
    pub fn set(&self, now: Instant) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::SeqCst))
    }
}
