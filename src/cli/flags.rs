//! Values of flags that several commands read.

use std::time::Duration;

use crate::config;

/// Parses the size of a stream, such as `1GiB`: it has room for a message of the largest size.
pub(crate) fn stream_bytes(text: &str) -> Result<i64, &'static str> {
    let bytes = config::bytes(text).and_then(|bytes| i64::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 8 << 20).ok_or("must be a size of at least 8MiB, such as 1GiB or 1GB")
}

/// Parses a duration such as `10s` or `5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    config::duration(text).ok_or("must be a duration, such as 10s or 5m")
}
