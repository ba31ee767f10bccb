//! Parsers of flags that several commands share.

use std::time::Duration;

/// A duration: `60` (seconds), `500ms`, `60s`, `5m`, `1h`, `7d`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let ms = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

/// Parses the duration of a flag, such as `10s` or `5m`.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("must be a duration, such as 10s or 5m")
}
