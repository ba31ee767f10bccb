//! Parsers of flags that several commands share.

use std::time::Duration;

use crate::config;

/// Parses a duration such as `10s` or `5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    config::duration(text).ok_or("must be a duration, such as 10s or 5m")
}
