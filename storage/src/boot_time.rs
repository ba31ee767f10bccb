//! A clock that nobody sets.

use std::time::Duration;

/// Returns the time since this machine was started, which also runs while it sleeps.
#[must_use]
pub fn boot_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
