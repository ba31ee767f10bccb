//! `GET /groups/…`: organization-wide.

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::Scope;
use headcount_domain::intake::admission::is_group_type;
use headcount_domain::queries::{GroupMetrics, Listed};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::AppState;
use crate::http::extract::query::{Query, parsed};
use crate::http::extract::question::{Asked, ListParams, RangeParams, list_limit};
use crate::http::openapi::{NotFoundErrors, NotModified, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::error::ApiError;

const MAX_KEY_CHARACTERS: usize = 512;
/// The group type with operations of its own.
const COMPANY: &str = "company";

/// Which groups a question is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct GroupTypeParams {
    /// The type of the groups. `company` is refused: companies have operations of their own.
    #[param(pattern = "^[a-z][a-z0-9_]{0,63}$")]
    group_type: String,
}

/// The group that a question is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct GroupKeyParams {
    /// The group's key: the `group_id` of events.
    #[param(min_length = 1, max_length = 512)]
    group_key: String,
}

/// What a group did.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupAnswer {
    /// Its type.
    group_type: String,
    /// Its key.
    group_key: String,
    /// Its name; null while nobody told it.
    #[schema(required)]
    name: Option<String>,
    /// How many events in the range.
    events: u64,
    /// How many different users in the range.
    users: u64,
    /// The last event ever.
    #[schema(format = DateTime)]
    last_seen: String,
}

/// The most active groups of a type.
#[derive(Debug, Serialize, ToSchema)]
pub struct TopGroupsAnswer {
    /// Those with events in the range, the most active first.
    groups: Vec<GroupAnswer>,
    /// Whether there are more.
    truncated: bool,
}

impl From<GroupMetrics> for GroupAnswer {
    fn from(group: GroupMetrics) -> Self {
        Self {
            group_type: group.group_type,
            group_key: group.group_key,
            name: group.name,
            events: group.events,
            users: group.users,
            last_seen: group.last_seen.to_string(),
        }
    }
}

impl From<Listed<GroupMetrics>> for TopGroupsAnswer {
    fn from(groups: Listed<GroupMetrics>) -> Self {
        Self { groups: groups.rows.into_iter().map(GroupAnswer::from).collect(), truncated: groups.truncated }
    }
}

/// The type that is asked for.
fn group_type(query: &Query) -> Result<&str, ApiError> {
    let given = query.text("group_type").ok_or_else(|| ApiError::missing("group_type"))?;
    if given == COMPANY {
        let message =
            "`group_type` must not be `company`: GET /companies/top and GET /companies/{company_id}/metrics are for those";
        return Err(ApiError::parameter("group_type", message));
    }
    let expected = "a group type that matches ^[a-z][a-z0-9_]{0,63}$";
    parsed("group_type", given, |text| is_group_type(text).then_some(given), expected)
}

/// What a group did in the last days, over all projects.
#[utoipa::path(
    get, path = "/groups/metrics", tag = "groups", operation_id = "group_metrics",
    params(GroupTypeParams, GroupKeyParams, RangeParams),
    responses(
        (status = 200, description = "The figures.", body = GroupAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn metrics(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::in_range(&state, &request, Scope::GroupsRead, &["group_type", "group_key", "range_days"])?;
    let group_type = group_type(&asked.query)?;
    let group_key = asked.query.required("group_key", MAX_KEY_CHARACTERS)?;
    let group = state.engine.group_metrics(asked.id(), group_type, group_key, asked.window);
    asked.reply_about("group", group, GroupAnswer::from).await
}

/// The groups of a type with the most events in the last days, over all projects.
#[utoipa::path(
    get, path = "/groups/top", tag = "groups", operation_id = "top_groups",
    params(GroupTypeParams, RangeParams, ListParams),
    responses(
        (status = 200, description = "The groups.", body = TopGroupsAnswer),
        NotModified, RequestErrors, TokenErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn top(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let asked = Asked::in_range(&state, &request, Scope::GroupsRead, &["group_type", "range_days", "limit"])?;
    let group_type = group_type(&asked.query)?;
    let groups = state.engine.top_groups(asked.id(), group_type, asked.window, list_limit(&asked.query)?);
    asked.reply(groups, TopGroupsAnswer::from).await
}

#[cfg(test)]
mod tests {
    use headcount_domain::time::Instant;

    use super::*;

    #[test]
    fn a_group_has_the_fields_of_the_interface() {
        let group = GroupMetrics {
            group_type: "team".to_owned(),
            group_key: "t1".to_owned(),
            name: None,
            events: 3,
            users: 2,
            last_seen: Instant(0),
        };
        let expected = concat!(
            r#"{"group_type":"team","group_key":"t1","name":null,"events":3,"users":2,"#,
            r#""last_seen":"1970-01-01T00:00:00.000Z"}"#,
        );
        assert_eq!(serde_json::to_string(&GroupAnswer::from(group)).unwrap(), expected);
    }
}
