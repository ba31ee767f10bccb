//! `POST /projects/{project_id}/analytics/report`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_api::openapi::schemas::named_by_default;
use headcount_domain::figures::{ComparedWindows, EventFigures, Report, ReportQuery, ReportQuestion, Series};
use headcount_domain::time::{Bucket, BucketStart, Buckets, Interval, MAX_HOURLY_DAYS};
use headcount_domain::{Clause, Predicate, Window};

use super::breakdown::Shown;
use super::compare::{Compare, CompareShape};
use crate::revenue::{UnconvertedMoney, unconverted};

json_body! {
    /// Which figures are asked for. Events are chosen by the window, the name and the filters.
    #[schema(example = json!({
        "start_date": "2024-03-30", "end_date": "2024-03-31", "interval": "day", "compare": "previous_period",
        "event_name": "pageview", "filters": [{"field": "source", "operator": "is", "value": "google"}]
    }))]
    pub(crate) struct ReportBody {
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// The length of the buckets. `hour`: at most 14 days, also of the window that is compared with. Weeks begin on Monday.
        #[schema(value_type = Option<IntervalName>)]
        interval: Interval = name(Interval::default()),
        /// What the window is compared with: as many days before it, the same dates a year earlier, or a window of its own.
        #[schema(value_type = Option<CompareShape>)]
        compare: Compare = with(Compare::read),
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
    }
}

headcount_api::chooses_events!(ReportBody);

impl SharedQuestion for ReportBody {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { start_date: _, end_date: _, interval: _, compare: _, event_name: _, filters, segment: _, people, goal: _ } =
            self;
        named_by_filters(filters).into_iter().chain(named_by_people(people)).collect()
    }
}

/// The schema of the name of an interval.
#[derive(Debug)]
pub(crate) struct IntervalName;

own_schema!(IntervalName, named_by_default::<Interval>(Interval::default().as_str()).into());

/// The figures of a window by time. Money is there if the token may see it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportAnswer {
    /// The figures of the window.
    totals: TotalFigures,
    /// Every bucket that touches the window. They count the days of the window only.
    series: Vec<BucketFigures>,
    /// The figures of the window that was asked to compare with. Its buckets align with those of `series` by index.
    #[schema(required)]
    previous: Option<PreviousFigures>,
    /// Money of the window that the figures leave out because its currency had no rate, by currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = BTreeMap<String, UnconvertedMoney>)]
    unconverted: Option<BTreeMap<String, UnconvertedMoney>>,
    /// The currency of all amounts: the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String)]
    currency: Option<String>,
    /// The length of the buckets.
    interval: String,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
    /// The timezone of the days.
    timezone: String,
}

answer! {
    /// The figures of chosen events, and of the sessions that hold them.
    pub(crate) struct TotalFigures from |figures: &EventFigures, shown: Shown| {
        /// The distinct users: a union, not the sum of those of the buckets.
        unique_users: u64,
        /// Of these, the users with a chosen event that fits the goal. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = u64)]
        converters: Option<u64> = shown.has_goal.then_some(figures.converters),
        /// `converters` of `unique_users`, 0 to 1. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        rate: Option<Decimal> = shown.has_goal.then(|| Decimal(figures.conversion_rate())),
        /// The sessions that began in the window and hold a chosen event.
        sessions: u64,
        /// The chosen pageviews.
        pageviews: u64,
        /// The chosen events.
        events: u64,
        /// The share of sessions with exactly one event, 0 to 1.
        bounce_rate: Decimal = figures.bounce_rate().into(),
        /// The mean duration of the sessions.
        duration_avg_sec: Decimal = figures.duration_avg_sec().into(),
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
    /// The figures of a bucket.
    pub(crate) struct BucketFigures from |figures: &EventFigures, bucket: &Bucket, is_complete: bool, shown: Shown| {
        /// The first day of a day, week or month, be it before the window; of an hour the instant of its start.
        bucket: String = match bucket.start {
            BucketStart::Day(day) => day.to_string(),
            BucketStart::Instant(at) => at.to_string(),
        },
        /// The distinct users.
        unique_users: u64,
        /// Of these, the users with a chosen event that fits the goal. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = u64)]
        converters: Option<u64> = shown.has_goal.then_some(figures.converters),
        /// `converters` of `unique_users`, 0 to 1. Absent without `goal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        rate: Option<Decimal> = shown.has_goal.then(|| Decimal(figures.conversion_rate())),
        /// The sessions whose first event is in the bucket.
        sessions: u64,
        /// The chosen pageviews.
        pageviews: u64,
        /// The chosen events.
        events: u64,
        /// The share of sessions with exactly one event, 0 to 1.
        bounce_rate: Decimal = figures.bounce_rate().into(),
        /// The mean duration of the sessions.
        duration_avg_sec: Decimal = figures.duration_avg_sec().into(),
        /// Orders less refunds.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = shown.has_money.then_some(Decimal(figures.revenue)),
        /// How many orders.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = i64)]
        orders: Option<i64> = shown.has_money.then_some(figures.orders),
        /// Whether all of the bucket lies in the window and is over.
        complete: bool = is_complete,
    }
}

/// The figures of the window that is compared with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviousFigures {
    /// The figures of the window.
    totals: TotalFigures,
    /// Its buckets.
    series: Vec<BucketFigures>,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
}

/// The buckets of a window, with which of them are complete.
struct ListedBuckets(Vec<(Bucket, bool)>);

