//! `GET /projects/{project_id}/revenue/…`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_domain::intake::policy::Policy;
use headcount_domain::queries::{
    AttributedRevenue, AttributionQuery, Cohort, CohortsQuery, Dimension, EntityLevel, LtvCohorts, RevenueMetrics,
    RevenueMetricsQuery, RevenueSeries, RevenueSeriesQuery, TouchModel, TouchRevenue, Unconverted,
};
use headcount_domain::{Amount, Day};

/// Money in a currency that had no rate when it was recorded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnconvertedMoney {
    /// Orders less refunds, in that currency.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

/// Returns the money that is left out, by currency.
pub(crate) fn unconverted(money: &Unconverted) -> BTreeMap<String, UnconvertedMoney> {
    let shown = money.iter().map(|(currency, (revenue, orders))| {
        (currency.to_string(), UnconvertedMoney { revenue: Decimal(*revenue), orders: *orders })
    });
    shown.collect()
}

query_parameters! {
    /// The window that the figures are of.
    pub(crate) struct WindowParameters {
        window: Dates,
    }
}

names_no_field! {
    WindowParameters { window };
    AttributionParameters { model, level, dimension, window, limit };
    CohortsParameters { level, limit, window };
}

answer! {
    /// Revenue of a window.
    pub(crate) struct MetricsAnswer from |metrics: RevenueMetrics, policy: &Policy| {
        /// Orders less refunds.
        total_revenue: Decimal,
        /// How many orders.
        orders: i64,
        /// `total_revenue` / `orders`.
        aov: Decimal,
        /// `total_revenue` per account active in the window.
        arpa: Decimal,
        /// `total_revenue` per identity active in the window.
        arpu: Decimal,
        /// The currency of all amounts: the project's.
        currency: String = policy.currency.to_string(),
        /// Money that the figures leave out because its currency had no rate, by currency.
        unconverted: BTreeMap<String, UnconvertedMoney> = unconverted(&metrics.unconverted),
    }
}

