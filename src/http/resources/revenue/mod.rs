//! `GET /projects/{project_id}/revenue/…`

pub mod attribution;
pub mod cohorts;

use std::collections::BTreeMap;
use std::fmt::Display;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::engine::AskError;
use headcount_actors::registry::Scope;
use headcount_domain::queries::{
    EntityLevel, RevenueMetrics, RevenueMetricsQuery, RevenueSeries, RevenueSeriesQuery, Unconverted,
};
use headcount_domain::time::{Day, Window};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::http::AppState;
use crate::http::extract::auth::{self, MinRole, ProjectCaller};
use crate::http::extract::query::Query;
use crate::http::extract::window::{WindowParams, window};
use crate::http::openapi::{NotFoundErrors, NotModified, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag::Tag;

/// Money in a currency that had no rate when it was recorded.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnconvertedMoney {
    /// Orders less refunds, in that currency.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

/// Revenue of a window.
#[derive(Debug, Serialize, ToSchema)]
pub struct MetricsAnswer {
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
    /// What is left out for want of a rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// Revenue by day.
#[derive(Debug, Serialize, ToSchema)]
pub struct TimeseriesAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// Every day of the window.
    series: Vec<RevenueDay>,
    /// What is left out for want of a rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// One day's revenue.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevenueDay {
    /// The day, `YYYY-MM-DD`.
    day: String,
    /// Orders less refunds.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

/// A question about a project's revenue, asked by somebody who may.
struct Asked<'r> {
    state: &'r AppState,
    request: &'r HttpRequest,
    caller: ProjectCaller,
    query: Query,
}

impl<'r> Asked<'r> {
    fn read(state: &'r AppState, request: &'r HttpRequest, parameters: &[&str]) -> Result<Self, ApiError> {
        let caller = auth::on_project(state, request, Scope::RevenueRead, MinRole::Admin)?;
        Ok(Self { state, request, caller, query: Query::read(request, parameters)? })
    }

    /// The parameters `start_date` and `end_date`: the window, and today if it is relative to it.
    fn window(&self) -> Result<(Window, Option<Day>), ApiError> {
        window(self.state, &self.caller, self.query.text("start_date"), self.query.text("end_date"))
    }

    fn currency(&self) -> String {
        self.caller.keyed.policy.currency.to_string()
    }

    /// Answers, see [`Tag::reply`].
    async fn reply<T, A: Serialize>(
        &self,
        today: Option<Day>,
        asked: impl Future<Output = Result<T, AskError>>,
        answer: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse, ApiError> {
        let tag = Tag::of_project(self.state, &self.caller, today, self.request, &[]).await?;
        tag.reply(self.request, asked, answer).await
    }
}

/// Revenue, orders and averages of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/metrics", tag = "revenue", operation_id = "revenue_metrics",
    params(ProjectPath, WindowParams),
    responses(
        (status = 200, description = "The figures.", body = MetricsAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn metrics(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::read(&state, &request, &["start_date", "end_date"])?;
    let (window, today) = asked.window()?;
    let metrics = state.engine.ask(asked.caller.project, RevenueMetricsQuery { window });
    let answer = |metrics: RevenueMetrics| MetricsAnswer {
        total_revenue: Decimal(metrics.total_revenue),
        orders: metrics.orders,
        aov: Decimal(metrics.aov),
        arpa: Decimal(metrics.arpa),
        arpu: Decimal(metrics.arpu),
        currency: asked.currency(),
        unconverted: unconverted(&metrics.unconverted),
    };
    asked.reply(today, metrics, answer).await
}

/// Revenue and orders of every day of a window.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/timeseries", tag = "revenue", operation_id = "revenue_timeseries",
    params(ProjectPath, WindowParams),
    responses(
        (status = 200, description = "The series.", body = TimeseriesAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn timeseries(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::read(&state, &request, &["start_date", "end_date"])?;
    let (window, today) = asked.window()?;
    let revenue = state.engine.ask(asked.caller.project, RevenueSeriesQuery { window });
    let day =
        |(day, revenue, orders): &(Day, _, i64)| RevenueDay { day: day.to_string(), revenue: Decimal(*revenue), orders: *orders };
    let answer = |revenue: RevenueSeries| TimeseriesAnswer {
        currency: asked.currency(),
        series: revenue.series.iter().map(day).collect(),
        unconverted: unconverted(&revenue.unconverted),
    };
    asked.reply(today, revenue, answer).await
}

fn unconverted(money: &Unconverted) -> BTreeMap<String, UnconvertedMoney> {
    let shown = money.iter().map(|(currency, (revenue, orders))| {
        (currency.to_string(), UnconvertedMoney { revenue: Decimal(*revenue), orders: *orders })
    });
    shown.collect()
}

/// The schema of a word out of a few, of which one is usual.
fn one_of<T: Display + Default>(words: impl IntoIterator<Item = T>) -> Object {
    let words = words.into_iter().map(|word| word.to_string());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).default(Some(T::default().to_string().into())).build()
}

/// The schema of a level.
fn level() -> Object {
    one_of([EntityLevel::Account, EntityLevel::Identity])
}