impl ListedBuckets {
    fn of(question: &ProjectQuestion<'_, ReportBody>, window: Window) -> Self {
        let buckets = Buckets::new(window, question.parameters.interval, question.subject.config.policy.timezone);
        let now = question.calendar.now();
        Self(buckets.list().into_iter().map(|bucket| (bucket, bucket.is_complete(now))).collect())
    }

    fn complete(&self) -> u64 {
        self.0.iter().filter(|(_, is_complete)| *is_complete).count() as u64
    }

    fn shown(&self, series: &Series, shown: Shown) -> Vec<BucketFigures> {
        let bucket = |((bucket, is_complete), figures): (&(Bucket, bool), &EventFigures)| {
            BucketFigures::new(figures, bucket, *is_complete, shown)
        };
        self.0.iter().zip(&series.buckets).map(bucket).collect()
    }
}

fn check_hours(interval: Interval, windows: ComparedWindows) -> Result<()> {
    let is_long = |window: Window| window.len() > MAX_HOURLY_DAYS;
    if interval == Interval::Hour && (is_long(windows.window) || windows.previous.is_some_and(is_long)) {
        let message = format!("`interval` hour allows windows of at most {MAX_HOURLY_DAYS} days");
        return Err(ApiError::parameter("interval", message));
    }
    Ok(())
}

/// Figures of chosen events and of the sessions that hold them, by hour, day, week or month.
///
/// Without name and filters, and not by hour, the days before the project's `retention_floor` are answered about, too.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/report", tag = "analytics", operation_id = "report",
    params(ProjectPath), request_body = ReportBody,
    responses(
        (status = 200, description = "The figures.", body = ReportAnswer, example = json!({
            "totals": {
                "unique_users": 3, "sessions": 4, "pageviews": 9, "events": 9, "bounce_rate": 0.25, "duration_avg_sec": 61.5,
                "revenue": 0, "orders": 0
            },
            "series": [
                {"bucket": "2024-03-30", "unique_users": 2, "sessions": 2, "pageviews": 5, "events": 5, "bounce_rate": 0,
                 "duration_avg_sec": 100.5, "revenue": 0, "orders": 0, "complete": true},
                {"bucket": "2024-03-31", "unique_users": 2, "sessions": 2, "pageviews": 4, "events": 4, "bounce_rate": 0.5,
                 "duration_avg_sec": 22.5, "revenue": 0, "orders": 0, "complete": true}
            ],
            "previous": null, "unconverted": {}, "currency": "EUR", "interval": "day",
            "start_date": "2024-03-30", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn report(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<ReportBody>::read_body(&state, &request, payload, asker).await?;
    let asked = &mut question.parameters;
    let (event_name, goal) = (asked.event_name.take(), asked.goal.take());
    let mut predicate = question.predicate(event_name.as_deref())?;
    let goal = question.goal(goal.as_deref())?;
    let ReportBody { start_date, end_date, interval, compare, .. } = &question.parameters;
    if goal.is_some() {
        predicate.get_or_insert_default();
    }
    let (start, end) = (start_date.as_deref(), end_date.as_deref());
    if predicate.is_none() && *interval != Interval::Hour {
        let windows = compare.windows(&question, question.window(start, end)?)?;
        return report_in(&state, &question, windows, None).await;
    }
    let predicate = predicate.unwrap_or_default();
    let reply = async |window| {
        let windows = compare.event_windows(&question, window).await?;
        check_hours(*interval, windows)?;
        report_in(&state, &question, windows, Some((predicate.clone(), goal.clone()))).await
    };
    question.in_event_window((start, end), reply).await
}

/// Answers from the events that a predicate selects, with the goal that some of them fit; without
/// one, from the rollups of whole days.
async fn report_in(
    state: &AppState,
    question: &ProjectQuestion<'_, ReportBody>,
    windows: ComparedWindows,
    chosen: Option<(Predicate, Option<Predicate>)>,
) -> Result<HttpResponse> {
    let (window, has_money) = (windows.window, question.subject.check_money().is_ok());
    let shown = Shown { has_money, has_goal: chosen.as_ref().is_some_and(|(_, goal)| goal.is_some()) };
    let interval = question.parameters.interval;
    let buckets = ListedBuckets::of(question, window);
    let previous = windows.previous.map(|window| (window, ListedBuckets::of(question, window)));
    // The numbers of complete buckets say which they are, since they are the first of the whole
    // ones.
    let complete = buckets.complete() << 32 | previous.as_ref().map_or(0, |(_, buckets)| buckets.complete()) << 1;
    question.calendar.set_variant(complete | u64::from(has_money));
    let answer = |report: Report| ReportAnswer {
        totals: TotalFigures::new(&report.current.totals, shown),
        series: buckets.shown(&report.current, shown),
        previous: previous.as_ref().zip(report.previous.as_ref()).map(|((window, buckets), series)| PreviousFigures {
            totals: TotalFigures::new(&series.totals, shown),
            series: buckets.shown(series, shown),
            start_date: window.start.to_string(),
            end_date: window.end.to_string(),
        }),
        unconverted: has_money.then(|| unconverted(&report.unconverted)),
        currency: has_money.then(|| question.subject.config.policy.currency.to_string()),
        interval: interval.to_string(),
        start_date: window.start.to_string(),
        end_date: window.end.to_string(),
        timezone: question.subject.config.policy.timezone.name().to_owned(),
    };
    let Some((predicate, goal)) = chosen else {
        return question.reply_to(ReportQuery { windows, interval }, answer).await;
    };
    let asked = ReportQuestion { windows, interval, predicate, goal };
    question
        .reply(
            asked.predicate.depends_at_least(windows.depends()),
            state.engine.scans.report(question.subject.project, asked.clone()),
            answer,
        )
        .await
}