/// Revenue, orders and averages of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/metrics", tag = "revenue", operation_id = "revenue_metrics",
    params(ProjectPath, WindowParameters),
    responses((status = 200, description = "The figures.", body = MetricsAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn metrics(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<WindowParameters>::read(&state, &request, asker)?;
    let window = question.parameters.window.0;
    let policy = &question.subject.config.policy;
    question.reply_to(RevenueMetricsQuery { window }, |metrics| MetricsAnswer::new(metrics, policy)).await
}

answer! {
    /// Revenue by day.
    pub(crate) struct TimeseriesAnswer from |revenue: RevenueSeries, policy: &Policy| {
        /// The currency of all amounts: the project's.
        currency: String = policy.currency.to_string(),
        /// Every day of the window.
        series: Vec<RevenueDay> = shown(revenue.series),
        /// Money that the figures leave out because its currency had no rate, by currency.
        unconverted: BTreeMap<String, UnconvertedMoney> = unconverted(&revenue.unconverted),
    }
}

answer! {
    /// One day's revenue.
    pub(crate) struct RevenueDay from |day: (Day, Amount, i64)| {
        /// The day, `YYYY-MM-DD`.
        day: String = day.0.to_string(),
        /// Orders less refunds.
        revenue: Decimal = day.1.into(),
        /// How many orders.
        orders: i64 = day.2,
    }
}

/// Revenue and orders of every day of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/timeseries", tag = "revenue", operation_id = "revenue_timeseries",
    params(ProjectPath, WindowParameters),
    responses((status = 200, description = "The series.", body = TimeseriesAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn timeseries(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<WindowParameters>::read(&state, &request, asker)?;
    let window = question.parameters.window.0;
    let policy = &question.subject.config.policy;
    question.reply_to(RevenueSeriesQuery { window }, |revenue| TimeseriesAnswer::new(revenue, policy)).await
}

query_parameters! {
    /// The touches that revenue is grouped by.
    pub(crate) struct AttributionParameters {
        /// The first touch of the buyer, or the last one before each order.
        model: Choice<TouchModel>,
        /// Whose touches: the buyer's account (its company, if it has one), or its own.
        level: Choice<EntityLevel>,
        /// The property of the touch to group by.
        dimension: Choice<Dimension>,
        window: Dates,
        /// The most rows to return.
        limit: ListLimit,
    }
}

answer! {
    /// Revenue by what brought the buyers.
    pub(crate) struct AttributionAnswer from |revenue: AttributedRevenue, policy: &Policy| {
        /// The currency of all amounts: the project's.
        currency: String = policy.currency.to_string(),
        /// By revenue, descending.
        rows: Vec<AttributionRow> = shown(revenue.touches.rows),
        /// Whether there are more rows.
        truncated: bool = revenue.touches.truncated,
        /// Money that the figures leave out because its currency had no rate, by currency.
        unconverted: BTreeMap<String, UnconvertedMoney> = unconverted(&revenue.unconverted),
    }
}

answer! {
    /// Revenue under one source, medium or campaign.
    pub(crate) struct AttributionRow from TouchRevenue {
        /// The source, medium or campaign.
        dimension: String,
        /// Orders less refunds.
        revenue: Decimal,
        /// How many orders.
        orders: i64,
    }
}

/// Revenue of a window by the source, medium or campaign that brought the buyers.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/by-attribution", tag = "revenue", operation_id = "revenue_by_attribution",
    params(ProjectPath, AttributionParameters),
    responses((status = 200, description = "The rows.", body = AttributionAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn by_attribution(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<AttributionParameters>::read(&state, &request, asker)?;
    let AttributionParameters { model, level, dimension, window, limit } = question.parameters;
    let query =
        AttributionQuery { model: model.0, level: level.0, dimension: dimension.0, window: window.0, limit: limit.rows() };
    let policy = &question.subject.config.policy;
    question.reply_to(query, |revenue| AttributionAnswer::new(revenue, policy)).await
}

query_parameters! {
    /// The cohorts to return.
    pub(crate) struct CohortsParameters {
        /// Cohorts of accounts (companies, and buyers who have none), or of identities.
        level: Choice<EntityLevel>,
        /// The most cohorts to return, newest first.
        limit: Limit<60, 24>,
        window: IgnoredDates,
    }
}

answer! {
    /// Lifetime value by month of first sight.
    pub(crate) struct CohortsAnswer from |ltv: LtvCohorts, policy: &Policy| {
        /// The currency of all amounts: the project's.
        currency: String = policy.currency.to_string(),
        /// The newest month first.
        cohorts: Vec<CohortRow> = shown(ltv.cohorts.rows),
        /// Whether there are more cohorts.
        truncated: bool = ltv.cohorts.truncated,
        /// Money that the figures leave out because its currency had no rate, by currency.
        unconverted: BTreeMap<String, UnconvertedMoney> = unconverted(&ltv.unconverted),
    }
}

answer! {
    /// Those who were first seen in one month.
    pub(crate) struct CohortRow from |row: Cohort| {
        /// The month, `YYYY-MM`.
        cohort: String = row.month,
        /// How many accounts or identities, paying or not.
        entities: i64,
        /// Their orders less refunds, of all time.
        revenue: Decimal,
        /// How many orders, of all time.
        orders: i64,
        /// `revenue` / `entities`.
        ltv: Decimal,
    }
}

/// Lifetime value of those who were first seen in each month.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/ltv-cohorts", tag = "revenue", operation_id = "revenue_ltv_cohorts",
    params(ProjectPath, CohortsParameters),
    responses((status = 200, description = "The cohorts.", body = CohortsAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn ltv_cohorts(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<CohortsParameters>::read(&state, &request, asker)?;
    let CohortsParameters { level, limit, window: IgnoredDates } = question.parameters;
    let (query, policy) = (CohortsQuery { level: level.0, limit: limit.rows() }, &question.subject.config.policy);
    question.reply_to(query, |ltv| CohortsAnswer::new(ltv, policy)).await
}
