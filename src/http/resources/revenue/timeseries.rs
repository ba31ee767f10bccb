//! `GET /projects/{project_id}/revenue/timeseries`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_control::Scope;
use headcount_domain::queries::{RevenueSeries, RevenueSeriesQuery};
use headcount_domain::time::Day;
use serde::Serialize;
use utoipa::ToSchema;

use super::unconverted::{UnconvertedMoney, unconverted};
use crate::http::app::AppState;
use crate::http::extract::auth::MinRole;
use crate::http::extract::parameters::Dates;
use crate::http::extract::path::ProjectPath;
use crate::http::extract::query::query_parameters;
use crate::http::extract::question::ProjectQuestion;
use crate::http::extract::share_rules::{NamedField, SharedQuestion};
use crate::http::openapi::responses::{NotFoundErrors, NotModified, QuestionErrors};
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

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
    responses((status = 200, description = "The series.", body = TimeseriesAnswer), NotModified, QuestionErrors, NotFoundErrors),
)]
pub(crate) async fn timeseries(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<TimeseriesParameters>::read_shared(&state, &request, Scope::RevenueRead, MinRole::Admin)?;
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
