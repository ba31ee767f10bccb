//! Rate limits of public keys: every event that is sent with a key counts, whatever its outcome.
//!
//! Servers that send with a token, and programs that embed the engine, have no limit.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};
use headcount_actors::registry::{LimitUsedUp, Limiter};

use crate::http::app::AppState;
use crate::http::respond::error::ApiError;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// The rate limit of a sender, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance<'a>(Option<&'a Limiter>);

impl<'a> Allowance<'a> {
    /// No limit.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// Returns the limit of a public key.
    pub(crate) fn of(limiter: Option<&'a Limiter>) -> Self {
        Self(limiter)
    }

    /// Refuses a request over the limit, before its body is read.
    pub(crate) fn check(self, state: &AppState) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), |limiter| counted(state, limiter.check(now())))
    }

    /// Takes `events` from the limit, or refuses them all.
    pub(crate) fn take(self, state: &AppState, events: usize) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), |limiter| counted(state, limiter.take(now(), events)))
    }

    /// Adds the remaining limit to an answer.
    pub(crate) fn report(self, answer: Result<HttpResponse, ApiError>) -> Result<HttpResponse, ApiError> {
        let Some(limiter) = self.0 else { return answer };
        let standing = limiter.standing(now());
        let headers = [
            (LIMIT, HeaderValue::from(standing.burst)),
            (REMAINING, HeaderValue::from(standing.remaining)),
            (RESET, HeaderValue::from(standing.full_in_seconds)),
        ];
        match answer {
            Ok(mut response) => {
                for (name, value) in headers {
                    response.headers_mut().insert(name, value);
                }
                Ok(response)
            }
            Err(error) => Err(headers.into_iter().fold(error, |error, (name, value)| error.with_header(name, value))),
        }
    }
}

fn counted(state: &AppState, result: Result<(), LimitUsedUp>) -> Result<(), ApiError> {
    result.map_err(|used_up| {
        state.request_metrics.count_rate_limited();
        ApiError::rate_limited(used_up.to_string(), used_up.retry_after_seconds)
    })
}

/// Returns the monotonic time by which events are counted.
fn now() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
