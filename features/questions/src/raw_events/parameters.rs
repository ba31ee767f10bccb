//! The query parameters of lists and exports of events.

use headcount_api::endpoint::*;
use headcount_api::extract::filters;
use headcount_api::extract::query::{Parameter, QueryString};
use headcount_domain::{Position, Predicate};
use utoipa::openapi::Required;
use utoipa::openapi::path::Parameter as Documented;
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// The longest list of filters, in bytes.
const MAX_FILTERS_BYTES: usize = 16 << 10;
/// More than any cursor has.
const MAX_CURSOR_BYTES: usize = 256;

/// The parameters `start_date` and `end_date`, as they were sent.
#[derive(Debug, Clone)]
pub(crate) struct SentDates {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
}

/// The parameters `event_name` and `filters`.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// As they were sent.
    pub(crate) sent: [Option<String>; 2],
    pub(crate) predicate: Predicate,
}

/// The position after which events are wanted, if one was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterPosition(pub(crate) Option<Position>);

/// The cursor, if one was sent.
#[derive(Debug, Clone)]
pub(crate) struct SentCursor(pub(crate) Option<String>);

fn owned(query: &QueryString, name: &str) -> Option<String> {
    query.text(name).map(str::to_owned)
}

/// Reads the conditions on events: their name, and a JSON list of filters.
pub(crate) fn predicate(event_name: Option<&str>, filters_json: Option<&str>) -> Result<Predicate> {
    let filters = match filters_json {
        Some(json) if json.len() > MAX_FILTERS_BYTES => {
            let message = format!("`filters` has {} bytes; at most {MAX_FILTERS_BYTES} are allowed", json.len());
            return Err(ApiError::parameter("filters", message));
        }
        Some(json) => filters::parse(json, "filters")?,
        None => Vec::new(),
    };
    Ok(Predicate::new(event_name, filters)?)
}

impl Parameter for SentDates {
    const NAMES: &'static [&'static str] = &["start_date", "end_date"];

    fn read(query: &QueryString, _: &'static str, _: &Calendar) -> Result<Self> {
        Ok(Self { start: owned(query, "start_date"), end: owned(query, "end_date") })
    }

    fn document(_: &'static str, description: &str) -> Vec<Documented> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let start = format!("The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. {}", description.trim());
        vec![
            documented("start_date", &start, Required::False, text()),
            documented(
                "end_date",
                "The last day. Default: today, if `start_date` has a default or is given.",
                Required::False,
                text(),
            ),
        ]
    }
}

impl Parameter for Conditions {
    const NAMES: &'static [&'static str] = &["event_name", "filters"];

    fn read(query: &QueryString, _: &'static str, _: &Calendar) -> Result<Self> {
        let sent = [owned(query, "event_name"), owned(query, "filters")];
        let [event_name, json] = &sent;
        let predicate = predicate(event_name.as_deref(), json.as_deref())?;
        Ok(Self { sent, predicate })
    }

    fn document(_: &'static str, _: &str) -> Vec<Documented> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let filters = "The conditions on events, all of which must hold: a JSON list of at most 20 objects of `field`, `operator` and \
                       `value`, as in the body of `count-unique-users-per-day`, percent-encoded.";
        let filters_schema = text().max_length(Some(MAX_FILTERS_BYTES));
        let example = r#"[{"field":"browser","operator":"is","value":"Firefox"}]"#;
        vec![
            documented(
                "event_name",
                "Only events of this name.",
                Required::False,
                text().min_length(Some(1)).max_length(Some(100)),
            ),
            documented("filters", filters, Required::False, filters_schema.examples([example])),
        ]
    }
}

impl Parameter for AfterPosition {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let Some(text) = query.text(name) else { return Ok(Self(None)) };
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let position = text.parse().ok().filter(|position: &Position| is_digits && i64::try_from(*position).is_ok());
        let wrong = || ApiError::parameter(name, format!("`{name}` must be a position: an integer from 0 on"));
        position.map(|position| Self(Some(position))).ok_or_else(wrong)
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        vec![documented(name, description, Required::False, schema)]
    }
}

impl Parameter for SentCursor {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        Ok(Self(owned(query, name)))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::String).max_length(Some(MAX_CURSOR_BYTES));
        vec![documented(name, description, Required::False, schema)]
    }
}
