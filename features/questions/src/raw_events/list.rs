//! `GET /projects/{project_id}/events`

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_actors::{AskError, EventsPage, PageOrder, PageQuestion};
use headcount_api::endpoint::*;
use headcount_domain::facts::Moment;
use headcount_domain::{Day, Depends, Instant, Position, ProjectId, Window};
use xxhash_rust::xxh3::Xxh3;

use super::parameters::{AfterPosition, Conditions, SentCursor, SentDates};
use super::row::EventRow;

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
        cursor: SentCursor,
        /// Only events after this position, in the order of recording. To read on, give the `position` of the last event, or, where there is
        /// none, that of the answer. Not together with `cursor`.
        after_position: AfterPosition,
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
    responses((status = 200, description = "A page.", body = EventsAnswer), NotModified, UnavailableErrors, GoneErrors),
    security(("api_token" = []), ("session" = []))
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let question = ProjectQuestion::<EventsParameters>::read(&state, &request, caller)?;
    let EventsParameters { dates, conditions, limit, cursor: SentCursor(cursor), after_position: AfterPosition(after_position) } =
        &question.parameters;
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
            Some(after) => PageOrder::Recorded { after: *after },
            None => PageOrder::LatestFirst { before: cursor.map(|cursor| cursor.last) },
        },
        limit: limit.rows(),
        until: cursor.map(|cursor| cursor.until),
    };
    let answer = async {
        let page = state.engine.scans.events_page(project, asked).await?;
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

fn read_cursor(sent: &str, question: u64, after_position: Option<Position>) -> Result<Cursor> {
    if after_position.is_some() {
        return Err(ApiError::parameter("cursor", "`cursor` and `after_position` can't be given together"));
    }
    let cursor = Cursor::parse(sent).ok_or_else(|| ApiError::parameter("cursor", "`cursor` is not one of an answer"))?;
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

const VERSION: u8 = 1;
const BYTES: usize = 1 + 8 + 4 + 4 + 8 + 8 + 8 + 8;

/// Where the next page of a question begins. It has no life span: it expires only if the events that it means are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The hash of the question.
    pub(crate) question: u64,
    /// The window of the first page.
    pub(crate) window: Window,
    /// The last position of the project at the first page.
    pub(crate) until: Position,
    /// The number of the start in which the first page was asked for, which tells what `until` means.
    pub(crate) start_number: u64,
    /// The moment of the last event of the page before.
    pub(crate) last: Moment,
}

/// Returns the hash of a question: of its project and of its parameters as they were sent.
pub(crate) fn question_hash(project: ProjectId, parameters: &[Option<&str>]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&project.0.to_be_bytes());
    for parameter in parameters {
        let length = parameter.map_or(u64::MAX, |text| text.len() as u64);
        hash.update(&length.to_be_bytes());
        hash.update(parameter.unwrap_or_default().as_bytes());
    }
    hash.digest()
}

impl Cursor {
    pub(crate) fn to_text(self) -> String {
        let Self { question, window, until, start_number, last } = self;
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend(question.to_be_bytes());
        bytes.extend(window.start.0.to_be_bytes());
        bytes.extend(window.end.0.to_be_bytes());
        bytes.extend(until.to_be_bytes());
        bytes.extend(start_number.to_be_bytes());
        bytes.extend(last.time.0.to_be_bytes());
        bytes.extend(last.position.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; BYTES] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (version, mut rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let long = |rest: &mut &[u8]| {
            let (number, after) = rest.split_first_chunk::<8>()?;
            *rest = after;
            Some(*number)
        };
        let question = u64::from_be_bytes(long(&mut rest)?);
        let [a, b, c, d, e, f, g, h] = long(&mut rest)?;
        let window = Window { start: Day(i32::from_be_bytes([a, b, c, d])), end: Day(i32::from_be_bytes([e, f, g, h])) };
        let until = u64::from_be_bytes(long(&mut rest)?);
        let start_number = u64::from_be_bytes(long(&mut rest)?);
        let time = Instant(i64::from_be_bytes(long(&mut rest)?));
        let position = u64::from_be_bytes(long(&mut rest)?);
        Some(Self { question, window, until, start_number, last: Moment { time, position } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_others_are_none() {
        let window = Window { start: Day(-3), end: Day(20_000) };
        let last = Moment { time: Instant(-5), position: u64::MAX };
        let cursor = Cursor { question: 7, window, until: 9, start_number: u64::MAX - 1, last };
        let text = cursor.to_text();
        assert_eq!(Cursor::parse(&text), Some(cursor));
        for wrong in ["", "x", &text[1..], &format!("{text}A"), &text.replacen('A', "B", 1), "****"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn another_question_has_another_hash() {
        let hash = |parameters: &[Option<&str>]| question_hash(ProjectId(1), parameters);
        let all = [hash(&[None, None]), hash(&[Some(""), None]), hash(&[Some("a"), None]), hash(&[None, Some("a")])];
        for (place, one) in all.iter().enumerate() {
            assert!(all[place + 1..].iter().all(|other| one != other));
        }
        assert_ne!(question_hash(ProjectId(2), &[None, None]), all[0]);
    }
}
