//! `GET /projects/{project_id}/analytics/traffic`

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::Scope;
use headcount_domain::figures::{ComparedWindows, OriginRow, SessionOrigins};
use headcount_domain::time::Window;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::AppState;
use crate::http::extract::auth::MinRole;
use crate::http::extract::parameters::Limit;
use crate::http::extract::path::ProjectPath;
use crate::http::extract::query::query_parameters;
use crate::http::extract::question::ProjectQuestion;
use crate::http::extract::share_rules::{NamedField, SharedQuestion};
use crate::http::openapi::responses::{NotFoundErrors, NotModified, QuestionErrors};
use crate::http::resources::raw_events::parameters::SentDates;
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

query_parameters! {
    /// The window of the sessions.
    pub(crate) struct TrafficParameters {
        /// Default: 30 days before today.
        dates: SentDates,
        /// The most rows of each list.
        limit: Limit<1_000, 100>,
    }
}

impl SharedQuestion for TrafficParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { dates: _, limit: _ } = self;
        Vec::new()
    }
}

/// The sessions that began in a window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrafficAnswer {
    /// How many sessions.
    sessions: u64,
    /// Sessions of exactly one event.
    bounces: u64,
    /// `bounces` / `sessions`.
    bounce_rate: Decimal,
    /// By acquisition channel. All lists are by sessions, descending, and not longer than `limit`.
    by_channel: Vec<SessionsRow>,
    /// By source; `(direct)` if it is unknown.
    by_source: Vec<SessionsRow>,
    /// By medium; `(none)` if it is unknown.
    by_medium: Vec<SessionsRow>,
    /// By campaign; `(none)` if it is unknown.
    by_campaign: Vec<SessionsRow>,
    /// Whether one of the lists has more rows.
    truncated: bool,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
    /// The timezone of the days.
    timezone: String,
}

/// The sessions of one channel, source, medium or campaign.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionsRow {
    /// The channel, source, medium or campaign of the session's first event.
    value: String,
    /// How many sessions.
    sessions: u64,
    /// Sessions of exactly one event.
    bounces: u64,
    /// `bounces` / `sessions`.
    bounce_rate: Decimal,
}

impl From<OriginRow> for SessionsRow {
    fn from(OriginRow { value, figures }: OriginRow) -> Self {
        Self { value, sessions: figures.sessions, bounces: figures.bounces, bounce_rate: Decimal(figures.bounce_rate()) }
    }
}

/// Sessions of a window by channel, source, medium and campaign.
#[utoipa::path(
    get, path = "/projects/{project_id}/analytics/traffic", tag = "analytics", operation_id = "traffic",
    params(ProjectPath, TrafficParameters),
    responses(
        (status = 200, description = "The sessions.", body = TrafficAnswer, example = json!({
            "sessions": 3, "bounces": 1, "bounce_rate": 0.333333,
            "by_channel": [
                {"value": "Organic Search", "sessions": 2, "bounces": 1, "bounce_rate": 0.5},
                {"value": "Direct", "sessions": 1, "bounces": 0, "bounce_rate": 0}
            ],
            "by_source": [
                {"value": "google", "sessions": 2, "bounces": 1, "bounce_rate": 0.5},
                {"value": "(direct)", "sessions": 1, "bounces": 0, "bounce_rate": 0}
            ],
            "by_medium": [
                {"value": "organic", "sessions": 2, "bounces": 1, "bounce_rate": 0.5},
                {"value": "(none)", "sessions": 1, "bounces": 0, "bounce_rate": 0}
            ],
            "by_campaign": [{"value": "(none)", "sessions": 3, "bounces": 1, "bounce_rate": 0.333333}],
            "truncated": false,
            "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified, QuestionErrors, NotFoundErrors,
    ),
)]
pub(crate) async fn traffic(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<TrafficParameters>::read_shared(&state, &request, Scope::AnalyticsRead, MinRole::Member)?;
    let TrafficParameters { dates, limit } = &question.parameters;
    let shown = |rows: Vec<OriginRow>| rows.into_iter().map(SessionsRow::from).collect();
    let answer = |origins: SessionOrigins, window: Window| TrafficAnswer {
        sessions: origins.totals.sessions,
        bounces: origins.totals.bounces,
        bounce_rate: Decimal(origins.totals.bounce_rate()),
        by_channel: shown(origins.by_channel),
        by_source: shown(origins.by_source),
        by_medium: shown(origins.by_medium),
        by_campaign: shown(origins.by_campaign),
        truncated: origins.truncated,
        start_date: window.start.to_string(),
        end_date: window.end.to_string(),
        timezone: question.subject.config.policy.timezone.name().to_owned(),
    };
    let reply = async |window| {
        let origins = state.engine.traffic(question.subject.project, window, limit.rows());
        let depends = ComparedWindows { window, previous: None }.depends();
        question.reply(depends, origins, |origins| answer(origins, window)).await
    };
    question.in_event_window((dates.start.as_deref(), dates.end.as_deref()), reply).await
}
