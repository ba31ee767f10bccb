//! Rate limits of public keys and of projects: every event that is sent with a key counts, whatever
//! its outcome.
//!
//! Servers that send with a token have the limit of the token, which counts requests. Programs that
//! embed the engine have none.

use headcount_api::endpoint::*;
use headcount_api::rate_limit::{counted, headers, now};
use headcount_control::{Limiter, PublicKey};

/// What a sender may send: within the limits of its key and of the project, as long as the key is there. Tokens have none of these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance<'a>(Option<&'a PublicKey>);

impl<'a> Allowance<'a> {
    /// No limit.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// That of a public key.
    pub(crate) fn of(key: &'a PublicKey) -> Self {
        Self(Some(key))
    }

    fn limiters(self) -> impl Iterator<Item = &'a Limiter> {
        self.0.into_iter().flat_map(|key| [key.limiter.as_deref(), key.project_limiter.as_deref()]).flatten()
    }

    /// Refuses a request over a limit, before its body is read.
    pub(crate) fn check(self, state: &AppState) -> Result<(), ApiError> {
        self.limiters().try_for_each(|limiter| counted(state, limiter.check(now())))
    }

    /// Takes `events` of a body that was read from the limits, or refuses them all.
    pub(crate) fn take(self, state: &AppState, events: usize) -> Result<(), ApiError> {
        if self.0.is_some_and(PublicKey::is_removed) {
            return Err(ApiError::unauthenticated("the public key was removed while the request was under way"));
        }
        // What one limit refuses takes nothing from the other.
        self.check(state)?;
        self.limiters().try_for_each(|limiter| counted(state, limiter.take(now(), events)))
    }

    /// Adds what is left of the tightest limit to an answer.
    pub(crate) fn report(self, answer: Result<HttpResponse, ApiError>) -> Result<HttpResponse, ApiError> {
        let Some(headers) = headers(self.limiters()) else { return answer };
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
