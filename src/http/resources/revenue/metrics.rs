//! `GET /projects/{project_id}/revenue/metrics`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_control::Scope;
use headcount_domain::queries::{RevenueMetrics, RevenueMetricsQuery};
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
    responses((status = 200, description = "The figures.", body = MetricsAnswer), NotModified, QuestionErrors, NotFoundErrors),
)]
pub(crate) async fn metrics(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<MetricsParameters>::read_shared(&state, &request, Scope::RevenueRead, MinRole::Admin)?;
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
