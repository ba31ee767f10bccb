//! `GET /projects/{project_id}/revenue/by-attribution`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_control::Scope;
use headcount_domain::queries::{AttributedRevenue, AttributionQuery, Dimension, EntityLevel, TouchModel, TouchRevenue};
use serde::Serialize;
use utoipa::ToSchema;

use super::unconverted::{UnconvertedMoney, unconverted};
use crate::http::app::AppState;
use crate::http::extract::auth::MinRole;
use crate::http::extract::parameters::{Choice, Dates, ListLimit};
use crate::http::extract::path::ProjectPath;
use crate::http::extract::query::query_parameters;
use crate::http::extract::question::ProjectQuestion;
use crate::http::extract::share_rules::{NamedField, SharedQuestion};
use crate::http::openapi::responses::{NotFoundErrors, NotModified, QuestionErrors};
use crate::http::respond::answer::answer;
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

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
    responses((status = 200, description = "The rows.", body = AttributionAnswer), NotModified, QuestionErrors, NotFoundErrors),
)]
pub(crate) async fn by_attribution(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let question = ProjectQuestion::<AttributionParameters>::read_shared(&state, &request, Scope::RevenueRead, MinRole::Admin)?;
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
