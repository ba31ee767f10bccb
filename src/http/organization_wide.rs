//! What questions about a whole organization have in common: the days that they are about, and the tag of their answers.

use std::sync::Arc;

use actix_web::HttpRequest;
use headcount_actors::registry::Organization;
use headcount_domain::ids::OrganizationId;
use headcount_domain::time::{Day, Window};
use utoipa::IntoParams;

use super::auth::Caller;
use super::conditional::Tag;
use super::error::ApiError;
use super::params::Query;
use super::{AppState, window_in};

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

/// A question about an organization.
#[derive(Debug)]
pub struct Question {
    /// The organization as it is at this moment: days are those of its timezone, money is in its currency.
    pub organization: Arc<Organization>,
    /// The days.
    pub window: Window,
    /// Today, if the days are relative to it.
    today: Option<Day>,
}

impl Question {
    /// About a window: the parameters `start_date` and `end_date`.
    pub fn in_window(state: &AppState, caller: &Caller, query: &Query) -> Result<Self, ApiError> {
        let organization = state.engine.registry().organization(caller.organization())?;
        let (window, today) = window_in(state, organization.timezone, query.text("start_date"), query.text("end_date"))?;
        Ok(Self { organization, window, today })
    }

    /// About the last days: the parameter `range_days`.
    pub fn in_range(state: &AppState, caller: &Caller, query: &Query) -> Result<Self, ApiError> {
        let organization = state.engine.registry().organization(caller.organization())?;
        let days = query.integer("range_days", 1..=MAX_RANGE_DAYS, DEFAULT_RANGE_DAYS)?;
        let window = Window::last_days(days, organization.timezone, state.engine.clock().now());
        Ok(Self { organization, window, today: Some(window.end) })
    }

    /// The organization's id.
    pub fn id(&self) -> OrganizationId {
        self.organization.id
    }

    /// The tag of its answer.
    pub async fn tag(&self, state: &AppState, request: &HttpRequest) -> Result<Tag, ApiError> {
        Tag::of_organization(state, &self.organization, self.today, request).await
    }
}
