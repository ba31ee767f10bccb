//! The steps of a funnel, and how they follow each other.

use headcount_domain::figures::{ChainLength, MAX_CHAIN_DAYS, MAX_STEPS};
use headcount_domain::filter::MAX_PATTERN_BYTES;
use headcount_domain::intake::submission::MAX_NAME_CHARS;
use headcount_domain::{Clause, Filter, Predicate};
use serde_json::value::RawValue;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};

use crate::extract::filters::{self, FilterShape, reference};
use crate::extract::json::Fields;
use crate::extract::share_rules::{NamedField, named_by_filters};
use crate::openapi::own_schema;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

const PARTS: &[&str] = &["name", "event_name", "page", "goal", "filters"];
/// The units of a length, each in milliseconds.
const UNITS: [(&str, i64); 3] = [("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)];
const SESSION: &str = "session";
/// The maximum length of the name of a step, in characters.
const MAX_STEP_NAME_CHARS: usize = 200;

/// A step as it was sent: it may name a goal.
#[derive(Debug, Clone)]
pub struct SentStep {
    pub(crate) name: Option<String>,
    pub(crate) events: StepEvents,
    pub(crate) filters: Vec<Clause>,
}

/// The events that fit a step.
#[derive(Debug, Clone)]
pub(crate) enum StepEvents {
    /// Those of a name.
    Named(String),
    /// Pageviews of pages that match a pattern.
    Page(String),
    /// Those that fit a goal: its id.
    Goal(String),
}

/// The schema of a step.
#[derive(Debug)]
pub struct StepShape;

own_schema!(StepShape, {
    let text = |description: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(description)).min_length(Some(1));
    ObjectBuilder::new()
        .description(Some("A step. It has one of `event_name`, `page` and `goal`."))
        .property("name", text("Its name in the answer. Default: the name of its event, page or goal.").max_length(Some(MAX_STEP_NAME_CHARS)))
        .property("event_name", text("Events of this name fit.").max_length(Some(MAX_NAME_CHARS)))
        .property("page", text("Pageviews whose `path` matches this pattern fit.").max_length(Some(MAX_PATTERN_BYTES)))
        .property("goal", text("Events that fit this goal fit: its id."))
        .property(
            "filters",
            ArrayBuilder::new().items(reference::<FilterShape>()).description(Some("Only events for which all of these hold; at most 20.")),
        )
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .into()
}, refers to FilterShape);

/// The schema of a length.
#[derive(Debug)]
pub struct ChainLengthShape;

own_schema!(ChainLengthShape, {
    let length = |(unit, ms): (&'static str, i64)| {
        let most = ChainLength::MAX_MS / ms;
        let count =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(u32::try_from(most).ok().map(f64::from));
        ObjectBuilder::new()
            .property(unit, count)
            .required(unit)
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
    };
    let session = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([SESSION]));
    UNITS.into_iter().fold(OneOfBuilder::new().item(session), |shape, unit| shape.item(length(unit))).into()
});

/// Reads a list of steps.
pub fn read(fields: &Fields<'_>, name: &str) -> Result<Vec<SentStep>> {
    parse(fields.raw(name).ok_or_else(|| ApiError::missing(name))?, name)
}

/// Parses a list of steps.
pub fn parse(json: &str, name: &str) -> Result<Vec<SentStep>> {
    let expected = || ApiError::parameter(name, format!("`{name}` must be a list of 2 to {MAX_STEPS} steps"));
    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| expected())?;
    if !(2..=MAX_STEPS).contains(&items.len()) {
        return Err(expected());
    }
    let one = |(index, item): (usize, &RawValue)| {
        let place = format!("{name}[{index}]");
        read_one(&Fields::read_item(item, &place, PARTS)?).map_err(|error| error.within(&place))
    };
    items.into_iter().enumerate().map(one).collect()
}

fn read_one(fields: &Fields<'_>) -> Result<SentStep> {
    let text = |name: &str| fields.optional::<String>(name, "a string");
    let name = text("name")?;
    if name.as_ref().is_some_and(|name| !(1..=MAX_STEP_NAME_CHARS).contains(&name.chars().count())) {
        return Err(ApiError::parameter("name", format!("`name` must have 1 to {MAX_STEP_NAME_CHARS} characters")));
    }
    let mut events = None;
    for (part, is) in
        [("event_name", StepEvents::Named as fn(String) -> StepEvents), ("page", StepEvents::Page), ("goal", StepEvents::Goal)]
    {
        let Some(text) = text(part)? else { continue };
        if events.replace(is(text)).is_some() {
            return Err(ApiError::parameter(part, "a step has one of `event_name`, `page` and `goal`"));
        }
    }
    let missing = || {
        let message = "one of `event_name`, `page` and `goal` is required";
        ApiError::new(ErrorCode::MissingParameter, message).with_param("event_name")
    };
    let events = events.ok_or_else(missing)?;
    events.predicate(Vec::new())?;
    Ok(SentStep { name, events, filters: fields.with("filters", filters::read_in_sessions)? })
}

impl StepEvents {
    /// Returns the predicate of the events, unless they are those of a goal.
    pub(crate) fn predicate(&self, mut filters: Vec<Clause>) -> Result<Predicate> {
        let event_name = match self {
            Self::Named(name) => Some(&**name),
            Self::Page(pattern) => {
                filters.extend(page_clauses(&serde_json::Value::from(&**pattern).to_string())?);
                None
            }
            Self::Goal(_) => None,
        };
        Ok(Predicate::new(event_name, filters)?)
    }
}

