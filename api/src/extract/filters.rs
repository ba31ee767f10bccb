//! The filters of a question, read so that an error names the part that is wrong.

use std::cell::Cell;
use std::collections::BTreeMap;

use headcount_domain::filter::MAX_LISTS;
use headcount_domain::intake::submission::Invalid;
use headcount_domain::{Clause, Filter, MAX_FILTERS, MAX_VALUES, NamedValues, Operator, Predicate};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::extract::json::Fields;
use crate::openapi::own_schema;
use crate::respond::error::{ApiError, Result};

const PARTS: &[&str] = &["field", "operator", "value", "any"];
/// The parts of a filter in a list of alternatives.
const FILTER_PARTS: &[&str] = &["field", "operator", "value"];

/// The schema of an element of `filters`. Filters are read part by part, so that an error can name the part.
#[derive(Debug)]
pub struct FilterShape;

own_schema!(
    FilterShape,
    OneOfBuilder::new().item(reference::<ConditionShape>()).item(reference::<AlternativesShape>()).into(),
    refers to ConditionShape, AlternativesShape
);

/// The schema of one condition.
#[derive(Debug)]
struct ConditionShape;

own_schema!(ConditionShape, {
    let field = "A built-in field (`browser`), or `metadata.` and a path (`metadata.plan.name`).";
    ObjectBuilder::new()
        .description(Some("One condition on a property of events."))
        .property("field", ObjectBuilder::new().schema_type(Type::String).description(Some(field)))
        .property("operator", operators())
        .property("value", operands())
        .required("field")
        .required("operator")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .into()
});

/// The schema of alternatives.
#[derive(Debug)]
struct AlternativesShape;

own_schema!(AlternativesShape, {
    let list = ArrayBuilder::new().items(reference::<ConditionShape>()).min_items(Some(1));
    let lists = ArrayBuilder::new().items(list).min_items(Some(1)).max_items(Some(MAX_LISTS));
    ObjectBuilder::new()
        .description(Some("Alternatives: all conditions of at least one list hold."))
        .property("any", lists.description(Some("The lists of conditions.")))
        .required("any")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .into()
});

/// Refers to a schema of the document.
pub(crate) fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

fn operators() -> ObjectBuilder {
    let description = "How the property is compared. The `not` forms hold for absent properties too.";
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Operator::names())).description(Some(description))
}

fn operands() -> OneOfBuilder {
    let description = "What it is compared with: for `is` and `is_not` a scalar or a list of them (with its JSON type), \
                       for `contains` to `ends_with` a string (case is ignored), for `matches` a pattern of at most 256 bytes \
                       (`*`: any run without `/`, `**`: any run), for `gt` to `lte` a number, for the others nothing.";
    let scalars = || {
        [Type::String, Type::Number, Type::Boolean, Type::Null]
            .into_iter()
            .fold(OneOfBuilder::new(), |scalars, kind| scalars.item(Object::with_type(kind)))
    };
    scalars()
        .item(ArrayBuilder::new().items(scalars()).min_items(Some(1)).max_items(Some(MAX_VALUES)))
        .description(Some(description))
}

/// Reads a list of filters.
pub fn read(fields: &Fields<'_>, name: &str) -> Result<Vec<Clause>> {
    fields.raw(name).map_or(Ok(Vec::new()), |json| parse(json, name))
}

/// Reads a list of filters of a question about sessions.
pub fn read_in_sessions(fields: &Fields<'_>, name: &str) -> Result<Vec<Clause>> {
    fields.raw(name).map_or(Ok(Vec::new()), |json| read_clauses(json, name, Filter::in_sessions))
}

/// Parses a list of filters.
pub fn parse(json: &str, name: &str) -> Result<Vec<Clause>> {
    read_clauses(json, name, Filter::new)
}

/// Makes a filter of a field, an operator and an operand.
pub(crate) type NewFilter = fn(&str, &str, Option<&str>) -> Result<Filter, Invalid>;

/// Parses a list of filters that `new` makes. They are counted before they are made.
pub fn read_clauses(json: &str, name: &str, new: NewFilter) -> Result<Vec<Clause>> {
    let count = Cell::new(0);
    let counted = |param: &str, parts: &Parts<'_>| {
        count.set(count.get() + 1);
        match count.get() > MAX_FILTERS {
            true => Err(ApiError::parameter(name, format!("`{name}`: at most {MAX_FILTERS} are allowed, with those of `any`"))),
            false => read_filter(param, parts, new),
        }
    };
    read_list(json, name, &|param, item| read_clause(param, item, &counted))
}

/// Reads a filter of the parts that were sent.
type ReadFilter<'r> = dyn Fn(&str, &Parts<'_>) -> Result<Filter> + 'r;

fn read_list<T>(json: &str, name: &str, read: &dyn Fn(&str, &str) -> Result<T>) -> Result<Vec<T>> {
    let items: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter(name, format!("`{name}` must be a list of at most {MAX_FILTERS} filters")))?;
    items.into_iter().enumerate().map(|(index, item)| read(&format!("{name}[{index}]"), item.get())).collect()
}

/// Returns the predicate of the events that a question is about, or `None` if it is about all of them.
pub fn predicate(event_name: Option<&str>, clauses: Vec<Clause>) -> Result<Option<Predicate>> {
    if event_name.is_none() && clauses.is_empty() {
        return Ok(None);
    }
    Ok(Some(Predicate::new(event_name, clauses)?))
}

/// Returns the filter that events have one of these names.
pub(crate) fn named(names: &[&str]) -> Result<Clause> {
    let names = serde_json::Value::from(names).to_string();
    Ok(Filter::new("name", "is", Some(&names))?.into())
}

