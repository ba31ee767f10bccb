//! The days that a question is about.

use headcount_domain::time::{Day, Timezone, Window};
use utoipa::IntoParams;

use crate::http::app::AppState;
use crate::http::extract::auth::ProjectCaller;
use crate::http::respond::error::ApiError;

/// The window of a question, as query parameters.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct WindowParams {
    /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
    start_date: Option<String>,
    /// The last day. Default: today.
    end_date: Option<String>,
}

/// The window of a question, and today if it is relative to it.
pub fn window(
    state: &AppState,
    caller: &ProjectCaller,
    start: Option<&str>,
    end: Option<&str>,
) -> Result<(Window, Option<Day>), ApiError> {
    window_in(state, caller.keyed.policy.timezone, start, end)
}

/// The same, in a timezone.
pub fn window_in(
    state: &AppState,
    timezone: Timezone,
    start: Option<&str>,
    end: Option<&str>,
) -> Result<(Window, Option<Day>), ApiError> {
    let now = state.engine.clock().now();
    let window = Window::resolve(start, end, timezone, now)?;
    Ok((window, Window::depends_on_today(start, end).then(|| timezone.day_of(now))))
}