/// Returns the clauses of pageviews whose path matches a pattern, which is JSON.
pub(crate) fn page_clauses(pattern: &str) -> Result<[Clause; 2]> {
    let pageviews = filters::named(&headcount_domain::intake::event::PAGEVIEWS)?;
    let path = Filter::new("path", "matches", Some(pattern)).map_err(|error| ApiError::from(error).with_param("page"))?;
    Ok([pageviews, path.into()])
}

/// Reads how long a chain may take.
pub fn read_length(fields: &Fields<'_>, name: &str) -> Result<ChainLength> {
    let Some(json) = fields.raw(name) else { return Ok(ChainLength::DEFAULT) };
    if !json.starts_with('{') {
        let session = |text: &str| (text == SESSION).then_some(ChainLength::Session);
        return Ok(fields
            .parsed(name, "session or an object of minutes, hours or days", session)?
            .unwrap_or(ChainLength::DEFAULT));
    }
    let length = Fields::read(json.as_bytes(), &UNITS.map(|(unit, _)| unit)).map_err(|error| error.within(name))?;
    let mut given = UNITS.iter().filter(|(unit, _)| length.raw(unit).is_some());
    let wrong = |message: String| ApiError::parameter(name, message);
    let (Some((unit, ms)), None) = (given.next(), given.next()) else {
        return Err(wrong(format!("`{name}` must have one of minutes, hours and days")));
    };
    let count: i64 = length.required(unit, "an integer").map_err(|error| error.within(name))?;
    match count.checked_mul(*ms).filter(|length| (1..=ChainLength::MAX_MS).contains(length)) {
        Some(length) => Ok(ChainLength::Within(length)),
        None => Err(wrong(format!("`{name}` must be from 1 minute to {MAX_CHAIN_DAYS} days"))),
    }
}

/// Returns the fields that the filters of steps name.
pub fn named_by_steps(steps: &[SentStep]) -> Vec<NamedField> {
    let of_step = |(index, step): (usize, &SentStep)| {
        let named = named_by_filters(&step.filters).into_iter();
        named.map(move |(place, field)| (format!("steps[{index}].{place}"), field)).collect::<Vec<_>>()
    };
    steps.iter().enumerate().flat_map(of_step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let many = [r#"{"event_name":"a"}"#; MAX_STEPS + 1].join(",");
        for (json, code, param) in [
            ("{}", "invalid_parameter", "steps"),
            ("[]", "invalid_parameter", "steps"),
            (r#"["signup","order"]"#, "invalid_parameter", "steps[0]"),
            (r#"[{"event_name":"a"}]"#, "invalid_parameter", "steps"),
            (&*format!("[{many}]"), "invalid_parameter", "steps"),
            (r#"[{},{"event_name":"a"}]"#, "missing_parameter", "steps[0].event_name"),
            (r#"[{"event_name":"a","page":"/"},{"event_name":"a"}]"#, "invalid_parameter", "steps[0].page"),
            (r#"[{"event_name":"a"},{"page":"/","goal":"g"}]"#, "invalid_parameter", "steps[1].goal"),
            (r#"[{"event_name":""},{"event_name":"a"}]"#, "invalid_parameter", "steps[0].event_name"),
            (r#"[{"event_name":"a"},{"page":""}]"#, "invalid_parameter", "steps[1].page"),
            (r#"[{"event_name":"a","name":""},{"event_name":"a"}]"#, "invalid_parameter", "steps[0].name"),
            (r#"[{"event_name":"a","x":1},{"event_name":"a"}]"#, "unknown_parameter", "steps[0].x"),
            (r#"[{"event_name":"a","filters":[{}]},{"event_name":"a"}]"#, "missing_parameter", "steps[0].filters[0].field"),
        ] {
            let error = parse(json, "steps").expect_err(json);
            assert_eq!(error.code().as_str(), code, "{json}: {error:?}");
            assert!(format!("{error:?}").contains(&format!("param: Some({param:?})")), "{json}: {error:?}");
        }
        assert_eq!(parse(r#"[{"event_name":"a"},{"goal":"g"}]"#, "steps").map(|steps| steps.len()).ok(), Some(2));
    }

    #[test]
    fn lengths_have_one_unit_and_a_bound() {
        let read = |json: &str| {
            let body = format!(r#"{{"within":{json}}}"#);
            let fields = Fields::read(body.as_bytes(), &["within"]).unwrap();
            read_length(&fields, "within").ok()
        };
        let days = |days: i64| Some(ChainLength::Within(days * 86_400_000));
        for (json, expected) in [
            ("null", days(7)),
            (r#""session""#, Some(ChainLength::Session)),
            (r#"{"minutes":1}"#, Some(ChainLength::Within(60_000))),
            (r#"{"hours":24}"#, days(1)),
            (r#"{"days":90}"#, days(90)),
            (r#"{"days":91}"#, None),
            (r#"{"days":0}"#, None),
            (r#"{"days":9223372036854775807}"#, None),
            (r#"{"days":1,"hours":1}"#, None),
            (r#"{"weeks":1}"#, None),
            ("{}", None),
            (r#""day""#, None),
        ] {
            assert_eq!(read(json), expected, "{json}");
        }
    }
}
