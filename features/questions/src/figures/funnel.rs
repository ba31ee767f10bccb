//! `POST /projects/{project_id}/analytics/funnel`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_api::extract::steps::{self, ChainLengthShape, SentStep, StepShape, named_by_steps};
use headcount_api::openapi::schemas::named_by_default;
use headcount_domain::aggregate::MAX_GROUPS;
use headcount_domain::figures::{
    ChainLength, ComparedWindows, Funnel, FunnelQuestion, FunnelRow, FunnelSteps, StepFigures, StepOrder, StepTimes,
};
use headcount_domain::intake::fields::Field;
use headcount_domain::intake::policy::Policy;
use headcount_domain::money::ratio_of_counts;
use headcount_domain::queries::EntityLevel;
use headcount_domain::{Amount, Clause};

use super::compare::{Compare, CompareShape};
use crate::aggregate::{DEFAULT_GROUPS, GroupValue};
use crate::revenue::{UnconvertedMoney, unconverted};

json_body! {
    /// The steps of a funnel, and which events count.
    #[schema(example = json!({
        "steps": [{"page": "/pricing"}, {"event_name": "signup"}, {"event_name": "order", "name": "Paid"}],
        "within": {"days": 14}, "breakdown": "source", "start_date": "2024-03-01", "end_date": "2024-03-31"
    }))]
    pub(crate) struct FunnelBody {
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
        /// The field by which rows are divided: its value at the first step. As `dimension` of a breakdown.
        #[schema(value_type = Option<String>, min_length = 1)]
        breakdown: Option<Field> = with(read_breakdown),
        /// The first day on which the first step may be done: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// What the window is compared with: as many days before it, the same dates a year earlier, or a window of its own.
        #[schema(value_type = Option<CompareShape>)]
        compare: Compare = with(Compare::read),
        /// Only events for which all of these hold; at most 20. `source`, `medium`, `campaign` and `exit_url` may be fields too.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Clause> = with(filters::read_in_sessions),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
        /// The most rows of the breakdown.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
        limit: usize = count((1..=MAX_GROUPS, DEFAULT_GROUPS)),
    }
}

headcount_api::chooses_events!(FunnelBody);

impl SharedQuestion for FunnelBody {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self {
            steps,
            within: _,
            order: _,
            level: _,
            breakdown,
            start_date: _,
            end_date: _,
            compare: _,
            filters,
            segment: _,
            people,
            limit: _,
        } = self;
        let mut named = named_by_filters(filters);
        named.extend(named_by_people(people));
        named.extend(named_by_steps(steps));
        named.extend(breakdown.clone().map(|field| ("breakdown".to_owned(), field)));
        named
    }
}

/// The schema of the name of an order of steps.
#[derive(Debug)]
pub(crate) struct StepOrderName;

own_schema!(StepOrderName, named_by_default::<StepOrder>(StepOrder::default().as_str()).into());

/// The schema of the name of a level of a funnel.
#[derive(Debug)]
pub(crate) struct FunnelLevelName;

own_schema!(FunnelLevelName, named_by_default::<EntityLevel>(EntityLevel::Identity.as_str()).into());

fn read_breakdown(fields: &Fields<'_>, name: &str) -> Result<Option<Field>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    Field::parse_in_sessions(&text).map(Some).map_err(|error| ApiError::parameter(name, format!("`{name}` {error}")))
}

/// A duration in seconds.
fn seconds(ms: i64) -> Decimal {
    Decimal(Amount::from_micros(i128::from(ms) * 1_000))
}

answer! {
    /// How far people, or accounts, get. Money is there if the token may see it.
    pub(crate) struct FunnelAnswer from |funnel: Funnel, names: Vec<String>, has_breakdown: bool, windows: ComparedWindows, policy: &Policy, has_money: bool| {
        /// The steps.
        steps: Vec<FunnelStep> = steps_of(&funnel.steps, names, has_money),
        /// How many did all steps.
        completed: u64 = last_of(&funnel.steps),
        /// The share of the first step's `entities` that `completed` is, 0 to 1.
        rate: Decimal = Decimal(ratio_of_counts(last_of(&funnel.steps), funnel.steps.first().map_or(0, |step| step.entities))),
        /// The median time from the first step to the last, in seconds; null if nobody did all steps.
        #[schema(required)]
        median_sec: Option<Decimal> = funnel.times.map(|times| seconds(times.median_ms)),
        /// The third quartile of these times.
        #[schema(required)]
        p75_sec: Option<Decimal> = funnel.times.map(|times| seconds(times.p75_ms)),
        /// The same by the value of a field at the first step: the largest first, and null last among equals. Null if no field was asked for.
        #[schema(required)]
        breakdown: Option<Vec<FunnelValue>> =
            has_breakdown.then(|| funnel.rows.iter().cloned().map(FunnelValue::from).collect()),
        /// The number of all rows.
        total_rows: u64 = funnel.total_rows,
        /// Whether there are more rows than these.
        truncated: bool = funnel.total_rows > funnel.rows.len() as u64,
        /// The figures of the window that was asked to compare with.
        #[schema(required)]
        previous: Option<PreviousFunnel> = funnel.previous.clone().map(|steps| PreviousFunnel::new(steps, windows)),
        /// Money of the steps that the figures leave out because its currency had no rate, by currency.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = BTreeMap<String, UnconvertedMoney>)]
        unconverted: Option<BTreeMap<String, UnconvertedMoney>> = has_money.then(|| unconverted(&funnel.unconverted)),
        /// The currency of all amounts: the project's.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = String)]
        currency: Option<String> = has_money.then(|| policy.currency.to_string()),
        /// The first day.
        start_date: String = windows.window.start.to_string(),
        /// The last day.
        end_date: String = windows.window.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

/// A step.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FunnelStep {
    /// Its name.
    name: String,
    /// How many people, or accounts, did it and all steps before.
    entities: u64,
    /// The share of the first step's `entities`, 0 to 1.
    rate: Decimal,
    /// The share of the `entities` of the step before; null for the first step.
    #[schema(required)]
    step_rate: Option<Decimal>,
    /// The median time from the step before, in seconds; null for the first step, and if nobody did it.
    #[schema(required)]
    median_sec: Option<Decimal>,
    /// The third quartile of these times.
    #[schema(required)]
    p75_sec: Option<Decimal>,
    /// How many did it and not the next one; 0 for the last step.
    dropped: u64,
    /// Orders less refunds of the events that count for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Decimal)]
    revenue: Option<Decimal>,
}

fn last_of(steps: &[StepFigures]) -> u64 {
    steps.last().map_or(0, |step| step.entities)
}

fn steps_of(steps: &[StepFigures], names: Vec<String>, has_money: bool) -> Vec<FunnelStep> {
    let entities = |place: usize| steps.get(place).map(|step| step.entities);
    let first = entities(0).unwrap_or_default();
    let step = |(place, (figures, name)): (usize, (&StepFigures, String))| {
        let before = place.checked_sub(1).and_then(entities);
        let times = |ms: fn(StepTimes) -> i64| figures.times.map(|times| seconds(ms(times)));
        FunnelStep {
            name,
            entities: figures.entities,
            rate: Decimal(ratio_of_counts(figures.entities, first)),
            step_rate: before.map(|before| Decimal(ratio_of_counts(figures.entities, before))),
            median_sec: times(|times| times.median_ms),
            p75_sec: times(|times| times.p75_ms),
            dropped: entities(place + 1).map_or(0, |next| figures.entities - next),
            revenue: has_money.then_some(Decimal(figures.revenue)),
        }
    };
    steps.iter().zip(names).enumerate().map(step).collect()
}

/// How far those with a value get.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FunnelValue {
    /// The value at the first step. Null: it has none.
    value: GroupValue,
    /// How many did each step.
    steps: Vec<u64>,
    /// The share of the first step's that did the last step, 0 to 1.
    rate: Decimal,
}

