//! `/projects/{project_id}/funnels`: questions for funnels, with a name.

use headcount_api::definitions::{
    self, JsonFields, field, filters_json, list_field, name_json, people_json, quoted, sent_json, text_json,
};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::extract::filters::FilterShape;
use headcount_api::extract::people::PeopleShape;
use headcount_api::extract::steps::{self, ChainLengthShape, StepShape};
use headcount_control::{Definition, DefinitionKind};
use headcount_domain::figures::StepOrder;
use headcount_domain::intake::fields::Field;
use headcount_domain::queries::EntityLevel;
use serde_json::value::RawValue;

use crate::definitions::FunnelPath;

const KIND: DefinitionKind = DefinitionKind::Funnel;

json_body! {
    /// A funnel to be kept.
    #[schema(example = json!({"name": "From the prices to an order", "steps": [{"page": "/pricing"}, {"event_name": "order"}]}))]
    pub(crate) struct NewFunnel {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// The steps, 2 to 12.
        #[schema(value_type = Vec<StepShape>, min_items = 2, max_items = 12)]
        steps: Option<String> = with(steps_json),
        /// How long it may take from the first step to the last. Default: 7 days.
        #[schema(value_type = Option<ChainLengthShape>)]
        within: Option<String> = with(within_json),
        /// How steps follow each other: `loose` (the default), `strict` or `any`.
        order: Option<String> = with(|fields, name| name_json::<StepOrder>(fields, name)),
        /// Who does the steps: `identity` (the default) or `account`.
        level: Option<String> = with(|fields, name| name_json::<EntityLevel>(fields, name)),
        /// The field by which rows are divided.
        breakdown: Option<String> = with(field_json),
        /// Only events for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Option<String> = with(people_json),
        /// Only events of this segment: its id.
        segment: Option<String> = with(text_json),
    }
}

json_body! {
    /// A change of a funnel: absent fields stay unchanged.
    #[schema(example = json!({"within": {"days": 30}}))]
    pub(crate) struct FunnelPatch {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The steps, 2 to 12.
        #[schema(value_type = Option<Vec<StepShape>>)]
        steps: Option<String> = with(steps_json),
        /// How long it may take from the first step to the last.
        #[schema(value_type = Option<ChainLengthShape>)]
        within: Option<String> = with(within_json),
        /// How steps follow each other: `loose`, `strict` or `any`.
        order: Option<String> = with(|fields, name| name_json::<StepOrder>(fields, name)),
        /// Who does the steps: `identity` or `account`.
        level: Option<String> = with(|fields, name| name_json::<EntityLevel>(fields, name)),
        /// The field by which rows are divided.
        breakdown: Option<String> = with(field_json),
        /// Only events for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Option<String> = with(people_json),
        /// Only events of this segment: its id.
        segment: Option<String> = with(text_json),
    }
}

fn steps_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(json) = fields.raw(name) else { return Ok(None) };
    steps::parse(json, name).map(|_| Some(json.to_owned()))
}

fn within_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    sent_json(fields, name, || steps::read_length(fields, name))
}

fn field_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    sent_json(fields, name, || {
        let text: String = fields.required(name, "a string")?;
        Field::parse_in_sessions(&text).map_err(|error| ApiError::parameter(name, format!("`{name}` {error}")))
    })
}

