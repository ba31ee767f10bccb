//! `POST /projects/{project_id}/analytics/breakdown`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_api::openapi::schemas::named_by_default;
use headcount_domain::aggregate::MAX_GROUPS;
use headcount_domain::figures::{Breakdown, BreakdownQuestion, BreakdownRow, ComparedWindows, EventFigures, OrderBy, Search};
use headcount_domain::intake::fields::Field;
use headcount_domain::intake::policy::Policy;
use headcount_domain::{Clause, Window};

use super::compare::{Compare, CompareShape};
use crate::aggregate::{DEFAULT_GROUPS, GroupValue};
use crate::revenue::{UnconvertedMoney, unconverted};

json_body! {
    /// Which figures are asked for, and by which property. Events are chosen by the window, the name and the filters.
    #[schema(example = json!({
        "start_date": "2024-03-01", "end_date": "2024-03-31", "dimension": "source", "compare": "previous_year",
        "event_name": "pageview", "filters": [{"field": "device", "operator": "is", "value": "mobile"}],
        "search": "goo", "order_by": "sessions", "limit": 20
    }))]
    pub(crate) struct BreakdownBody {
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// What the window is compared with: as many days before it, the same dates a year earlier, or a window of its own.
        #[schema(value_type = Option<CompareShape>)]
        compare: Compare = with(Compare::read),
        /// A built-in field, `source`, `medium`, `campaign`, `exit_url`, or `metadata.` and a path.
        #[schema(value_type = String, min_length = 1)]
        dimension: Field = with(read_dimension),
        /// Only events of this name.
        event_name: Option<String> = optional("a string"),
        /// Only events for which all of these hold; at most 20. `source`, `medium`, `campaign` and `exit_url` may be fields too.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Clause> = with(filters::read_in_sessions),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
        /// The goal whose converters are counted: its id.
        goal: Option<String> = optional("a string"),
        /// Only rows whose value contains this text, ignoring case.
        search: Option<String> = optional("a string"),
        /// The figure that rows are ordered by, descending. `revenue` and `orders` need what the revenue endpoints need.
        #[schema(value_type = Option<OrderByName>)]
        order_by: OrderBy = name(OrderBy::default()),
        /// The most rows to return.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
        limit: usize = count((1..=MAX_GROUPS, DEFAULT_GROUPS)),
    }
}

headcount_api::chooses_events!(BreakdownBody);

impl SharedQuestion for BreakdownBody {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self {
            start_date: _,
            end_date: _,
            compare: _,
            dimension,
            event_name: _,
            filters,
            segment: _,
            people,
            goal: _,
            search: _,
            order_by: _,
            limit: _,
        } = self;
        let mut named = named_by_filters(filters);
        named.extend(named_by_people(people));
        named.push(("dimension".to_owned(), dimension.clone()));
        named
    }
}

/// The schema of the name of a figure.
#[derive(Debug)]
pub(crate) struct OrderByName;

own_schema!(OrderByName, named_by_default::<OrderBy>(OrderBy::default().as_str()).into());

fn read_dimension(fields: &Fields<'_>, name: &str) -> Result<Field> {
    let text: String = fields.required(name, "a string")?;
    Field::parse_in_sessions(&text).map_err(|error| ApiError::parameter(name, format!("`{name}` {error}")))
}

/// What an answer shows besides counts.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) has_money: bool,
    pub(crate) has_goal: bool,
}

