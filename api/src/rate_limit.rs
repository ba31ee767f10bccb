//! Rate limits as clients see them: the headers that report what is left, and the refusal.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use actix_web::http::header::{HeaderName, HeaderValue};
use headcount_control::{LimitUsedUp, Limiter};

use crate::app::AppState;
use crate::respond::error::{ApiError, Result};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// The limiter of the token that a request is authorized by.
#[derive(Debug)]
pub(crate) struct TokenLimiter(pub(crate) Arc<Limiter>);

/// The headers that report the tightest of the limits; none without a limit.
pub fn headers<'a>(limiters: impl Iterator<Item = &'a Limiter>) -> Option<[(HeaderName, HeaderValue); 3]> {
    let standing = limiters.map(|limiter| limiter.standing(now())).min_by_key(|standing| standing.remaining)?;
    Some([
        (LIMIT, HeaderValue::from(standing.burst)),
        (REMAINING, HeaderValue::from(standing.remaining)),
        (RESET, HeaderValue::from(standing.full_in_seconds)),
    ])
}

/// Refuses a request whose limit is used up, and counts the refusal.
pub fn counted(state: &AppState, result: Result<(), LimitUsedUp>) -> Result<()> {
    result.map_err(|used_up| {
        state.request_metrics.count_rate_limited();
        ApiError::rate_limited(used_up.to_string(), used_up.retry_after_seconds)
    })
}

/// Returns the monotonic time by which events and requests are counted.
pub fn now() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
