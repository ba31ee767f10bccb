//! `/projects/{project_id}/goals`: events that count as conversions.

use headcount_api::definitions::{self, JsonFields, field, filters_json, list_field};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::extract::filters::FilterShape;
use headcount_control::{Definition, DefinitionKind};
use serde_json::value::RawValue;

use crate::definitions::{GoalPath, event_name_json, page_json};

const KIND: DefinitionKind = DefinitionKind::Goal;

json_body! {
    /// A goal to be made. It has `event_name` or `page`.
    #[schema(example = json!({"name": "Signed up", "event_name": "signup"}))]
    pub(crate) struct NewGoal {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// Events of this name fit.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
        event_name: Option<String> = with(event_name_json),
        /// Pageviews whose `path` matches this pattern fit: `*` stands for any run of characters without `/`, `**` for any run.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
        page: Option<String> = with(page_json),
        /// Only events for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
    }
}

json_body! {
    /// A change of a goal: absent fields stay unchanged. `event_name` takes the place of `page`, and the other way round.
    #[schema(example = json!({"page": "/thanks/**"}))]
    pub(crate) struct GoalPatch {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// Events of this name fit.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
        event_name: Option<String> = with(event_name_json),
        /// Pageviews whose `path` matches this pattern fit.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
        page: Option<String> = with(page_json),
        /// Only events for which all of these hold.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
    }
}

answer! {
    /// A goal.
    pub(crate) struct GoalAnswer from |definition: &Definition| {
        /// Its id, which questions name as `goal`.
        goal_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// The name of the events that fit; null if the goal is a page.
        #[schema(value_type = Option<String>, required)]
        event_name: Box<RawValue> = field(definition, "event_name"),
        /// The pattern of the paths of the pageviews that fit; null if the goal is an event.
        #[schema(value_type = Option<String>, required)]
        page: Box<RawValue> = field(definition, "page"),
        /// The filters, all of which must hold.
        #[schema(value_type = Vec<FilterShape>)]
        filters: Box<RawValue> = list_field(definition, "filters"),
        /// When it was made.
        created_at: Timestamp,
    }
}

/// The goals of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GoalsAnswer {
    /// The goals, oldest first.
    goals: Vec<GoalAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// Returns the fields of what fits, of which a goal has one. The other one becomes null.
fn one_of(event_name: Option<String>, page: Option<String>) -> Result<JsonFields> {
    let null = || Some("null".to_owned());
    match (event_name, page) {
        (Some(_), Some(_)) => Err(ApiError::parameter("page", "a goal has `event_name` or `page`, not both")),
        (None, None) => Ok(JsonFields::default()),
        (event_name, page) => {
            let set = JsonFields::default().set("event_name", event_name.or_else(null));
            Ok(set.set("page", page.or_else(null)))
        }
    }
}

/// The goals of a project.
#[utoipa::path(
    get, path = "/projects/{project_id}/goals", tag = "definitions", operation_id = "list_goals",
    params(ProjectPath),
    responses((status = 200, description = "The goals, oldest first.", body = GoalsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let goals = definitions::all(&call, &caller, KIND)?.iter().map(|definition| GoalAnswer::from(&**definition)).collect();
    etag::json(&call.request, &GoalsAnswer { goals, truncated: false })
}

/// Makes a goal. Its figures are those of all time: nothing is stored with the events. A project has at most 200.
#[utoipa::path(
    post, path = "/projects/{project_id}/goals", tag = "definitions", operation_id = "create_goal",
    params(ProjectPath), request_body = NewGoal,
    responses((status = 201, description = "The goal.", body = GoalAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let NewGoal { name, event_name, page, filters } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    if event_name.is_none() && page.is_none() {
        return Err(ApiError::missing_one_of("event_name", "page"));
    }
    let new = (name, one_of(event_name, page)?.set("filters", filters));
    let goal = definitions::create(&state, &request, &caller, KIND, new).await?;
    Ok(HttpResponse::Created().json(GoalAnswer::from(&*goal)))
}

/// Changes a goal, and with it its figures of all time.
#[utoipa::path(
    patch, path = "/projects/{project_id}/goals/{goal_id}", tag = "definitions", operation_id = "update_goal",
    params(ProjectPath, GoalPath), request_body = GoalPatch,
    responses((status = 200, description = "The goal as it is now.", body = GoalAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "goal_id")?;
    let GoalPatch { name, event_name, page, filters } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let patch = (name, one_of(event_name, page)?.set("filters", filters));
    let goal = definitions::change(&state, &request, &caller, id, patch).await?;
    Ok(HttpResponse::Ok().json(GoalAnswer::from(&*goal)))
}

/// Removes a goal. Questions that name it are refused from then on.
#[utoipa::path(
    delete, path = "/projects/{project_id}/goals/{goal_id}", tag = "definitions", operation_id = "delete_goal",
    params(ProjectPath, GoalPath),
    responses((status = 204, description = "The goal is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    definitions::remove(call, &caller, KIND, "goal_id").await
}
