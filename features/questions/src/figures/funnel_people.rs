//! `POST /projects/{project_id}/analytics/funnel/people`

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition};
use headcount_api::extract::steps::{self, ChainLengthShape, SentStep, StepShape};
use headcount_control::Definition;
use headcount_domain::figures::{
    ChainLength, FunnelPeople, FunnelPeopleQuestion, FunnelPerson, FunnelSteps, PeoplePlace, StepOrder,
};
use headcount_domain::ids::PublicCompany;
use headcount_domain::intake::policy::Policy;
use headcount_domain::queries::{EntityLevel, EntityName};
use headcount_domain::{Clause, Day, Depends, Instant, ProjectId, RecordKey, Window};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use xxhash_rust::xxh3::Xxh3;

use super::funnel::{FunnelLevelName, StepOrderName};

const MAX_PEOPLE: usize = 500;
const DEFAULT_PEOPLE: usize = 100;
const REACHED: &str = "reached";
const DROPPED: &str = "dropped";

json_body! {
    /// The steps of a funnel, and which of its people, or accounts, are listed.
    #[schema(example = json!({
        "steps": [{"page": "/pricing"}, {"event_name": "signup"}], "step": 1, "outcome": "dropped",
        "start_date": "2024-03-01", "end_date": "2024-03-31"
    }))]
    pub(crate) struct FunnelPeopleBody {
        /// The steps, 2 to 12.
        #[schema(value_type = Vec<StepShape>, min_items = 2, max_items = 12)]
        steps: Vec<SentStep> = with(steps::read),
        /// How long it may take from the first step to the last: at most 90 days, or the session of the first step. Default: 7 days.
        #[schema(value_type = Option<ChainLengthShape>)]
        within: ChainLength = with(steps::read_length),
        /// How steps follow each other. Default: other events may lie between.
        #[schema(value_type = Option<StepOrderName>)]
        order: StepOrder = name(StepOrder::default()),
        /// Whether people or accounts do the steps. Default: people.
        #[schema(value_type = Option<FunnelLevelName>)]
        level: EntityLevel = name(EntityLevel::Identity),
        /// The number of the step, from 1.
        #[schema(minimum = 1, maximum = 12)]
        step: usize = required("an integer"),
        /// Those who did the step, or only those who did no further one. Default: `reached`.
        #[schema(value_type = Option<OutcomeName>)]
        outcome: bool = with(read_outcome),
        /// The first day on which the first step may be done: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// Only events for which all of these hold; at most 20. `source`, `medium`, `campaign` and `exit_url` may be fields too.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Clause> = with(filters::read_in_sessions),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
        /// The most people, or accounts, of a page.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
        limit: usize = count((1..=MAX_PEOPLE, DEFAULT_PEOPLE)),
        /// `next` of the page before, with the same other fields; `limit` may differ. Each page is of the present: who moves meanwhile may be on two pages,
        /// or on none.
        #[schema(max_length = 256)]
        cursor: Option<String> = optional("a string"),
    }
}

headcount_api::chooses_events!(FunnelPeopleBody);

/// The schema of an outcome.
#[derive(Debug)]
pub(crate) struct OutcomeName;

own_schema!(OutcomeName, {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([REACHED, DROPPED])).default(Some(REACHED.into())).into()
});

/// Returns whether only those who went no further are wanted.
fn read_outcome(fields: &Fields<'_>, name: &str) -> Result<bool> {
    let known = |text: &str| match text {
        REACHED => Some(false),
        DROPPED => Some(true),
        _ => None,
    };
    Ok(fields.parsed(name, &format!("one of {REACHED}, {DROPPED}"), known)?.unwrap_or(false))
}

/// Where the next page of a list begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PeopleCursor {
    /// The hash of the question.
    question: u64,
    /// The window of the first page.
    window: Window,
    last: PeoplePlace,
}

const CURSOR_VERSION: u8 = 1;

