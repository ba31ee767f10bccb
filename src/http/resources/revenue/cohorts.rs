//! `GET /projects/{project_id}/revenue/ltv-cohorts`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_control::Scope;
use headcount_domain::queries::{Cohort, CohortsQuery, EntityLevel, LtvCohorts};
use serde::Serialize;
use utoipa::ToSchema;

use super::unconverted::{UnconvertedMoney, unconverted};
use crate::http::app::AppState;
use crate::http::extract::auth::MinRole;
use crate::http::extract::parameters::{Choice, IgnoredDates, Limit};
use crate::http::extract::path::ProjectPath;
use crate::http::extract::query::query_parameters;
use crate::http::extract::question::ProjectQuestion;
use crate::http::extract::share_rules::{NamedField, SharedQuestion};
use crate::http::openapi::responses::{NotFoundErrors, NotModified, QuestionErrors};
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

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

/// Those who were first seen in one month.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CohortRow {
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
    params(ProjectPath, CohortsParameters),
    responses((status = 200, description = "The cohorts.", body = CohortsAnswer), NotModified, QuestionErrors, NotFoundErrors),
)]
pub(crate) async fn ltv_cohorts(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<CohortsParameters>::read_shared(&state, &request, Scope::RevenueRead, MinRole::Admin)?;
    let CohortsParameters { level, limit, window: IgnoredDates } = question.parameters;
    let answer = |ltv: LtvCohorts| CohortsAnswer {
        currency: question.subject.config.policy.currency.to_string(),
        cohorts: ltv.cohorts.rows.into_iter().map(CohortRow::from).collect(),
        truncated: ltv.cohorts.truncated,
        unconverted: unconverted(&ltv.unconverted),
    };
    question.reply_to(CohortsQuery { level: level.0, limit: limit.rows() }, answer).await
}
