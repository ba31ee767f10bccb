//! The values of a message's fields.

use std::borrow::Cow;

use crate::intake::json_fields::text_of;

/// The JSON of a field that is present and not null.
pub(super) type JsonField<'a> = Option<&'a str>;

/// Returns the text of a string or a number; `None` for other types and for empty text.
pub(super) fn text<'a>(field: JsonField<'a>) -> Option<Cow<'a, str>> {
    text_of(field?).filter(|text| !text.is_empty())
}

/// Returns a field unless it is the empty string, which counts as absent.
pub(super) fn given<'a>(field: JsonField<'a>) -> JsonField<'a> {
    field.filter(|json| *json != "\"\"")
}
