//! `GET /projects/{project_id}/analytics/traffic`

use headcount_api::endpoint::*;
use headcount_domain::cells::count_of;
use headcount_domain::queries::{Traffic, TrafficQuery, TrafficRow};
use headcount_domain::{Timezone, Window, ratio_of_counts};

use crate::raw_events::parameters::SentDates;

query_parameters! {
    /// The window of the sessions.
    pub(crate) struct TrafficParameters {
        /// Default: 30 days before today.
        dates: SentDates,
        /// The most rows of each list.
        limit: Limit<1_000, 100>,
    }
}

names_no_field! { TrafficParameters { dates, limit }; }

answer! {
    /// The sessions that began in a window.
    pub(crate) struct TrafficAnswer from |traffic: Traffic, window: Window, timezone: Timezone| {
        /// How many sessions.
        sessions: u64 = count_of(traffic.sessions),
        /// Sessions of exactly one event.
        bounces: u64 = count_of(traffic.bounces),
        /// `bounces` / `sessions`.
        bounce_rate: Decimal,
        /// By acquisition channel. All lists are by sessions, descending, and not longer than `limit`.
        by_channel: Vec<SessionsRow> = shown(traffic.by_channel.rows),
        /// By source; `(direct)` if it is unknown.
        by_source: Vec<SessionsRow> = shown(traffic.by_source.rows),
        /// By medium; `(none)` if it is unknown.
        by_medium: Vec<SessionsRow> = shown(traffic.by_medium.rows),
        /// By campaign; `(none)` if it is unknown.
        by_campaign: Vec<SessionsRow> = shown(traffic.by_campaign.rows),
        /// Whether one of the lists has more rows.
        truncated: bool =
            traffic.by_channel.truncated
                || traffic.by_source.truncated
                || traffic.by_medium.truncated
                || traffic.by_campaign.truncated,
        /// The first day.
        start_date: String = window.start.to_string(),
        /// The last day.
        end_date: String = window.end.to_string(),
        /// The timezone of the days.
        timezone: String = timezone.name().to_owned(),
    }
}

/// The sessions of one channel, source, medium or campaign.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionsRow {
    /// The channel, source, medium or campaign of the session: of its first event with a source, else of its first.
    value: String,
    /// How many sessions.
    sessions: u64,
    /// Sessions of exactly one event.
    bounces: u64,
    /// `bounces` / `sessions`.
    bounce_rate: Decimal,
}

impl From<TrafficRow> for SessionsRow {
    fn from(TrafficRow { name, sessions, bounces }: TrafficRow) -> Self {
        let (sessions, bounces) = (count_of(sessions), count_of(bounces));
        Self { value: name, sessions, bounces, bounce_rate: Decimal(ratio_of_counts(bounces, sessions)) }
    }
}

/// Sessions of a window by channel, source, medium and campaign, also of days before the project's `retention_floor`.
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
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn traffic(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<TrafficParameters>::read(&state, &request, asker)?;
    let TrafficParameters { dates, limit } = &question.parameters;
    let window = question.window(dates.start.as_deref(), dates.end.as_deref())?;
    let timezone = question.subject.config.policy.timezone;
    let answer = |traffic| TrafficAnswer::new(traffic, window, timezone);
    question.reply_to(TrafficQuery { window, limit: limit.rows() }, answer).await
}
