//! The frame of the endpoints of definitions: lists, changes and removals of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_control::{Definition, DefinitionId, DefinitionKind, DefinitionPatch, DefinitionPlace};
use headcount_domain::NamedValues;
use serde_json::value::RawValue;

use crate::endpoint::*;
use crate::extract::{filters, people};
use crate::management;

/// A caller who asks for definitions, and their place.
pub trait OfPlace {
    /// The place.
    fn place(&self) -> DefinitionPlace;
    /// The caller.
    fn caller(&self) -> &Caller;
}

impl OfPlace for ProjectCaller {
    fn place(&self) -> DefinitionPlace {
        (self.caller.organization(), Some(self.project))
    }

    fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl OfPlace for Caller {
    fn place(&self) -> DefinitionPlace {
        (self.organization(), None)
    }

    fn caller(&self) -> &Caller {
        self
    }
}

/// The JSON of some fields of a body, by name. Absent fields are left out.
#[derive(Debug, Default)]
pub struct JsonFields(BTreeMap<String, String>);

impl JsonFields {
    /// Adds a field, if it is present.
    pub fn set(mut self, name: &str, json: Option<String>) -> Self {
        self.0.extend(json.map(|json| (name.to_owned(), json)));
        self
    }
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a field of a definition for an answer; null if it is absent.
pub fn field(definition: &Definition, name: &str) -> Box<RawValue> {
    let json = definition.fields.get(name).cloned();
    json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// Returns a list of a definition for an answer; empty if it is absent.
pub fn list_field(definition: &Definition, name: &str) -> Box<RawValue> {
    let json = definition.fields.get(name).cloned().unwrap_or_else(|| "[]".to_owned());
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the definitions of a kind, oldest first.
///
/// # Errors
/// 404 if the project was deleted meanwhile, 400 with parameters.
pub fn all(
    ApiCall { state, request, .. }: &ApiCall,
    caller: &impl OfPlace,
    kind: DefinitionKind,
) -> Result<Vec<Arc<Definition>>> {
    NoParameters::check(request)?;
    Ok(state.engine.registry().definitions(caller.place(), kind)?)
}

/// Creates a definition.
///
/// # Errors
/// The errors of [`headcount_control::Registry::create_definition`].
pub async fn create(
    state: &AppState,
    request: &HttpRequest,
    caller: &impl OfPlace,
    kind: DefinitionKind,
    (name, JsonFields(fields)): (String, JsonFields),
) -> Result<Arc<Definition>> {
    let (place, author) = (caller.place(), caller.caller().author(state, request));
    management::change(state, author, move |registry, by| registry.create_definition(place, kind, (name, fields), by)).await
}

/// Changes a definition, or returns it as it is if nothing differs.
///
/// # Errors
/// The errors of [`headcount_control::Registry::change_definition`].
pub async fn change(
    state: &AppState,
    request: &HttpRequest,
    caller: &impl OfPlace,
    id: DefinitionId,
    (name, JsonFields(fields)): (Option<String>, JsonFields),
) -> Result<Arc<Definition>> {
    let (place, author) = (caller.place(), caller.caller().author(state, request));
    let patch = DefinitionPatch { name, fields };
    management::change(state, author, move |registry, by| registry.change_definition(place, &id, &patch, by)).await
}

/// Removes a definition.
///
/// # Errors
/// 404 without such a definition.
pub async fn remove(
    ApiCall { state, request, .. }: ApiCall,
    caller: &impl OfPlace,
    kind: DefinitionKind,
    parameter: &str,
) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = id_of(&request, kind, parameter)?;
    let (place, author) = (caller.place(), caller.caller().author(&state, &request));
    management::change(&state, author, move |registry, by| registry.remove_definition(place, &id, by)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Returns the id in the path. An id of another kind is the id of nothing.
///
/// # Errors
/// 404.
pub fn id_of(request: &HttpRequest, kind: DefinitionKind, parameter: &str) -> Result<DefinitionId> {
    let id: DefinitionId = id_in_path(request, parameter, kind.as_str())?;
    if id.kind() == kind { Ok(id) } else { Err(ApiError::not_found(kind.as_str())) }
}

/// Reads the JSON of a field that was sent, null included, so that a change can take a value away.
pub fn sent_json<T>(fields: &Fields<'_>, name: &str, check: impl FnOnce() -> Result<T>) -> Result<Option<String>> {
    match fields.raw(name) {
        Some(json) => check().map(|_| Some(json.to_owned())),
        None => Ok(fields.has(name).then(|| "null".to_owned())),
    }
}

/// Reads the JSON of a list of filters.
pub fn filters_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(json) = fields.raw(name) else { return Ok(None) };
    filters::read_in_sessions(fields, name)?;
    Ok(Some(json.to_owned()))
}

/// Reads the JSON of a list of conditions on people.
pub fn people_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    people::read(fields, name)?;
    Ok(fields.raw(name).map(str::to_owned))
}

/// Reads the JSON of the name of one of a list.
pub fn name_json<T: NamedValues>(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    sent_json(fields, name, || fields.optional_name::<T>(name))
}

/// Reads the JSON of a text.
pub fn text_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    sent_json(fields, name, || fields.optional::<String>(name, "a string"))
}
