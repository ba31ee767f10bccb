//! The values of a message's fields.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::intake::submission::{Invalid, Text};
use crate::time::Instant;

/// The JSON of a field, if it is present.
pub(super) type JsonField<'a> = Option<&'a RawValue>;

/// Returns the text of a string or a number; `None` of anything else, and if it is empty.
pub(super) fn text<'a>(field: JsonField<'a>) -> Option<Cow<'a, str>> {
    let json = field?.get();
    let text = match json.bytes().next()? {
        b'"' => serde_json::from_str::<Text<'a>>(json).ok()?.0,
        b'-' | b'0'..=b'9' => Cow::Borrowed(json),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the text of an id, which is a string or a number.
///
/// # Errors
/// It is anything else.
pub(super) fn id<'a>(field: JsonField<'a>, name: &str) -> Result<Option<Cow<'a, str>>, Invalid> {
    let found = text(field);
    match field.map(RawValue::get) {
        Some(json) if found.is_none() && json != "\"\"" => {
            Err(Invalid::parameter(name, format!("`{name}` must be a string or a number")))
        }
        _ => Ok(found),
    }
}

/// Returns an instant: RFC 3339, or milliseconds since 1970.
pub(super) fn instant(field: JsonField<'_>) -> Option<Instant> {
    let json = field?.get();
    if json.starts_with('"') { Instant::parse_rfc3339(&text(field)?) } else { Instant::parse_epoch_ms(json) }
}

/// Whether a field is the empty string, which is as if absent.
pub(super) fn is_empty(field: JsonField<'_>) -> bool {
    field.is_some_and(|raw| raw.get() == "\"\"")
}
