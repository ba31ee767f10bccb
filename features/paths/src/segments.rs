//! `/projects/{project_id}/segments`: filters and conditions on people, with a name.

use headcount_api::definitions::{self, JsonFields, filters_json, list_field, people_json};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::extract::filters::FilterShape;
use headcount_api::extract::people::PeopleShape;
use headcount_control::{Definition, DefinitionKind};
use serde_json::value::RawValue;

use crate::definitions::SegmentPath;

const KIND: DefinitionKind = DefinitionKind::Segment;

json_body! {
    /// A segment to be made.
    #[schema(example = json!({"name": "Mobile from search", "filters": [
        {"field": "device", "operator": "is", "value": "mobile"}, {"field": "source", "operator": "is", "value": "google"}
    ]}))]
    pub(crate) struct NewSegment {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// The filters, all of which must hold; at most 20, with those of alternatives. Default: none.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
        /// The conditions on people, all of which must hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Option<String> = with(people_json),
    }
}

json_body! {
    /// A change of a segment: absent fields stay unchanged.
    #[schema(example = json!({"filters": [{"field": "device", "operator": "is", "value": ["mobile", "tablet"]}]}))]
    pub(crate) struct SegmentPatch {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The filters.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
        /// The conditions on people, all of which must hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Option<String> = with(people_json),
    }
}

answer! {
    /// A segment.
    pub(crate) struct SegmentAnswer from |definition: &Definition| {
        /// Its id, which questions name as `segment`.
        segment_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// The filters, all of which must hold.
        #[schema(value_type = Vec<FilterShape>)]
        filters: Box<RawValue> = list_field(definition, "filters"),
        /// The conditions on people, all of which must hold.
        #[schema(value_type = Vec<PeopleShape>)]
        people: Box<RawValue> = list_field(definition, "people"),
        /// When it was made.
        created_at: Timestamp,
    }
}

/// The segments of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentsAnswer {
    /// The segments, oldest first.
    segments: Vec<SegmentAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// The segments of a project. Readers of shares see those whose fields they may name.
#[utoipa::path(
    get, path = "/projects/{project_id}/segments", tag = "definitions", operation_id = "list_segments",
    params(ProjectPath),
    responses((status = 200, description = "The segments, oldest first.", body = SegmentsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let segments = asker
        .list(|caller| definitions::all(&call, caller, KIND))?
        .iter()
        .map(|definition| SegmentAnswer::from(&**definition))
        .collect();
    etag::json(&call.request, &SegmentsAnswer { segments, truncated: false })
}

/// Makes a segment: filters that questions name as `segment`. A project has at most 200.
#[utoipa::path(
    post, path = "/projects/{project_id}/segments", tag = "definitions", operation_id = "create_segment",
    params(ProjectPath), request_body = NewSegment,
    responses((status = 201, description = "The segment.", body = SegmentAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let NewSegment { name, filters, people } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let new = (name, JsonFields::default().set("filters", filters).set("people", people));
    let segment = definitions::create(&state, &request, &caller, KIND, new).await?;
    Ok(HttpResponse::Created().json(SegmentAnswer::from(&*segment)))
}

/// Changes a segment, and with it the answers of all questions that name it.
#[utoipa::path(
    patch, path = "/projects/{project_id}/segments/{segment_id}", tag = "definitions", operation_id = "update_segment",
    params(ProjectPath, SegmentPath), request_body = SegmentPatch,
    responses((status = 200, description = "The segment as it is now.", body = SegmentAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "segment_id")?;
    let SegmentPatch { name, filters, people } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let patch = (name, JsonFields::default().set("filters", filters).set("people", people));
    let segment = definitions::change(&state, &request, &caller, id, patch).await?;
    Ok(HttpResponse::Ok().json(SegmentAnswer::from(&*segment)))
}

/// Removes a segment. Questions that name it are refused from then on.
#[utoipa::path(
    delete, path = "/projects/{project_id}/segments/{segment_id}", tag = "definitions", operation_id = "delete_segment",
    params(ProjectPath, SegmentPath),
    responses((status = 204, description = "The segment is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    definitions::remove(call, &caller, KIND, "segment_id").await
}
