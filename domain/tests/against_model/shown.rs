//! What answers consist of.

use headcount_model::Json;

/// Why there is no 200: a status of 400 or 404.
pub(super) struct Refused(pub(super) u16);

pub(super) fn text(value: &impl ToString) -> Json {
    Json::from(value.to_string().as_str())
}

pub(super) fn number(number: impl ToString) -> Json {
    Json::parse(&number.to_string()).unwrap()
}
