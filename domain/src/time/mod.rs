//! Instants, calendar days of an organization's timezone, months, and windows of days. This module
//! reads no clock: functions that depend on today take `now`.

mod buckets;
mod calendar;
mod cohort_interval;
mod instant;
mod timezone;
mod window;

pub use buckets::{Bucket, BucketStart, Buckets, Interval, MAX_HOURLY_DAYS};
pub use calendar::{Day, Month};
pub use cohort_interval::CohortInterval;
pub use instant::{ClampedTime, EARLIEST, Instant, MAX_AHEAD_MS, TooEarly, clamp_timestamp};
pub use timezone::{Timezone, UnknownTimezone};
pub use window::{BeforeFloor, DEFAULT_WINDOW_DAYS, MAX_WINDOW_DAYS, Window, WindowError};

/// The milliseconds in a day without a clock change.
pub const MS_PER_DAY: i64 = 86_400_000;
