//! `POST /projects/{project_id}/explain`

use std::hash::Hasher as _;

use headcount_actors::ExplainError;
use std::sync::Arc;

use headcount_api::client_end::while_client_waits;
use headcount_api::endpoint::*;
use headcount_api::extract::definitions::{ChoosesEvents, EventChoice};
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition};
use headcount_control::Definition;
use headcount_domain::figures::{AttributedTo, ExplainQuestion, ExplainedFigure, Explanation};
use headcount_domain::intake::policy::Policy;
use headcount_domain::queries::{Dimension, EntityLevel, TouchModel};
use headcount_domain::{Clause, Position, Window};
use xxhash_rust::xxh3::Xxh3;

use super::cursor::ExplainCursor;
use super::rows::{ContributingEvent, DimensionName, EntityLevelName, FigureName, TouchModelName, UncountedEvent};

/// The most events of each list on a page, and how many there are unless a question says another number.
const MAX_EVENTS: usize = 500;
const DEFAULT_EVENTS: usize = 100;
/// How long an answer can be confirmed by 304. It is shorter than the life of the answer's cursor, which must be of use then.
const CONFIRMED_MS: i64 = 5 * 60 * 1000;

json_body! {
    /// Which figure is explained. Events are chosen by the window, the name and the filters.
    #[schema(example = json!({
        "figure": "attribution", "start_date": "2024-03-01", "end_date": "2024-03-31", "event_name": "order",
        "filters": [{"field": "device", "operator": "is", "value": "mobile"}],
        "model": "last_touch", "level": "identity", "dimension": "source", "value": "google", "limit": 50
    }))]
    pub(crate) struct ExplainBody {
        /// The figure. All but `unique_users` and `sessions` need what the revenue endpoints need.
        #[schema(value_type = FigureName)]
        figure: ExplainedFigure = with(read_figure),
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// Only events of this name.
        event_name: Option<String> = optional("a string"),
        /// Only events for which all of these hold; at most 20. `source`, `medium`, `campaign` and `exit_url` may be fields too.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Sent<Vec<Clause>> = with(|fields, name| Sent::read(fields, name, filters::read_in_sessions)),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Sent<Vec<SentCondition>> = with(|fields, name| Sent::read(fields, name, people::read)),
        /// `attribution`: the first touch of the buyer (the default), or the last one before each order.
        #[schema(value_type = Option<TouchModelName>)]
        model: Option<TouchModel> = with(Fields::optional_name),
        /// `attribution`: the touches of the buyer's account (the default), or its own.
        #[schema(value_type = Option<EntityLevelName>)]
        level: Option<EntityLevel> = with(Fields::optional_name),
        /// `attribution`: the property of the touch; `source` by default.
        #[schema(value_type = Option<DimensionName>)]
        dimension: Option<Dimension> = with(Fields::optional_name),
        /// `attribution`: only money under this source, medium or campaign. Default: all.
        value: Option<String> = optional("a string"),
        /// The most events of each list.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
        limit: usize = count((1..=MAX_EVENTS, DEFAULT_EVENTS)),
        /// `next` of the page before, with the same other fields; `limit` may differ. It lives for 15 minutes from the first page on, and ends with a
        /// restart of the server and an erasure: `cursor_expired`.
        #[schema(max_length = 256)]
        cursor: Option<String> = optional("a string"),
    }
}

impl ChoosesEvents for ExplainBody {
    fn take_choice(&mut self) -> EventChoice {
        let (filters, people) = (std::mem::take(&mut self.filters.value), std::mem::take(&mut self.people.value));
        EventChoice { filters, segment: self.segment.take(), people }
    }
}

/// A field of a question, and its JSON as it was sent.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    value: T,
    sent: Option<String>,
}

impl<T> Sent<T> {
    fn read(fields: &Fields<'_>, name: &str, read: fn(&Fields<'_>, &str) -> Result<T>) -> Result<Self> {
        Ok(Self { value: read(fields, name)?, sent: fields.raw(name).map(str::to_owned) })
    }
}

fn read_figure(fields: &Fields<'_>, name: &str) -> Result<ExplainedFigure> {
    fields.optional_name(name)?.ok_or_else(|| ApiError::missing(name))
}

impl ExplainBody {
    /// Returns the touches, which belong to one figure only.
    fn attributed(&self) -> Result<Option<AttributedTo>> {
        if self.figure == ExplainedFigure::Attribution {
            return Ok(Some(AttributedTo {
                model: self.model.unwrap_or_default(),
                level: self.level.unwrap_or_default(),
                dimension: self.dimension.unwrap_or_default(),
                value: self.value.as_deref().map(Into::into),
            }));
        }
        let given = [
            ("model", self.model.is_some()),
            ("level", self.level.is_some()),
            ("dimension", self.dimension.is_some()),
            ("value", self.value.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(None),
            Some((name, _)) => {
                let message = format!("`{name}` is of the figure attribution, not of {}", self.figure);
                Err(ApiError::new(ErrorCode::UnsupportedCombination, message).with_param(name))
            }
        }
    }

    /// Returns a hash of everything that a cursor is bound to: all but the page. Filters count as they were sent, and
    /// definitions as they are now.
    fn hash(&self, project: u64, attributed: Option<&AttributedTo>, definitions: &[Arc<Definition>]) -> u64 {
        let mut hash = Xxh3::new();
        hash.write_u64(project);
        let question = (
            self.figure,
            &self.start_date,
            &self.end_date,
            &self.event_name,
            attributed,
            (&self.filters.sent, &self.people.sent),
            definitions,
        );
        hash.write(format!("{question:?}").as_bytes());
        hash.digest()
    }

    fn cursor(&self, question: u64) -> Result<Option<ExplainCursor>> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let wrong = || ApiError::parameter("cursor", "`cursor` is not one of an answer");
        let cursor = ExplainCursor::parse(text).ok_or_else(wrong)?;
        if cursor.question != question {
            let message = "`cursor` is of another question: repeat the fields of the first page";
            return Err(ApiError::parameter("cursor", message));
        }
        Ok(Some(cursor))
    }
}