/// The parts of an element of a list, by name.
type Parts<'j> = BTreeMap<String, &'j RawValue>;

fn read_parts<'j>(param: &str, json: &'j str, known: &'static [&str]) -> Result<Parts<'j>> {
    let parts: Parts<'j> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter(param, format!("`{param}` must be an object of {}", known.join(", "))))?;
    match parts.keys().find(|part| !known.contains(&part.as_str())) {
        Some(unknown) => Err(ApiError::unknown_parameter(&format!("{param}.{unknown}"), known)),
        None => Ok(parts),
    }
}

fn read_clause(param: &str, json: &str, read: &ReadFilter<'_>) -> Result<Clause> {
    let parts = read_parts(param, json, PARTS)?;
    let Some(any) = parts.get("any") else { return Ok(read(param, &parts)?.into()) };
    if parts.len() > 1 {
        return Err(ApiError::parameter(param, format!("`{param}` must be a filter, or have `any` alone")));
    }
    let one = |param: &str, json: &str| read(param, &read_parts(param, json, FILTER_PARTS)?);
    let lists = read_list(any.get(), &format!("{param}.any"), &|param, list| read_list(list, param, &one))?;
    Clause::any(lists).map_err(|invalid| at(param, invalid))
}

fn read_filter(param: &str, parts: &Parts<'_>, new: NewFilter) -> Result<Filter> {
    let text = |part: &str| -> Result<String> {
        let param = format!("{param}.{part}");
        let raw = parts.get(part).ok_or_else(|| ApiError::missing(&param))?;
        serde_json::from_str(raw.get()).map_err(|_| ApiError::parameter(&param, format!("`{param}` must be a string")))
    };
    let filter = new(&text("field")?, &text("operator")?, parts.get("value").map(|raw| raw.get()));
    filter.map_err(|invalid| at(param, invalid))
}

fn at(param: &str, invalid: Invalid) -> ApiError {
    let param = invalid.param.as_ref().map_or(param.to_owned(), |part| format!("{param}.{part}"));
    ApiError::from(invalid).with_param(param)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &str) -> Result<Option<Predicate>> {
        let fields = Fields::read(body.as_bytes(), &["event_name", "filters"])?;
        let event_name: Option<String> = fields.optional("event_name", "a string")?;
        predicate(event_name.as_deref(), fields.with("filters", read)?)
    }

    #[test]
    fn a_question_about_all_events_has_no_predicate() {
        for body in ["", "{}", r#"{"filters":[]}"#, r#"{"filters":null,"event_name":null}"#] {
            assert!(ask(body).expect(body).is_none(), "{body}");
        }
        let any = r#"{"filters":[{"any":[[{"field":"name","operator":"is_set"}],[{"field":"os","operator":"is_set"}]]}]}"#;
        for body in [r#"{"event_name":"a"}"#, r#"{"filters":[{"field":"name","operator":"is","value":null}]}"#, any] {
            assert!(ask(body).expect(body).is_some(), "{body}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = vec![r#"{"field":"name","operator":"is_set"}"#; MAX_FILTERS + 1].join(",");
        let table = [
            // filters, code, param
            ("{}", "invalid_parameter", "filters"),
            (&format!("[{many}]"), "invalid_parameter", "filters"),
            ("[5]", "invalid_parameter", "filters[0]"),
            ("[[]]", "invalid_parameter", "filters[0]"),
            (r#"[{"foo":1}]"#, "unknown_parameter", "filters[0].foo"),
            (r#"[{"operator":"is"}]"#, "missing_parameter", "filters[0].field"),
            (r#"[{"field":5,"operator":"is"}]"#, "invalid_parameter", "filters[0].field"),
            (
                r#"[{"field":"name","operator":"is_set"},{"field":"name","operator":"has"}]"#,
                "invalid_parameter",
                "filters[1].operator",
            ),
            (r#"[{"field":"name","operator":"is"}]"#, "missing_parameter", "filters[0].value"),
            (r#"[{"field":"name","operator":"gt","value":"5"}]"#, "invalid_parameter", "filters[0].value"),
            (r#"[{"any":[]}]"#, "invalid_parameter", "filters[0].any"),
            (r#"[{"any":[[]]}]"#, "invalid_parameter", "filters[0].any"),
            (r#"[{"any":{}}]"#, "invalid_parameter", "filters[0].any"),
            (r#"[{"any":[{"field":"name","operator":"is_set"}]}]"#, "invalid_parameter", "filters[0].any[0]"),
            (r#"[{"any":[[{"any":[]}]]}]"#, "unknown_parameter", "filters[0].any[0][0].any"),
            (r#"[{"any":[[{"field":"name","operator":"has"}]]}]"#, "invalid_parameter", "filters[0].any[0][0].operator"),
            (r#"[{"any":[[{"field":"name","operator":"is_set"}]],"field":"name"}]"#, "invalid_parameter", "filters[0]"),
        ];
        for (filters, code, param) in table {
            let error = ask(&format!("{{\"filters\":{filters}}}")).expect_err(filters);
            assert_eq!(error.code().as_str(), code, "{filters}");
            assert!(format!("{error:?}").contains(&format!("param: Some({param:?})")), "{error:?}");
        }
        for body in [r#"{"event_name":""}"#.to_owned(), format!("{{\"event_name\":\"{}\"}}", "x".repeat(101))] {
            assert!(format!("{:?}", ask(&body).expect_err(&body)).contains("param: Some(\"event_name\")"), "{body}");
        }
    }
}