impl PeopleCursor {
    fn to_text(self) -> String {
        let Self { question, window, last: PeoplePlace { at: Reverse(at), key, is_company } } = self;
        let mut bytes = vec![CURSOR_VERSION];
        bytes.extend(question.to_be_bytes());
        bytes.extend(window.start.0.to_be_bytes());
        bytes.extend(window.end.0.to_be_bytes());
        bytes.extend(at.0.to_be_bytes());
        bytes.extend(key.0.to_be_bytes());
        bytes.push(is_company.into());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let rest = bytes.strip_prefix(&[CURSOR_VERSION])?;
        let (question, rest) = rest.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (end, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (key, is_company) = rest.split_first_chunk()?;
        let last = PeoplePlace {
            at: Reverse(Instant(i64::from_be_bytes(*at))),
            key: RecordKey(u128::from_be_bytes(*key)),
            is_company: is_company == [1],
        };
        let window = Window { start: Day(i32::from_be_bytes(*start)), end: Day(i32::from_be_bytes(*end)) };
        let cursor = Self { question: u64::from_be_bytes(*question), window, last };
        // A window from elsewhere must not cost more than one that can be asked for.
        (is_company.len() == 1 && window.is_allowed()).then_some(cursor)
    }
}

/// Returns a hash of everything that a cursor is bound to: the body without the page, and definitions as they are now.
fn hash_of(project: ProjectId, body: &[u8], definitions: &[Arc<Definition>]) -> u64 {
    let mut fields: BTreeMap<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    ["cursor", "limit"].iter().for_each(|field| drop(fields.remove(*field)));
    let mut hash = Xxh3::new();
    hash.write(format!("{project:?} {fields:?} {definitions:?}").as_bytes());
    hash.digest()
}

answer! {
    /// Those who reached a step, or stopped at it.
    pub(crate) struct FunnelPeopleAnswer from |found: FunnelPeople, asked: (u64, Window), policy: &Policy| {
        /// The people, or accounts: the latest first.
        people: Vec<FunnelPersonRow> =
            found.people.iter().filter_map(|person| FunnelPersonRow::of(person, policy)).collect(),
        /// The cursor of the next page; null at the end.
        #[schema(required)]
        next: Option<String> = found.people.last().filter(|_| found.has_more).map(|person| {
            PeopleCursor { question: asked.0, window: asked.1, last: person.place }.to_text()
        }),
        /// The first day.
        start_date: String = asked.1.start.to_string(),
        /// The last day.
        end_date: String = asked.1.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

/// One of the people, or an account. It has `identity_id` or `company_id`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FunnelPersonRow {
    /// The identity, after links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String)]
    identity_id: Option<String>,
    /// The company, `co_…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String)]
    company_id: Option<String>,
    /// The e-mail address that was reported last to the project, else the user id, else the anonymous id; null for a visitor without any. Of a company: its domain, else its key.
    #[schema(required)]
    resolved_identifier: Option<String>,
    /// When the step was done.
    at: String,
}

impl FunnelPersonRow {
    /// `None` for those who were erased meanwhile.
    fn of(person: &FunnelPerson, policy: &Policy) -> Option<Self> {
        let name = person.name.as_ref()?;
        let (identity_id, company_id) = match name {
            EntityName::Identity { id, .. } => (Some(id.public(policy.organization, policy.project)), None),
            EntityName::Company(key) => (None, Some(PublicCompany::of(key).to_id(policy.organization))),
        };
        Some(Self { identity_id, company_id, resolved_identifier: name.text(), at: person.place.at.0.to_string() })
    }
}

/// Who reached a step of a funnel, or stopped at it.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/funnel/people", tag = "analytics", operation_id = "funnel_people",
    params(ProjectPath), request_body = FunnelPeopleBody,
    responses(
        (status = 200, description = "A page.", body = FunnelPeopleAnswer, example = json!({
            "people": [
                {"identity_id": "id_0aFq3Wv8Jm2LkT5yR7uXcd", "resolved_identifier": "ada@acme.com", "at": "2024-03-09T10:15:00.000Z"}
            ],
            "next": null, "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn people(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<FunnelPeopleBody>::read_body(&state, &request, payload, caller).await?;
    let body = question.body.clone();
    let asked = &mut question.parameters;
    let count = asked.steps.len();
    let step = asked.step.checked_sub(1).filter(|step| *step < count);
    let step = step.ok_or_else(|| ApiError::parameter("step", format!("`step` must be an integer from 1 to {count}")))?;
    let sent = std::mem::take(&mut asked.steps);
    let predicate = question.predicate(None)?.unwrap_or_default();
    let (_, steps) = question.steps(sent)?;
    let hash = hash_of(question.subject.project, &body, &question.definitions);
    let body = &question.parameters;
    let cursor = body.cursor.as_deref().map(|text| {
        let wrong = || ApiError::parameter("cursor", "`cursor` is not one of an answer to this question");
        PeopleCursor::parse(text).filter(|cursor| cursor.question == hash).ok_or_else(wrong)
    });
    let cursor = cursor.transpose()?;
    let window = match &cursor {
        Some(cursor) => cursor.window,
        None => question.event_window(body.start_date.as_deref(), body.end_date.as_deref()).await?,
    };
    let asked = FunnelPeopleQuestion {
        window,
        predicate,
        steps: FunnelSteps { steps, length: body.within, order: body.order, level: body.level },
        step,
        dropped: body.outcome,
        after: cursor.map(|cursor| cursor.last),
        limit: body.limit,
    };
    let policy = &question.subject.config.policy;
    let people = state.engine.scans.funnel_people(question.subject.project, asked);
    question.reply(Depends::Everything, people, |found| FunnelPeopleAnswer::new(found, (hash, window), policy)).await
}
