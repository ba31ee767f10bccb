//! Rate limits of public keys: every event that is sent with a key counts, whatever becomes of it.
//!
//! Only what comes over HTTP with a key is limited. Servers send with a token, and programs that embed the engine with none.

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

/// The limit that a sender has, if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance<'a>(Option<&'a Limiter>);

impl<'a> Allowance<'a> {
    /// No limit.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// That of a public key.
    pub(crate) fn of(limiter: Option<&'a Limiter>) -> Self {
        Self(limiter)
    }

    /// Refuses what can't be taken, before its body is read.
    pub(crate) fn check(self, state: &AppState) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), |limiter| counted(state, limiter.check(now())))
    }

    /// Counts so many events, or refuses them all.
    pub(crate) fn take(self, state: &AppState, events: usize) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), |limiter| counted(state, limiter.take(now(), events)))
    }

    /// Says in an answer, whatever it is, how much is left.
    pub(crate) fn told(self, answer: Result<HttpResponse, ApiError>) -> Result<HttpResponse, ApiError> {
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
        state.traffic.count_rate_limited();
        ApiError::rate_limited(used_up.to_string(), used_up.retry_after_seconds)
    })
}

/// The time by which events are counted. Unlike the time of day it is never set back.
fn now() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
