//! `GET /projects/{project_id}/revenue/ltv-cohorts`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_domain::queries::{Cohort, CohortsQuery, LtvCohorts};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{Asked, UnconvertedMoney, level, unconverted};
use crate::http::AppState;
use crate::http::openapi::{NotFoundErrors, NotModified, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

const MAX_COHORTS: u32 = 60;
const DEFAULT_COHORTS: u32 = 24;

/// Which cohorts are asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct CohortsParams {
    /// Cohorts of accounts (companies, and buyers who have none), or of identities.
    #[param(schema_with = level)]
    level: Option<String>,
    /// At most so many cohorts, the newest ones.
    #[param(minimum = 1, maximum = 60, default = 24)]
    limit: Option<u32>,
    /// Taken and ignored: cohorts are of all time.
    start_date: Option<String>,
    /// Taken and ignored.
    end_date: Option<String>,
}

/// Lifetime value by month of first sight.
#[derive(Debug, Serialize, ToSchema)]
pub struct CohortsAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// The newest month first.
    cohorts: Vec<CohortRow>,
    /// Whether there are more cohorts.
    truncated: bool,
    /// What is left out for want of a rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// Those who were first seen in one month.
#[derive(Debug, Serialize, ToSchema)]
pub struct CohortRow {
    /// The month, `YYYY-MM`.
    cohort: String,
    /// How many accounts or identities, paying or not.
    entities: i64,
    /// Their orders less refunds, of all time.
    revenue: Decimal,
    /// How many orders, of all time.
    orders: i64,
    /// `revenue` / `entities`.
    ltv: Decimal,
}

impl From<Cohort> for CohortRow {
    fn from(cohort: Cohort) -> Self {
        Self {
            cohort: cohort.month,
            entities: cohort.entities,
            revenue: Decimal(cohort.revenue),
            orders: cohort.orders,
            ltv: Decimal(cohort.ltv),
        }
    }
}

/// Lifetime value of those who were first seen in each month.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/ltv-cohorts", tag = "revenue", operation_id = "revenue_ltv_cohorts",
    params(ProjectPath, CohortsParams),
    responses(
        (status = 200, description = "The cohorts.", body = CohortsAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn ltv_cohorts(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::read(&state, &request, &["level", "limit", "start_date", "end_date"])?;
    let level = asked.query.word("level")?;
    let limit = asked.query.limit(MAX_COHORTS, DEFAULT_COHORTS)?;
    let ltv = state.engine.ask(asked.caller.project, CohortsQuery { level, limit });
    let answer = |ltv: LtvCohorts| CohortsAnswer {
        currency: asked.currency(),
        cohorts: ltv.cohorts.rows.into_iter().map(CohortRow::from).collect(),
        truncated: ltv.cohorts.truncated,
        unconverted: unconverted(&ltv.unconverted),
    };
    // Nothing in it is relative to today.
    asked.reply(None, ltv, answer).await
}
