//! The conditions on people of a question: what else they did, or did not.

use headcount_domain::filter::{MAX_AT_LEAST, MAX_PEOPLE, MAX_WITHIN_DAYS, PeopleCondition, Within};
use headcount_domain::intake::submission::MAX_NAME_CHARS;
use headcount_domain::{Clause, Predicate};
use serde_json::value::RawValue;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};

use crate::extract::filters::{self, FilterShape, reference};
use crate::extract::json::Fields;
use crate::extract::share_rules::{NamedField, named_by_filters};
use crate::openapi::own_schema;
use crate::respond::error::{ApiError, Result};

const PARTS: &[&str] = &["did", "did_not", "at_least", "within"];
const EVENT_PARTS: &[&str] = &["event_name", "filters", "goal"];

/// A condition as it was sent: it may name a goal.
#[derive(Debug, Clone)]
pub struct SentCondition {
    event_name: Option<String>,
    filters: Vec<Clause>,
    /// The id of a goal.
    pub(crate) goal: Option<String>,
    at_least: u32,
    is_negated: bool,
    within: Within,
}

/// The schema of one condition. It is read part by part, so that an error can name the part.
#[derive(Debug)]
pub struct PeopleShape;

own_schema!(PeopleShape, {
    let closed = || Some(AdditionalProperties::<Schema>::FreeForm(false));
    let integer = |most: u32| ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(f64::from(most)));
    let text = |description: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    let events = |description: &str| {
        ObjectBuilder::new()
            .description(Some(description))
            .property("event_name", text("Only events of this name.").max_length(Some(MAX_NAME_CHARS)))
            .property(
                "filters",
                ArrayBuilder::new().items(reference::<FilterShape>()).description(Some("Only events for which all of these hold.")),
            )
            .property("goal", text("Only events that fit this goal: its id."))
            .additional_properties(closed())
    };
    let days =
        ObjectBuilder::new().property("days", integer(MAX_WITHIN_DAYS.into())).required("days").additional_properties(closed());
    let named = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["window", "ever"]));
    ObjectBuilder::new()
        .description(Some("A condition on the people of events, who are looked at in the whole project. It has `did` or `did_not`."))
        .property("did", events("They have at least so many of these events."))
        .property("did_not", events("They have fewer of these events."))
        .property("at_least", integer(MAX_AT_LEAST).description(Some("How many events are enough. Default: 1.")))
        .property("within", OneOfBuilder::new().item(named).item(days).description(Some(
            "The days of these events: those of the question's window (the default), all that are kept, or so many up to the window's last day.",
        )))
        .additional_properties(closed())
        .into()
}, refers to FilterShape);

/// Reads a list of conditions.
pub fn read(fields: &Fields<'_>, name: &str) -> Result<Vec<SentCondition>> {
    fields.raw(name).map_or(Ok(Vec::new()), |json| parse(json, name))
}

/// Parses a list of conditions.
pub fn parse(json: &str, name: &str) -> Result<Vec<SentCondition>> {
    let expected = || ApiError::parameter(name, format!("`{name}` must be a list of at most {MAX_PEOPLE} conditions"));
    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| expected())?;
    if items.len() > MAX_PEOPLE {
        return Err(expected());
    }
    let one = |(index, item): (usize, &RawValue)| {
        let place = format!("{name}[{index}]");
        read_one(&Fields::read_item(item, &place, PARTS)?).map_err(|error| error.within(&place))
    };
    items.into_iter().enumerate().map(one).collect()
}

fn read_one(fields: &Fields<'_>) -> Result<SentCondition> {
    let (part, is_negated, events) = match (fields.raw("did"), fields.raw("did_not")) {
        (Some(events), None) => ("did", false, events),
        (None, Some(events)) => ("did_not", true, events),
        (None, None) => return Err(ApiError::missing_one_of("did", "did_not")),
        (Some(_), Some(_)) => return Err(ApiError::parameter("did_not", "a condition has `did` or `did_not`, not both")),
    };
    let events = Fields::read(events.as_bytes(), EVENT_PARTS).map_err(|error| error.within(part))?;
    let in_part = |error: ApiError| error.within(part);
    let event_name: Option<String> = events.optional("event_name", "a string").map_err(in_part)?;
    let filters = events.with("filters", filters::read_in_sessions).map_err(in_part)?;
    Predicate::new(event_name.as_deref(), Vec::new()).map_err(|error| in_part(error.into()))?;
    let goal = events.optional("goal", "a string").map_err(in_part)?;
    let at_least = bounded(fields, "at_least", MAX_AT_LEAST)?.unwrap_or(1);
    Ok(SentCondition { event_name, filters, goal, at_least, is_negated, within: read_within(fields)? })
}