answer! {
    /// The figures of a window by the values of a property. Money is there if the token may see it.
    pub(crate) struct BreakdownAnswer from |breakdown: Breakdown, dimension: &Field, windows: ComparedWindows, policy: &Policy, shown: Shown| {
        /// The rows, by `order_by`, descending. Among equals, null is last.
        rows: Vec<FiguresRow> =
            breakdown.rows.into_iter().map(|row| FiguresRow::new(row, shown)).collect(),
        /// The number of all rows that match `search`.
        total_rows: u64,
        /// Whether there are more rows than these.
        truncated: bool,
        /// The window that was asked to compare with.
        #[schema(required)]
        previous: Option<PreviousWindow> = windows.previous.map(Into::into),
        /// Money of the window that the figures leave out because its currency had no rate, by currency.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = BTreeMap<String, UnconvertedMoney>)]
        unconverted: Option<BTreeMap<String, UnconvertedMoney>> = shown.has_money.then(|| unconverted(&breakdown.unconverted)),
        /// The currency of all amounts: the project's.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = String)]
        currency: Option<String> = shown.has_money.then(|| policy.currency.to_string()),
        /// The property.
        dimension: String = dimension.to_string(),
        /// The first day.
        start_date: String = windows.window.start.to_string(),
        /// The last day.
        end_date: String = windows.window.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

answer! {
    /// The chosen events that share a value, and the sessions that hold them.
    pub(crate) struct FiguresRow from |row: BreakdownRow, shown: Shown| {
        /// The value: a text, or the JSON scalar for metadata. Null: the events have none.
        value: GroupValue = GroupValue(row.value),
        /// The distinct users.
        unique_users: u64 = row.figures.unique_users,
        /// Of these, the users with an event of the row that fits the goal. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = u64)]
        converters: Option<u64> = shown.has_goal.then_some(row.figures.converters),
        /// `converters` of `unique_users`, 0 to 1. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        rate: Option<Decimal> = shown.has_goal.then(|| Decimal(row.figures.conversion_rate())),
        /// The sessions that began in the window and hold one of the events. One that holds two values is in both rows.
        sessions: u64 = row.figures.sessions,
        /// The pageviews.
        pageviews: u64 = row.figures.pageviews,
        /// The events.
        events: u64 = row.figures.events,
        /// Orders less refunds.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = shown.has_money.then_some(Decimal(row.figures.revenue)),
        /// How many orders.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = i64)]
        orders: Option<i64> = shown.has_money.then_some(row.figures.orders),
        /// The same figures of the window that is compared with; null without one.
        #[schema(required)]
        previous: Option<PreviousRow> = row.previous.map(|figures| PreviousRow::new(figures, shown)),
    }
}

answer! {
    /// The figures of a row in the window that is compared with.
    pub(crate) struct PreviousRow from |figures: EventFigures, shown: Shown| {
        /// The distinct users.
        unique_users: u64,
        /// Of these, the users with an event of the row that fits the goal. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = u64)]
        converters: Option<u64> = shown.has_goal.then_some(figures.converters),
        /// `converters` of `unique_users`, 0 to 1. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        rate: Option<Decimal> = shown.has_goal.then(|| Decimal(figures.conversion_rate())),
        /// The sessions.
        sessions: u64,
        /// The pageviews.
        pageviews: u64,
        /// The events.
        events: u64,
        /// Orders less refunds.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = shown.has_money.then_some(Decimal(figures.revenue)),
        /// How many orders.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = i64)]
        orders: Option<i64> = shown.has_money.then_some(figures.orders),
    }
}

answer! {
    /// The window that is compared with.
    pub(crate) struct PreviousWindow from |window: Window| {
        /// The first day.
        start_date: String = window.start.to_string(),
        /// The last day.
        end_date: String = window.end.to_string(),
    }
}

/// Figures of chosen events and of the sessions that hold them, by the values of a property.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/breakdown", tag = "analytics", operation_id = "breakdown",
    params(ProjectPath), request_body = BreakdownBody,
    responses(
        (status = 200, description = "The rows.", body = BreakdownAnswer, example = json!({
            "rows": [
                {"value": "google", "unique_users": 40, "sessions": 52, "pageviews": 120, "events": 131, "revenue": 99.5,
                 "orders": 2, "previous": {"unique_users": 31, "sessions": 40, "pageviews": 90, "events": 92, "revenue": 0,
                 "orders": 0}},
                {"value": null, "unique_users": 0, "sessions": 0, "pageviews": 3, "events": 3, "revenue": 0, "orders": 0,
                 "previous": {"unique_users": 0, "sessions": 0, "pageviews": 0, "events": 0, "revenue": 0, "orders": 0}}
            ],
            "total_rows": 2, "truncated": false,
            "previous": {"start_date": "2023-03-01", "end_date": "2023-03-31"},
            "unconverted": {"CHF": {"revenue": 20, "orders": 1}}, "currency": "EUR", "dimension": "source",
            "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn breakdown(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<BreakdownBody>::read_body(&state, &request, payload, asker).await?;
    if question.parameters.order_by.is_money() {
        question.subject.check_money().map_err(|error| error.with_param("order_by"))?;
    }
    let has_money = question.subject.check_money().is_ok();
    let asked = &mut question.parameters;
    let (event_name, goal) = (asked.event_name.take(), asked.goal.take());
    let predicate = question.predicate(event_name.as_deref())?.unwrap_or_default();
    let goal = question.goal(goal.as_deref())?;
    let BreakdownBody { start_date, end_date, compare, dimension, search, order_by, limit, .. } = &question.parameters;
    question.calendar.set_variant(has_money.into());
    let asked = |windows: ComparedWindows| BreakdownQuestion {
        windows,
        dimension: dimension.clone(),
        predicate: predicate.clone(),
        goal: goal.clone(),
        search: Search::new(search.as_deref().unwrap_or_default()),
        order_by: *order_by,
        limit: *limit,
    };
    let policy = &question.subject.config.policy;
    let answer = |breakdown, windows| {
        BreakdownAnswer::new(breakdown, dimension, windows, policy, Shown { has_money, has_goal: goal.is_some() })
    };
    let reply = async |window| {
        let windows = compare.event_windows(&question, window).await?;
        let breakdown = state.engine.scans.breakdown(question.subject.project, asked(windows));
        question.reply(predicate.depends_at_least(windows.depends()), breakdown, |breakdown| answer(breakdown, windows)).await
    };
    question.in_event_window((start_date.as_deref(), end_date.as_deref()), reply).await
}
