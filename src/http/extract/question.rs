//! The frame of a question about a whole organization: who may ask it, the days that it is about, and its answer.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::engine::AskError;
use headcount_actors::registry::{Organization, Scope};
use headcount_domain::ids::OrganizationId;
use headcount_domain::time::{Day, Window};
use serde::Serialize;
use utoipa::IntoParams;

use crate::http::AppState;
use crate::http::extract::auth::{self, MinRole};
use crate::http::extract::query::Query;
use crate::http::extract::window::window_in;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag::Tag;

const MAX_RANGE_DAYS: u32 = 365;
const DEFAULT_RANGE_DAYS: u32 = 30;
const MAX_ROWS: u32 = 100;
const DEFAULT_ROWS: u32 = 20;

/// The range of a question, as a query parameter.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct RangeParams {
    /// The last so many calendar days, today included.
    #[param(minimum = 1, maximum = 365, default = 30)]
    range_days: Option<u32>,
}

/// How long a list of companies, users or groups may be, as a query parameter.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct ListParams {
    /// At most so many rows.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
}

/// How long a list is to be: the parameter of [`ListParams`].
pub fn list_limit(query: &Query) -> Result<usize, ApiError> {
    query.limit(MAX_ROWS, DEFAULT_ROWS)
}

/// A question about an organization, asked by somebody who may.
#[derive(Debug)]
pub struct Asked<'r> {
    state: &'r AppState,
    request: &'r HttpRequest,
    /// The parameters.
    pub query: Query,
    /// The organization as it is at this moment: days are those of its timezone, money is in its currency.
    pub organization: Arc<Organization>,
    /// The days.
    pub window: Window,
    /// Today, if the days are relative to it.
    today: Option<Day>,
}

impl<'r> Asked<'r> {
    /// About a window: `parameters` hold `start_date` and `end_date`.
    pub fn in_window(state: &'r AppState, request: &'r HttpRequest, scope: Scope, parameters: &[&str]) -> Result<Self, ApiError> {
        Self::read(state, request, scope, parameters, |query, organization| {
            window_in(state, organization.timezone, query.text("start_date"), query.text("end_date"))
        })
    }

    /// About the last days: `parameters` hold `range_days`.
    pub fn in_range(state: &'r AppState, request: &'r HttpRequest, scope: Scope, parameters: &[&str]) -> Result<Self, ApiError> {
        Self::read(state, request, scope, parameters, |query, organization| {
            let days = query.integer("range_days", 1..=MAX_RANGE_DAYS, DEFAULT_RANGE_DAYS)?;
            let window = Window::last_days(days, organization.timezone, state.engine.clock().now());
            Ok((window, Some(window.end)))
        })
    }

    fn read(
        state: &'r AppState,
        request: &'r HttpRequest,
        scope: Scope,
        parameters: &[&str],
        days: impl FnOnce(&Query, &Organization) -> Result<(Window, Option<Day>), ApiError>,
    ) -> Result<Self, ApiError> {
        let caller = auth::organization_wide(state, request, scope, MinRole::Admin)?;
        let query = Query::read(request, parameters)?;
        let organization = state.engine.registry().organization(caller.organization())?;
        let (window, today) = days(&query, &organization)?;
        Ok(Self { state, request, query, organization, window, today })
    }

    /// The organization's id.
    pub fn id(&self) -> OrganizationId {
        self.organization.id
    }

    /// Answers, see [`Tag::reply`].
    pub async fn reply<T, A: Serialize>(
        &self,
        asked: impl Future<Output = Result<T, AskError>>,
        answer: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse, ApiError> {
        self.tag().await?.reply(self.request, asked, answer).await
    }

    /// Answers about a thing that may not be there, see [`Tag::reply_about`].
    pub async fn reply_about<T, A: Serialize>(
        &self,
        thing: &'static str,
        asked: impl Future<Output = Result<Option<T>, AskError>>,
        answer: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse, ApiError> {
        self.tag().await?.reply_about(self.request, thing, asked, answer).await
    }

    async fn tag(&self) -> Result<Tag, ApiError> {
        Tag::of_organization(self.state, &self.organization, self.today, self.request).await
    }
}
