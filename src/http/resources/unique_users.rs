//! `POST /projects/{project_id}/analytics/…`

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::Scope;
use headcount_domain::queries::{UniqueUsers, UniqueUsersQuery};
use headcount_domain::time::Day;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::AppState;
use crate::http::extract::auth::{self, MinRole};
use crate::http::extract::body::{self, Media};
use crate::http::extract::filters;
use crate::http::extract::query::{Fields, Query};
use crate::http::extract::window::window;
use crate::http::openapi::{BodyErrors, NotFoundErrors, NotModified, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::error::ApiError;
use crate::http::respond::etag::Tag;

/// What unique users are asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[allow(dead_code, reason = "read field by field, for errors that name the field; this is the shape for the document")]
pub struct UniqueUsersQuestion {
    /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
    start_date: Option<String>,
    /// The last day. Default: today.
    end_date: Option<String>,
    /// Only users with an event of this name.
    event_name: Option<String>,
    /// Only users with an event for which all of these hold; at most 20.
    filters: Option<Vec<filters::FilterShape>>,
}

/// Unique users per day.
#[derive(Debug, Serialize, ToSchema)]
pub struct UniqueUsersAnswer {
    /// Every day of the window.
    series: Vec<UsersDay>,
    /// The distinct users of the whole window: a union, not a sum.
    total_unique_users: u64,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
    /// In which days are counted.
    timezone: String,
}

/// One day's unique users.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsersDay {
    /// The day, `YYYY-MM-DD`.
    day: String,
    /// How many different users were active.
    unique_users: u64,
}

/// Unique users of every day of a window, and of the window.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/count-unique-users-per-day", tag = "analytics",
    params(ProjectPath),
    request_body = UniqueUsersQuestion,
    responses(
        (status = 200, description = "The counts.", body = UniqueUsersAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, BodyErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn count_unique_users_per_day(
    state: web::Data<AppState>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = auth::on_project(&state, &request, Scope::AnalyticsRead, MinRole::Member)?;
    Query::read(&request, &[])?;
    body::check_media(&request, Media::Json)?;
    let body = body::read(&request, payload, body::EVENT_LIMIT_BYTES).await?;
    let fields = Fields::read(&body, &["start_date", "end_date", "event_name", "filters"])?;
    let (start, end) = (fields.text("start_date")?, fields.text("end_date")?);
    let predicate = filters::predicate(fields.text("event_name")?, &fields)?;
    let (window, today) = window(&state, &caller, start.as_deref(), end.as_deref())?;
    let tag = Tag::of_project(&state, &caller, today, &request, &body).await?;
    let users = async {
        match predicate {
            None => state.engine.ask(caller.project, UniqueUsersQuery { window }).await,
            Some(predicate) => state.engine.scan_unique_users(caller.project, window, predicate).await,
        }
    };
    let day = |(day, unique_users): &(Day, u64)| UsersDay { day: day.to_string(), unique_users: *unique_users };
    let answer = |users: UniqueUsers| UniqueUsersAnswer {
        series: users.series.iter().map(day).collect(),
        total_unique_users: users.total,
        start_date: window.start.to_string(),
        end_date: window.end.to_string(),
        timezone: caller.keyed.policy.timezone.name().to_owned(),
    };
    tag.reply(&request, users, answer).await
}
