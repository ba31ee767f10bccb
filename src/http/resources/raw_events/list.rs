//! `GET /projects/{project_id}/events`

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::{AskError, EventsPage, PageOrder, PageQuestion};
use headcount_control::Scope;
use headcount_domain::facts::Moment;
use headcount_domain::intake::event::Position;
use headcount_domain::time::Window;
use headcount_domain::versions::Depends;
use serde::Serialize;
use utoipa::ToSchema;

use super::cursor::{Cursor, question_hash};
use super::parameters::{AfterPosition, Conditions, SentCursor, SentDates};
use super::row::EventRow;
use crate::http::app::AppState;
use crate::http::extract::auth::MinRole;
use crate::http::extract::parameters::Limit;
use crate::http::extract::path::ProjectPath;
use crate::http::extract::query::query_parameters;
use crate::http::extract::question::ProjectQuestion;
use crate::http::openapi::responses::{GoneErrors, NotFoundErrors, NotModified, QuestionErrors};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

query_parameters! {
    /// The events that are listed.
    pub(crate) struct EventsParameters {
        /// Default: 30 days before today; with `after_position`, all days.
        dates: SentDates,
        conditions: Conditions,
        /// The most events of the page. A page of very large events has fewer.
        limit: Limit<1_000, 100>,
        /// `next` of the page before, with the same other parameters. The first page's window and its last position hold for all pages: later
        /// events are in none of them. It has no life span, but after a restore, and once a day of its window is not kept any more, it is refused:
        /// `cursor_expired`.
        cursor: Option<SentCursor>,
        /// Only events after this position, in the order of recording. To read on, give the `position` of the last event, or, where there is
        /// none, that of the answer. Not together with `cursor`.
        after_position: Option<AfterPosition>,
    }
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsAnswer {
    /// The events: the latest `timestamp` first, then the highest `position`; with `after_position`, the lowest position first.
    events: Vec<EventRow>,
    /// The cursor of the next page; null at the end, and with `after_position`.
    #[schema(required)]
    next: Option<String>,
    /// The last position of the project when the first page was asked for.
    position: Position,
    /// The first day; null if there is no window.
    #[schema(required)]
    start_date: Option<String>,
    /// The last day; null if there is no window.
    #[schema(required)]
    end_date: Option<String>,
    /// The timezone of the days.
    timezone: String,
}

/// The recorded events of a window, page by page.
#[utoipa::path(
    get, path = "/projects/{project_id}/events", tag = "data", operation_id = "list_events",
    params(ProjectPath, EventsParameters),
    responses(
        (status = 200, description = "A page.", body = EventsAnswer),
        NotModified, QuestionErrors, NotFoundErrors, GoneErrors,
    ),
    security(("api_token" = []), ("session" = []))
)]
pub(crate) async fn list(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<EventsParameters>::read(&state, &request, Scope::EventsRead, MinRole::Admin)?;
    let EventsParameters { dates, conditions, limit, cursor, after_position } = &question.parameters;
    let project = question.subject.project;
    let [event_name, filters] = &conditions.sent;
    let asked = [&dates.start, &dates.end, event_name, filters].map(Option::as_deref);
    let hash = question_hash(project, &asked);
    let cursor = cursor.as_ref().map(|sent| read_cursor(sent, hash, *after_position)).transpose()?;
    let window = match (&cursor, after_position) {
        (Some(cursor), _) => Some(question.chosen_window(cursor.window).await.map_err(expired)?),
        (None, Some(_)) if dates.start.is_none() && dates.end.is_none() => None,
        (None, _) => Some(question.event_window(dates.start.as_deref(), dates.end.as_deref()).await?),
    };
    if let Some(Cursor { until, start_number, .. }) = cursor
        && !state.engine.has_position(project, until, start_number).await?
    {
        let message = "`cursor` is of data that was replaced by a backup or an earlier copy: begin with the first page";
        return Err(ApiError::new(ErrorCode::CursorExpired, message).with_param("cursor"));
    }
    let start_number = cursor.map_or_else(|| state.engine.start_number(project), |cursor| cursor.start_number);
    let policy = &question.subject.config.policy;
    let asked = PageQuestion {
        predicate: conditions.predicate.clone(),
        window,
        order: match after_position {
            Some(AfterPosition(after)) => PageOrder::Recorded { after: *after },
            None => PageOrder::LatestFirst { before: cursor.map(|cursor| cursor.last) },
        },
        limit: limit.rows(),
        until: cursor.map(|cursor| cursor.until),
    };
    let answer = async {
        let page = state.engine.events_page(project, asked).await?;
        let next = next(&page, window.filter(|_| after_position.is_none()), hash, start_number);
        let position = page.until;
        let rows = page.events.into_iter().map(|paged| EventRow::of(paged, policy)).collect::<Result<Vec<_>, _>>();
        let events = rows.map_err(|error| {
            tracing::error!(%error, "an event can't be written as JSON");
            AskError::NoAnswer
        })?;
        Ok((events, next, position))
    };
    let shape = |(events, next, position): (Vec<EventRow>, Option<Cursor>, Position)| EventsAnswer {
        events,
        next: next.map(Cursor::to_text),
        position,
        start_date: window.map(|window| window.start.to_string()),
        end_date: window.map(|window| window.end.to_string()),
        timezone: policy.timezone.name().to_owned(),
    };
    let answer = question.reply(Depends::Everything, answer, shape).await;
    answer.map_err(|error| if cursor.is_some() { expired(error) } else { error })
}

/// What is said of a cursor whose question needs events that are not kept any more.
fn expired(error: ApiError) -> ApiError {
    if error.code() != ErrorCode::BeforeRetention {
        return error;
    }
    let message = "`cursor` is of days of which some are not kept any more: begin with the first page";
    ApiError::new(ErrorCode::CursorExpired, message).with_param("cursor")
}

fn read_cursor(sent: &SentCursor, question: u64, after_position: Option<AfterPosition>) -> Result<Cursor, ApiError> {
    if after_position.is_some() {
        return Err(ApiError::parameter("cursor", "`cursor` and `after_position` can't be given together"));
    }
    let cursor = Cursor::parse(&sent.0).ok_or_else(|| ApiError::parameter("cursor", "`cursor` is not one of an answer"))?;
    if cursor.question != question {
        let message = "`cursor` is of another question: repeat the parameters of the first page";
        return Err(ApiError::parameter("cursor", message));
    }
    Ok(cursor)
}

/// Returns the cursor of the page after `page`, if there is one.
fn next(page: &EventsPage, window: Option<Window>, question: u64, start_number: u64) -> Option<Cursor> {
    let last = page.events.last().filter(|_| page.has_more)?;
    let last = Moment { time: last.event.time, position: last.position };
    Some(Cursor { question, window: window?, until: page.until, start_number, last })
}
