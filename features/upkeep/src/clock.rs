//! `/admin/clock`: needs the operator token.

use headcount_actors::{ClockJump, ClockState, ConfirmClockError};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_domain::time::Day;

json_body! {
    /// A confirmation that the clock is right.
    #[schema(example = json!({"today": "2026-11-29"}))]
    pub(crate) struct ClockConfirmation {
        /// Which day it is, in any timezone. It must be the day that the clock shows.
        #[schema(format = Date)]
        today: String = required("a date such as 2026-11-29"),
    }
}

/// What the clock of the server shows, and what of it is believed where something would be removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClockAnswer {
    /// What the clock shows.
    shown: Timestamp,
    /// The time as of which something is removed.
    believed: Timestamp,
    /// Whether the clock is so far ahead that nothing is removed by it.
    doubted: bool,
    /// The jump at which the floors of projects stop whose retention is shorter; null: none.
    #[schema(required)]
    jump: Option<ClockJumpAnswer>,
    /// The last jumps that were confirmed, oldest first.
    confirmed: Vec<ClockJumpAnswer>,
}

/// A jump of the clock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClockJumpAnswer {
    /// The time before it.
    from: Timestamp,
    /// What the clock showed after it.
    to: Timestamp,
}

impl From<ClockJump> for ClockJumpAnswer {
    fn from(ClockJump { from, to }: ClockJump) -> Self {
        Self { from: from.into(), to: to.into() }
    }
}

impl ClockAnswer {
    /// What an engine says.
    pub(crate) fn of(state: ClockState) -> Self {
        let ClockState { shown, believed, is_doubted, jump, confirmed } = state;
        let (jump, confirmed) = (jump.map(Into::into), confirmed.into_iter().map(Into::into).collect());
        Self { shown: shown.into(), believed: believed.into(), doubted: is_doubted, jump, confirmed }
    }
}

fn answered(state: ClockState) -> HttpResponse {
    management::unstored(&ClockAnswer::of(state))
}

/// What the clock shows, and whether it is believed.
#[utoipa::path(
    get, path = "/admin/clock", tag = "operations", operation_id = "show_clock",
    responses((status = 200, description = "What the clock of this server shows.", body = ClockAnswer)),
    security(("operator_token" = []))
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    Ok(answered(state.engine.clock_state()))
}

/// Confirms that the clock is right, although it is far ahead of the last known time: what has expired by it is removed from then on, and that can't be undone.
#[utoipa::path(
    post, path = "/admin/clock", tag = "operations", operation_id = "confirm_clock",
    request_body = ClockConfirmation,
    responses(
        (status = 200, description = "The clock is believed, which is noted with the jump. If it was before, nothing has changed.", body = ClockAnswer),
    ),
    security(("operator_token" = []))
)]
pub(crate) async fn confirm(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse, ApiError> {
    let ClockConfirmation { today } = json::read(&state, &request, payload).await?;
    let day = Day::parse(&today).ok_or_else(|| ApiError::parameter("today", "`today` must be a date such as 2026-11-29"))?;
    let confirmed = management::on_engine(&state, move |engine| Ok(engine.confirm_clock(day).map(|()| engine.clock_state())));
    match confirmed.await? {
        Ok(state) => Ok(answered(state)),
        Err(error @ ConfirmClockError::OtherDay(_)) => Err(ApiError::parameter("today", format!("`today`: {error}"))),
        Err(error @ ConfirmClockError::Io(_)) => {
            tracing::error!(%error, "the clock could not be confirmed");
            Err(ApiError::overloaded("the confirmation can't be written now"))
        }
    }
}
