//! The frame of the endpoints of definitions: lists, changes and removals of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_api::endpoint::*;
use headcount_api::extract::path::path_parameters;
use headcount_api::extract::{filters, people};
use headcount_api::management;
use headcount_control::{Definition, DefinitionId, DefinitionKind, DefinitionPatch};
use headcount_domain::Filter;
use serde_json::value::RawValue;

path_parameters! {
    SegmentPath "segment_id" "^segment_[0-9A-Za-z]{16}$" "The segment's id.";
    GoalPath "goal_id" "^goal_[0-9A-Za-z]{16}$" "The goal's id.";
    FunnelPath "funnel_id" "^funnel_[0-9A-Za-z]{16}$" "The funnel's id.";
    AnnotationPath "annotation_id" "^annotation_[0-9A-Za-z]{16}$" "The annotation's id.";
}

/// The JSON of some fields of a body, by name. Absent fields are left out.
#[derive(Debug, Default)]
pub(crate) struct JsonFields(BTreeMap<String, String>);

impl JsonFields {
    /// Adds a field, if it is present.
    pub(crate) fn set(mut self, name: &str, json: Option<String>) -> Self {
        self.0.extend(json.map(|json| (name.to_owned(), json)));
        self
    }
}

/// Reads the JSON of a list of filters.
pub(crate) fn filters_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(json) = fields.raw(name) else { return Ok(None) };
    filters::read_in_sessions(fields, name)?;
    Ok(Some(json.to_owned()))
}

/// Reads the JSON of a list of conditions on people.
pub(crate) fn people_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    people::read(fields, name)?;
    Ok(fields.raw(name).map(str::to_owned))
}

/// Reads the JSON of the name of an event.
pub(crate) fn event_name_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    filters::predicate(Some(&text), Vec::new())?;
    Ok(Some(quoted(&text)))
}

/// Reads the JSON of a pattern of paths.
pub(crate) fn page_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    let json = quoted(&text);
    Filter::new("path", "matches", Some(&json)).map_err(|error| ApiError::from(error).with_param(name))?;
    Ok(Some(json))
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a field of a definition for an answer; null if it is absent.
pub(crate) fn field(definition: &Definition, name: &str) -> Box<RawValue> {
    let json = definition.fields.get(name).cloned();
    json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// Returns a list of a definition for an answer; empty if it is absent.
pub(crate) fn list_field(definition: &Definition, name: &str) -> Box<RawValue> {
    let json = definition.fields.get(name).cloned().unwrap_or_else(|| "[]".to_owned());
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the definitions of a kind, oldest first.
pub(crate) fn all(
    ApiCall { state, request, .. }: &ApiCall,
    caller: &ProjectCaller,
    kind: DefinitionKind,
) -> Result<Vec<Arc<Definition>>> {
    let (organization, project, _) = management::of_project(state, request, caller)?;
    Ok(state.engine.registry().definitions(organization, project, kind)?)
}

/// Creates a definition.
pub(crate) async fn create(
    state: &AppState,
    request: &HttpRequest,
    caller: &ProjectCaller,
    kind: DefinitionKind,
    (name, JsonFields(fields)): (String, JsonFields),
) -> Result<Arc<Definition>> {
    let place = (caller.caller.organization(), caller.project);
    let author = caller.caller.author(state, request);
    management::change(state, author, move |registry, by| registry.create_definition(place, kind, (name, fields), by)).await
}

/// Changes a definition, or returns it as it is if nothing differs.
pub(crate) async fn change(
    state: &AppState,
    request: &HttpRequest,
    caller: &ProjectCaller,
    id: DefinitionId,
    (name, JsonFields(fields)): (Option<String>, JsonFields),
) -> Result<Arc<Definition>> {
    let place = (caller.caller.organization(), caller.project);
    let author = caller.caller.author(state, request);
    let patch = DefinitionPatch { name, fields };
    management::change(state, author, move |registry, by| registry.change_definition(place, &id, &patch, by)).await
}

/// Removes a definition.
pub(crate) async fn remove(
    ApiCall { state, request, .. }: ApiCall,
    caller: &ProjectCaller,
    kind: DefinitionKind,
    parameter: &str,
) -> Result<HttpResponse> {
    let (organization, project, author) = management::of_project(&state, &request, caller)?;
    let id = id_of(&request, kind, parameter)?;
    management::change(&state, author, move |registry, by| registry.remove_definition((organization, project), &id, by)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Returns the id in the path. An id of another kind is the id of nothing.
pub(crate) fn id_of(request: &HttpRequest, kind: DefinitionKind, parameter: &str) -> Result<DefinitionId> {
    let id: DefinitionId = id_in_path(request, parameter, kind.as_str())?;
    if id.kind() == kind { Ok(id) } else { Err(ApiError::not_found(kind.as_str())) }
}