fn bounded(fields: &Fields<'_>, name: &str, most: u32) -> Result<Option<u32>> {
    let expected = format!("an integer from 1 to {most}");
    let number: Option<u32> = fields.optional(name, &expected)?;
    match number.filter(|number| !(1..=most).contains(number)) {
        None => Ok(number),
        Some(number) => Err(ApiError::parameter(name, format!("`{name}` must be {expected}, not {number}"))),
    }
}

fn read_within(fields: &Fields<'_>) -> Result<Within> {
    let Some(json) = fields.raw("within") else { return Ok(Within::default()) };
    if json.starts_with('{') {
        let within = Fields::read(json.as_bytes(), &["days"]).map_err(|error| error.within("within"))?;
        let days =
            bounded(&within, "days", MAX_WITHIN_DAYS.into()).and_then(|days| days.ok_or_else(|| ApiError::missing("days")));
        let days = days.map_err(|error| error.within("within"))?;
        return Ok(Within::Days(u16::try_from(days).unwrap_or(MAX_WITHIN_DAYS)));
    }
    let known = |text: &str| match text {
        "window" => Some(Within::Window),
        "ever" => Some(Within::Ever),
        _ => None,
    };
    Ok(fields.parsed("within", "window, ever or an object of days", known)?.unwrap_or_default())
}

/// Returns the fields that conditions name.
pub fn named_by_people(people: &[SentCondition]) -> Vec<NamedField> {
    let of_condition = |(index, condition): (usize, &SentCondition)| {
        let part = condition.part();
        let named = named_by_filters(&condition.filters).into_iter();
        named.map(move |(place, field)| (format!("people[{index}].{part}.{place}"), field)).collect::<Vec<_>>()
    };
    people.iter().enumerate().flat_map(of_condition).collect()
}

impl SentCondition {
    /// The parameter of its goal, if it is the condition at this place.
    pub(crate) fn param_of_goal(&self, place: usize) -> String {
        format!("people[{place}].{}.goal", self.part())
    }

    fn part(&self) -> &'static str {
        if self.is_negated { "did_not" } else { "did" }
    }

    /// Returns the condition. Its events fit `goal`, too, if it names one.
    pub(crate) fn resolved(self, goal: Option<(Option<String>, Vec<Clause>)>) -> Result<PeopleCondition> {
        let Self { mut event_name, mut filters, goal: _, at_least, is_negated, within } = self;
        if let Some((name, clauses)) = goal {
            filters.extend(clauses);
            if let Some(name) = name {
                match &event_name {
                    Some(own) if *own != name => filters.push(filters::named(&[&name])?),
                    _ => event_name = Some(name),
                }
            }
        }
        Ok(PeopleCondition { predicate: Predicate::new(event_name.as_deref(), filters)?, at_least, is_negated, within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let many = [r#"{"did":{}}"#; MAX_PEOPLE + 1].join(",");
        for (json, code, param) in [
            ("{}", "invalid_parameter", "people"),
            (&*format!("[{many}]"), "invalid_parameter", "people"),
            ("[5]", "invalid_parameter", "people[0]"),
            ("[{}]", "missing_parameter", "people[0].did"),
            (r#"[{"did":{},"did_not":{}}]"#, "invalid_parameter", "people[0].did_not"),
            (r#"[{"did":{"name":"a"}}]"#, "unknown_parameter", "people[0].did.name"),
            (r#"[{"did":{}},{"did_not":{"event_name":""}}]"#, "invalid_parameter", "people[1].did_not.event_name"),
            (r#"[{"did":{"filters":[{"field":"x"}]}}]"#, "missing_parameter", "people[0].did.filters[0].operator"),
            (r#"[{"did":{},"at_least":0}]"#, "invalid_parameter", "people[0].at_least"),
            (r#"[{"did":{},"at_least":1001}]"#, "invalid_parameter", "people[0].at_least"),
            (r#"[{"did":{},"within":"always"}]"#, "invalid_parameter", "people[0].within"),
            (r#"[{"did":{},"within":{}}]"#, "missing_parameter", "people[0].within.days"),
            (r#"[{"did":{},"within":{"days":366}}]"#, "invalid_parameter", "people[0].within.days"),
        ] {
            let error = parse(json, "people").expect_err(json);
            assert_eq!(error.code().as_str(), code, "{json}: {error:?}");
            assert!(format!("{error:?}").contains(&format!("param: Some({param:?})")), "{json}: {error:?}");
        }
        let read =
            parse(r#"[{"did_not":{"event_name":"a","goal":"g"},"at_least":3,"within":{"days":9}}]"#, "people").expect("valid");
        assert_eq!((read[0].at_least, read[0].is_negated, read[0].within), (3, true, Within::Days(9)));
    }
}
