//! The metadata of a message: its properties or traits, as they were sent, but for a few keys.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::values::JsonField;
use crate::intake::submission::Invalid;

/// The key of a group's own e-mail address. `email` is that of the user.
const GROUP_EMAIL: &str = "group_email";

/// Returns the properties with further fields before them. Properties that are no object stay as they are.
pub(super) fn with_fields<'a>(properties: JsonField<'a>, further: &[(&str, JsonField<'a>)]) -> Option<Cow<'a, str>> {
    let json = properties.map(|raw| raw.get());
    let further: Vec<String> =
        further.iter().filter_map(|(name, field)| Some(format!("\"{name}\":{}", (*field)?.get()))).collect();
    let inner = json.unwrap_or("{}").strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inner {
        Some(inner) if !further.is_empty() => {
            let separator = if inner.trim().is_empty() { "" } else { "," };
            Some(format!("{{{}{separator}{inner}}}", further.join(",")).into())
        }
        _ => json.map(Cow::Borrowed),
    }
}

/// Returns the traits of a group with another name for its e-mail address, which would be taken for the user's.
///
/// # Errors
/// They are not JSON that can be read.
pub(super) fn of_group<'a>(traits: JsonField<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    let Some(json) = traits.map(|raw| raw.get()) else { return Ok(None) };
    if !json.starts_with('{') {
        return Ok(Some(json.into()));
    }
    let wrong = |error: serde_json::Error| Invalid::parameter("traits", format!("`traits` can't be read: {error}"));
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).map_err(wrong)?;
    let Some(email) = fields.remove("email") else { return Ok(Some(json.into())) };
    fields.insert(GROUP_EMAIL.to_owned(), email);
    Ok(Some(serde_json::to_string(&fields).map_err(wrong)?.into()))
}
