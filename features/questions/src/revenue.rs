//! `GET /projects/{project_id}/revenue/…`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_domain::queries::{
    AttributedRevenue, AttributionQuery, Cohort, CohortsQuery, Dimension, EntityLevel, LtvCohorts, RevenueMetrics,
    RevenueMetricsQuery, RevenueSeries, RevenueSeriesQuery, TouchModel, TouchRevenue, Unconverted,
};
use headcount_domain::time::Day;

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
    pub(crate) struct MetricsParameters {
        window: Dates,
    }
}

impl SharedQuestion for MetricsParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { window: _ } = self;
        Vec::new()
    }
}

/// Revenue of a window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetricsAnswer {
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
    currency: String,
    /// Money that the figures leave out because its currency had no rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// Revenue, orders and averages of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/metrics", tag = "revenue", operation_id = "revenue_metrics",
    params(ProjectPath, MetricsParameters),
    responses((status = 200, description = "The figures.", body = MetricsAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn metrics(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<MetricsParameters>::read(&state, &request, asker)?;
    let window = question.parameters.window.0;
    let answer = |metrics: RevenueMetrics| MetricsAnswer {
        total_revenue: Decimal(metrics.total_revenue),
        orders: metrics.orders,
        aov: Decimal(metrics.aov),
        arpa: Decimal(metrics.arpa),
        arpu: Decimal(metrics.arpu),
        currency: question.subject.config.policy.currency.to_string(),
        unconverted: unconverted(&metrics.unconverted),
    };
    question.reply_to(RevenueMetricsQuery { window }, answer).await
}

query_parameters! {
    /// The window of the series.
    pub(crate) struct TimeseriesParameters {
        window: Dates,
    }
}

impl SharedQuestion for TimeseriesParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { window: _ } = self;
        Vec::new()
    }
}

/// Revenue by day.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimeseriesAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// Every day of the window.
    series: Vec<RevenueDay>,
    /// Money that the figures leave out because its currency had no rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// One day's revenue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevenueDay {
    /// The day, `YYYY-MM-DD`.
    day: String,
    /// Orders less refunds.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

/// Revenue and orders of every day of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/timeseries", tag = "revenue", operation_id = "revenue_timeseries",
    params(ProjectPath, TimeseriesParameters),
    responses((status = 200, description = "The series.", body = TimeseriesAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn timeseries(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<TimeseriesParameters>::read(&state, &request, asker)?;
    let window = question.parameters.window.0;
    let day =
        |(day, revenue, orders): &(Day, _, i64)| RevenueDay { day: day.to_string(), revenue: Decimal(*revenue), orders: *orders };
    let answer = |revenue: RevenueSeries| TimeseriesAnswer {
        currency: question.subject.config.policy.currency.to_string(),
        series: revenue.series.iter().map(day).collect(),
        unconverted: unconverted(&revenue.unconverted),
    };
    question.reply_to(RevenueSeriesQuery { window }, answer).await
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

impl SharedQuestion for AttributionParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { model: _, level: _, dimension: _, window: _, limit: _ } = self;
        Vec::new()
    }
}

/// Revenue by what brought the buyers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttributionAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// By revenue, descending.
    rows: Vec<AttributionRow>,
    /// Whether there are more rows.
    truncated: bool,
    /// Money that the figures leave out because its currency had no rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
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
    let answer = |revenue: AttributedRevenue| AttributionAnswer {
        currency: question.subject.config.policy.currency.to_string(),
        rows: revenue.touches.rows.into_iter().map(AttributionRow::from).collect(),
        truncated: revenue.touches.truncated,
        unconverted: unconverted(&revenue.unconverted),
    };
    question.reply_to(query, answer).await
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

impl SharedQuestion for CohortsParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { level: _, limit: _, window: _ } = self;
        Vec::new()
    }
}

/// Lifetime value by month of first sight.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CohortsAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// The newest month first.
    cohorts: Vec<CohortRow>,
    /// Whether there are more cohorts.
    truncated: bool,
    /// Money that the figures leave out because its currency had no rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
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
    let answer = |ltv: LtvCohorts| CohortsAnswer {
        currency: question.subject.config.policy.currency.to_string(),
        cohorts: ltv.cohorts.rows.into_iter().map(CohortRow::from).collect(),
        truncated: ltv.cohorts.truncated,
        unconverted: unconverted(&ltv.unconverted),
    };
    question.reply_to(CohortsQuery { level: level.0, limit: limit.rows() }, answer).await
}