fn rate_of(steps: &[u64]) -> Decimal {
    let count = |step: Option<&u64>| step.copied().unwrap_or_default();
    Decimal(ratio_of_counts(count(steps.last()), count(steps.first())))
}

impl From<FunnelRow> for FunnelValue {
    fn from(FunnelRow { value, steps }: FunnelRow) -> Self {
        Self { value: GroupValue(value), rate: rate_of(&steps), steps }
    }
}

/// The figures of the window that is compared with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviousFunnel {
    /// How many did each step.
    steps: Vec<u64>,
    /// How many did all steps.
    completed: u64,
    /// The share of the first step's `entities` that `completed` is, 0 to 1.
    rate: Decimal,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
}

impl PreviousFunnel {
    fn new(steps: Vec<u64>, windows: ComparedWindows) -> Self {
        let window = windows.previous.unwrap_or(windows.window);
        Self {
            completed: steps.last().copied().unwrap_or_default(),
            rate: rate_of(&steps),
            steps,
            start_date: window.start.to_string(),
            end_date: window.end.to_string(),
        }
    }
}

/// How many people, or accounts, did one step after another: the same people as unique users.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/funnel", tag = "analytics", operation_id = "funnel",
    params(ProjectPath), request_body = FunnelBody,
    responses(
        (status = 200, description = "The figures.", body = FunnelAnswer, example = json!({
            "steps": [
                {"name": "/pricing", "entities": 40, "rate": 1, "step_rate": null, "median_sec": null, "p75_sec": null, "dropped": 28, "revenue": 0},
                {"name": "signup", "entities": 12, "rate": 0.3, "step_rate": 0.3, "median_sec": 94.5, "p75_sec": 310, "dropped": 0, "revenue": 0}
            ],
            "completed": 12, "rate": 0.3, "median_sec": 94.5, "p75_sec": 310,
            "breakdown": [{"value": "google", "steps": [30, 11], "rate": 0.366667}, {"value": null, "steps": [10, 1], "rate": 0.1}],
            "total_rows": 2, "truncated": false,
            "previous": {"steps": [36, 9], "completed": 9, "rate": 0.25, "start_date": "2024-01-30", "end_date": "2024-02-29"},
            "unconverted": {}, "currency": "EUR", "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn funnel(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<FunnelBody>::read_body(&state, &request, payload, asker).await?;
    let has_money = question.subject.check_money().is_ok();
    let asked = &mut question.parameters;
    let sent = std::mem::take(&mut asked.steps);
    let predicate = question.predicate(None)?.unwrap_or_default();
    let (names, steps) = question.steps(sent)?;
    question.calendar.set_variant(has_money.into());
    let FunnelBody { within, order, level, breakdown, start_date, end_date, compare, limit, .. } = &question.parameters;
    let steps = FunnelSteps { steps, length: *within, order: *order, level: *level };
    let policy = &question.subject.config.policy;
    let reply = async |window| {
        let windows = compare.event_windows(&question, window).await?;
        let asked = FunnelQuestion {
            windows,
            predicate: predicate.clone(),
            steps: steps.clone(),
            breakdown: breakdown.clone(),
            limit: *limit,
        };
        let depends = asked.depends();
        let funnel = state.engine.scans.funnel(question.subject.project, asked);
        let answer = |funnel| FunnelAnswer::new(funnel, names.clone(), breakdown.is_some(), windows, policy, has_money);
        question.reply(depends, funnel, answer).await
    };
    question.in_event_window((start_date.as_deref(), end_date.as_deref()), reply).await
}