answer! {
    /// Why a figure is what it is.
    pub(crate) struct ExplainAnswer from |explanation: Explanation, asked: (u64, Window), policy: &Policy, has_money: bool| {
        /// The figure. It is the same on all pages.
        result: Decimal,
        /// The events that contribute, the latest first; of one instant, the last recorded one first.
        rows: Vec<ContributingEvent> =
            explanation.rows.into_iter().map(|event| ContributingEvent::new(event, policy, has_money)).collect(),
        /// Chosen events that are not counted, in the same order.
        not_counted: Vec<UncountedEvent> =
            explanation.not_counted.into_iter().map(|event| UncountedEvent::new(event, policy, has_money)).collect(),
        /// The cursor of the next page; null when both lists are done.
        #[schema(required)]
        next: Option<String> =
            explanation.next.map(|place| ExplainCursor { question: asked.0, window: asked.1, place }.to_text()),
        /// The last position of the project when the first page was asked for. Later events are on none of the pages.
        position: Position = explanation.until,
        /// The project's currency, in which money contributes. Absent if the token may not see money.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = String)]
        currency: Option<String> = has_money.then(|| policy.currency.to_string()),
        /// The first day.
        start_date: String = asked.1.start.to_string(),
        /// The last day.
        end_date: String = asked.1.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

fn refused(error: ExplainError) -> ApiError {
    match error {
        ExplainError::Ask(error) => error.into(),
        ExplainError::Expired => {
            let message = "`cursor` lives for 15 minutes, and no longer than the state that it is of: begin with the first page";
            ApiError::new(ErrorCode::CursorExpired, message).with_param("cursor")
        }
    }
}

/// The events that make up a figure, page by page, and those that are not counted.
///
/// `result` is what `report` answers to the same question, or for `attribution`, `by-attribution`: the revenue of `value`.
#[utoipa::path(
    post, path = "/projects/{project_id}/explain", tag = "analytics", operation_id = "explain",
    params(ProjectPath), request_body = ExplainBody,
    responses(
        (status = 200, description = "A page.", body = ExplainAnswer, example = json!({
            "result": 79.5,
            "rows": [
                {"event_id": "ev_5S7Wq2pXk1YcVn0tR8uJ3a", "position": 131, "at": "2024-03-09T10:15:00.000Z", "name": "order",
                 "identity_id": "id_0aFq3Wv8Jm2LkT5yR7uXcd", "value": -20, "currency": "EUR", "contributes": -20, "why": "touch"},
                {"event_id": "ev_1dG6hJ9kL2mN4pQ7rS0tUv", "position": 98, "at": "2024-03-02T08:00:00.000Z", "name": "order",
                 "identity_id": "id_0aFq3Wv8Jm2LkT5yR7uXcd", "value": 99.5, "currency": "EUR", "contributes": 99.5, "why": "touch"}
            ],
            "not_counted": [
                {"event_id": "ev_7bC8dE9fG0hI1jK2lM3nOp", "position": 77, "at": "2024-03-01T12:30:00.000Z", "name": "order",
                 "identity_id": "id_4xYz5aBc6dEf7gHi8jKl9m", "value": 5, "currency": "XAU", "why": "no_rate"}
            ],
            "next": null, "position": 140, "currency": "EUR",
            "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified, GoneErrors,
    ),
)]
pub(crate) async fn explain(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<ExplainBody>::read_body(&state, &request, payload, caller).await?;
    if question.parameters.figure.is_of_money() {
        question.subject.check_money().map_err(|error| error.with_param("figure"))?;
    }
    let has_money = question.subject.check_money().is_ok();
    let asked = &mut question.parameters;
    let event_name = asked.event_name.clone();
    let predicate = question.predicate(event_name.as_deref())?.unwrap_or_default();
    let body = &question.parameters;
    let (project, figure, attributed) = (question.subject.project, body.figure, body.attributed()?);
    let hash = body.hash(project.0, attributed.as_ref(), &question.definitions);
    let cursor = body.cursor(hash)?;
    let window = match &cursor {
        Some(cursor) => {
            state.engine.scans.check_explain_place(project, &cursor.place).await.map_err(refused)?;
            cursor.window
        }
        None => question.event_window(body.start_date.as_deref(), body.end_date.as_deref()).await?,
    };
    let mut variant = Xxh3::new();
    variant.write_u64(state.engine.scans.explain_state(project).await?);
    variant.write_u8(has_money.into());
    if cursor.is_none() {
        variant.write_i64(question.calendar.now().0.div_euclid(CONFIRMED_MS));
    }
    question.calendar.set_variant(variant.digest());
    let tag = match question.not_modified(&predicate.depends_at_least(figure.depends(window))).await? {
        Ok(not_modified) => return Ok(not_modified),
        Err(tag) => tag,
    };
    let place = cursor.map(|cursor| cursor.place);
    let asked = ExplainQuestion { figure, attributed, window, predicate, limit: body.limit, place };
    let explanation = async { state.engine.scans.explain(project, asked).await.map_err(refused) };
    let explanation = while_client_waits(&request, explanation).await?;
    tag.json(&ExplainAnswer::new(explanation, (hash, window), &question.subject.config.policy, has_money))
}
