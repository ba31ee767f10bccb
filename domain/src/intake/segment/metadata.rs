//! The metadata of a message: its properties or traits as sent, except a few keys.

use std::borrow::Cow;

use super::values::JsonField;
use crate::intake::json_fields::JsonFields;

/// The key of a group's own e-mail address. `email` would be the user's.
const GROUP_EMAIL: &str = "group_email";

/// Prepends fields to properties. Properties that are not an object stay unchanged.
pub(super) fn with_fields<'a>(properties: JsonField<'a>, further: &[(&str, JsonField<'a>)]) -> Option<Cow<'a, str>> {
    let further: Vec<String> = further.iter().filter_map(|(name, field)| Some(format!("\"{name}\":{}", (*field)?))).collect();
    let inner = properties.unwrap_or("{}").strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inner {
        Some(inner) if !further.is_empty() => {
            let separator = if inner.trim().is_empty() { "" } else { "," };
            Some(format!("{{{}{separator}{inner}}}", further.join(",")).into())
        }
        _ => properties.map(Cow::Borrowed),
    }
}

/// Renames the e-mail address in a group's traits, which would otherwise be taken for the user's.
pub(super) fn of_group<'a>(traits: JsonField<'a>) -> Option<Cow<'a, str>> {
    let json = traits?;
    let fields = JsonFields::read(json).ok().filter(|fields| fields.0.iter().any(|(name, _)| name == "email"));
    let Some(JsonFields(fields)) = fields else { return Some(json.into()) };
    let renamed = |(name, value): (Cow<'_, str>, &str)| {
        let name = if name == "email" { GROUP_EMAIL } else { &*name };
        format!("{}:{value}", serde_json::Value::from(name))
    };
    Some(format!("{{{}}}", fields.into_iter().map(renamed).collect::<Vec<_>>().join(",")).into())
}
