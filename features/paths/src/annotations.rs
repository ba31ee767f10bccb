//! `/projects/{project_id}/annotations`: texts about days, which charts show.

use headcount_api::definitions::{self, JsonFields, field, quoted};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_control::{Definition, DefinitionKind, Registry};
use headcount_domain::Day;
use serde_json::value::RawValue;

use crate::definitions::AnnotationPath;

const KIND: DefinitionKind = DefinitionKind::Annotation;

json_body! {
    /// An annotation to be made.
    #[schema(example = json!({"day": "2024-03-01", "text": "New prices"}))]
    pub(crate) struct NewAnnotation {
        /// The day, `YYYY-MM-DD`.
        #[schema(value_type = String, format = Date)]
        day: Option<String> = with(day_json),
        /// The text.
        #[schema(min_length = 1, max_length = 200)]
        text: String = required("a string"),
    }
}

json_body! {
    /// A change of an annotation: absent fields stay unchanged.
    #[schema(example = json!({"text": "New prices in Europe"}))]
    pub(crate) struct AnnotationPatch {
        /// The day, `YYYY-MM-DD`.
        #[schema(value_type = Option<String>, format = Date)]
        day: Option<String> = with(day_json),
        /// The text.
        #[schema(min_length = 1, max_length = 200)]
        text: Option<String> = optional("a string"),
    }
}

answer! {
    /// An annotation.
    pub(crate) struct AnnotationAnswer from |definition: &Definition, registry: &Registry| {
        /// Its id.
        annotation_id: String = definition.id.to_string(),
        /// The day, `YYYY-MM-DD`.
        #[schema(value_type = String, format = Date)]
        day: Box<RawValue> = field(definition, "day"),
        /// The text.
        text: String = definition.name.clone(),
        /// The name of the member who made it, or of the token; null if there is none, or none any more.
        #[schema(required)]
        author: Option<String> = author(definition, registry),
        /// When it was made.
        created_at: Timestamp = definition.created_at.into(),
    }
}

/// The annotations of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnnotationsAnswer {
    /// The annotations, in the order of their days.
    annotations: Vec<AnnotationAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

fn day_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let day = fields.parsed(name, "a day such as 2024-03-01", |text| Day::parse(text).map(|_| quoted(text)))?;
    Ok(day)
}

/// The text is the name of the definition, and the only part that the registry checks.
fn about_text(error: ApiError) -> ApiError {
    if error.code() == ErrorCode::InvalidParameter { error.with_param("text") } else { error }
}

/// The one who made an annotation, as people know them.
fn author(definition: &Definition, registry: &Registry) -> Option<String> {
    let organization = definition.organization;
    if let Some(member) = &definition.created_by.member_id {
        let member = registry.member(organization, member).ok()?;
        return member.name.clone();
    }
    let token = definition.created_by.token_id.as_ref()?;
    let tokens = registry.tokens(organization).ok()?;
    tokens.iter().find(|known| known.token_id == *token).map(|token| token.name.clone())
}

/// The annotations of a project.
#[utoipa::path(
    get, path = "/projects/{project_id}/annotations", tag = "definitions", operation_id = "list_annotations",
    params(ProjectPath),
    responses((status = 200, description = "The annotations, in the order of their days.", body = AnnotationsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let mut definitions = definitions::all(&call, &caller, KIND)?;
    definitions.sort_by(|a, b| a.fields.get("day").cmp(&b.fields.get("day")));
    let registry = call.state.engine.registry();
    let annotations = definitions.iter().map(|definition| AnnotationAnswer::new(definition, registry)).collect();
    etag::json(&call.request, &AnnotationsAnswer { annotations, truncated: false })
}

/// Makes an annotation: a text about a day, which charts show. A project has at most 200.
#[utoipa::path(
    post, path = "/projects/{project_id}/annotations", tag = "definitions", operation_id = "create_annotation",
    params(ProjectPath), request_body = NewAnnotation,
    responses((status = 201, description = "The annotation.", body = AnnotationAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let NewAnnotation { day, text } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let day = day.ok_or_else(|| ApiError::missing("day"))?;
    let new = (text, JsonFields::default().set("day", Some(day)));
    let annotation = definitions::create(&state, &request, &caller, KIND, new).await.map_err(about_text)?;
    Ok(HttpResponse::Created().json(AnnotationAnswer::new(&annotation, state.engine.registry())))
}

/// Changes an annotation.
#[utoipa::path(
    patch, path = "/projects/{project_id}/annotations/{annotation_id}", tag = "definitions", operation_id = "update_annotation",
    params(ProjectPath, AnnotationPath), request_body = AnnotationPatch,
    responses((status = 200, description = "The annotation as it is now.", body = AnnotationAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "annotation_id")?;
    let AnnotationPatch { day, text } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let patch = (text, JsonFields::default().set("day", day));
    let annotation = definitions::change(&state, &request, &caller, id, patch).await.map_err(about_text)?;
    Ok(HttpResponse::Ok().json(AnnotationAnswer::new(&annotation, state.engine.registry())))
}

/// Removes an annotation.
#[utoipa::path(
    delete, path = "/projects/{project_id}/annotations/{annotation_id}", tag = "definitions", operation_id = "delete_annotation",
    params(ProjectPath, AnnotationPath),
    responses((status = 204, description = "The annotation is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    definitions::remove(call, &caller, KIND, "annotation_id").await
}
