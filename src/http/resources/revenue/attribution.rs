//! `GET /projects/{project_id}/revenue/by-attribution`

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_domain::queries::{AttributedRevenue, AttributionQuery, Dimension, TouchModel, TouchRevenue};
use serde::Serialize;
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};

use super::{Asked, UnconvertedMoney, level, one_of, unconverted};
use crate::http::AppState;
use crate::http::extract::window::WindowParams;
use crate::http::openapi::{NotFoundErrors, NotModified, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::decimal::Decimal;
use crate::http::respond::error::ApiError;

const MAX_ROWS: u32 = 100;
const DEFAULT_ROWS: u32 = 20;

/// What of which touch revenue is counted under.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct AttributionParams {
    /// The first touch of the buyer, or the last one before each order.
    #[param(schema_with = model)]
    model: Option<String>,
    /// Whose touches: the buyer's account (its company, if it has one), or its own.
    #[param(schema_with = level)]
    level: Option<String>,
    /// What of the touch.
    #[param(schema_with = dimension)]
    dimension: Option<String>,
    /// At most so many rows.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
}

/// Revenue by what brought the buyers.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttributionAnswer {
    /// The currency of all amounts: the project's.
    currency: String,
    /// By revenue, descending.
    rows: Vec<AttributionRow>,
    /// Whether there are more rows.
    truncated: bool,
    /// What is left out for want of a rate, by currency.
    unconverted: BTreeMap<String, UnconvertedMoney>,
}

/// Revenue under one source, medium or campaign.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttributionRow {
    /// The source, medium or campaign.
    dimension: String,
    /// Orders less refunds.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

impl From<TouchRevenue> for AttributionRow {
    fn from(touch: TouchRevenue) -> Self {
        Self { dimension: touch.dimension, revenue: Decimal(touch.revenue), orders: touch.orders }
    }
}

fn model() -> Object {
    one_of([TouchModel::FirstTouch, TouchModel::LastTouch])
}

fn dimension() -> Object {
    one_of([Dimension::Source, Dimension::Medium, Dimension::Campaign])
}

/// Revenue of a window by the source, medium or campaign that brought the buyers.
#[utoipa::path(
    get, path = "/projects/{project_id}/revenue/by-attribution", tag = "revenue", operation_id = "revenue_by_attribution",
    params(ProjectPath, AttributionParams, WindowParams),
    responses(
        (status = 200, description = "The rows.", body = AttributionAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn by_attribution(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::read(&state, &request, &["model", "level", "dimension", "start_date", "end_date", "limit"])?;
    let query = &asked.query;
    let (model, level, dimension) = (query.word("model")?, query.word("level")?, query.word("dimension")?);
    let (window, today) = asked.window()?;
    let limit = query.limit(MAX_ROWS, DEFAULT_ROWS)?;
    let query = AttributionQuery { model, level, dimension, window, limit };
    let revenue = state.engine.ask(asked.caller.project, query);
    let answer = |revenue: AttributedRevenue| AttributionAnswer {
        currency: asked.currency(),
        rows: revenue.touches.rows.into_iter().map(AttributionRow::from).collect(),
        truncated: revenue.touches.truncated,
        unconverted: unconverted(&revenue.unconverted),
    };
    asked.reply(today, revenue, answer).await
}