answer! {
    /// A funnel.
    pub(crate) struct KeptFunnelAnswer from |definition: &Definition| {
        /// Its id.
        funnel_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// The steps.
        #[schema(value_type = Vec<StepShape>)]
        steps: Box<RawValue> = list_field(definition, "steps"),
        /// How long it may take from the first step to the last; null: 7 days.
        #[schema(value_type = Option<ChainLengthShape>, required)]
        within: Box<RawValue> = field(definition, "within"),
        /// How steps follow each other; null: `loose`.
        #[schema(value_type = Option<String>, required)]
        order: Box<RawValue> = field(definition, "order"),
        /// Who does the steps; null: `identity`.
        #[schema(value_type = Option<String>, required)]
        level: Box<RawValue> = field(definition, "level"),
        /// The field by which rows are divided; null: none.
        #[schema(value_type = Option<String>, required)]
        breakdown: Box<RawValue> = field(definition, "breakdown"),
        /// The filters, all of which must hold.
        #[schema(value_type = Vec<FilterShape>)]
        filters: Box<RawValue> = list_field(definition, "filters"),
        /// The conditions on people, all of which must hold.
        #[schema(value_type = Vec<PeopleShape>)]
        people: Box<RawValue> = list_field(definition, "people"),
        /// The id of a segment; null: none.
        #[schema(value_type = Option<String>, required)]
        segment: Box<RawValue> = field(definition, "segment"),
        /// When it was made.
        created_at: Timestamp,
    }
}

/// The funnels of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FunnelsAnswer {
    /// The funnels, oldest first.
    funnels: Vec<KeptFunnelAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// The funnels of a project. Readers of shares see those whose fields they may name.
#[utoipa::path(
    get, path = "/projects/{project_id}/funnels", tag = "definitions", operation_id = "list_funnels",
    params(ProjectPath),
    responses((status = 200, description = "The funnels, oldest first.", body = FunnelsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut funnels = asker.list(|caller| definitions::all(&call, caller, KIND))?;
    // The id of a segment is all that one needs to ask for it.
    let segments = asker.list(|caller| definitions::all(&call, caller, DefinitionKind::Segment))?;
    let is_shown = |id: &str| id == "null" || segments.iter().any(|segment| quoted(&segment.id.to_string()) == id);
    funnels.retain(|funnel| funnel.fields.get("segment").is_none_or(|id| is_shown(id) || asker.sees_all()));
    let funnels = funnels.iter().map(|definition| KeptFunnelAnswer::from(&**definition)).collect();
    etag::json(&call.request, &FunnelsAnswer { funnels, truncated: false })
}

/// Keeps a funnel under a name. A project has at most 200.
#[utoipa::path(
    post, path = "/projects/{project_id}/funnels", tag = "definitions", operation_id = "create_funnel",
    params(ProjectPath), request_body = NewFunnel,
    responses((status = 201, description = "The funnel.", body = KeptFunnelAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let NewFunnel { name, steps, within, order, level, breakdown, filters, people, segment } =
        json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let steps = steps.ok_or_else(|| ApiError::missing("steps"))?;
    let fields = JsonFields::default().set("steps", Some(steps)).set("within", within).set("order", order).set("level", level);
    let fields = fields.set("breakdown", breakdown).set("filters", filters).set("people", people).set("segment", segment);
    let funnel = definitions::create(&state, &request, &caller, KIND, (name, fields)).await?;
    Ok(HttpResponse::Created().json(KeptFunnelAnswer::from(&*funnel)))
}

/// Changes a funnel.
#[utoipa::path(
    patch, path = "/projects/{project_id}/funnels/{funnel_id}", tag = "definitions", operation_id = "update_funnel",
    params(ProjectPath, FunnelPath), request_body = FunnelPatch,
    responses((status = 200, description = "The funnel as it is now.", body = KeptFunnelAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "funnel_id")?;
    let FunnelPatch { name, steps, within, order, level, breakdown, filters, people, segment } =
        json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let fields = JsonFields::default().set("steps", steps).set("within", within).set("order", order).set("level", level);
    let fields = fields.set("breakdown", breakdown).set("filters", filters).set("people", people).set("segment", segment);
    let funnel = definitions::change(&state, &request, &caller, id, (name, fields)).await?;
    Ok(HttpResponse::Ok().json(KeptFunnelAnswer::from(&*funnel)))
}

/// Removes a funnel.
#[utoipa::path(
    delete, path = "/projects/{project_id}/funnels/{funnel_id}", tag = "definitions", operation_id = "delete_funnel",
    params(ProjectPath, FunnelPath),
    responses((status = 204, description = "The funnel is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    definitions::remove(call, &caller, KIND, "funnel_id").await
}
