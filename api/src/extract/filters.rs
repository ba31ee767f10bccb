//! The filters of a question, read so that an error names the part that is wrong.

use std::collections::BTreeMap;

use headcount_domain::intake::submission::Invalid;
use headcount_domain::{Filter, MAX_FILTERS, MAX_VALUES, NamedValues, Operator, Predicate};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Type};

use crate::extract::json::Fields;
use crate::openapi::own_schema;
use crate::respond::error::{ApiError, Result};

const PARTS: &[&str] = &["field", "operator", "value"];

/// The schema of one filter. Filters are read part by part, so that an error can name the part.
#[derive(Debug)]
pub struct FilterShape;

own_schema!(FilterShape, {
    let field = "A built-in field (`browser`), or `metadata.` and a path (`metadata.plan.name`).";
    ObjectBuilder::new()
        .description(Some("One condition on a property of events."))
        .property("field", ObjectBuilder::new().schema_type(Type::String).description(Some(field)))
        .property("operator", operators())
        .property("value", operands())
        .required("field")
        .required("operator")
        .into()
});

fn operators() -> ObjectBuilder {
    let description = "How the property is compared. The `not` forms hold for absent properties too.";
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Operator::names())).description(Some(description))
}

fn operands() -> OneOfBuilder {
    let description = "What it is compared with: for `is` and `is_not` a scalar or a list of them (with its JSON type), \
                       for `contains` and `not_contains` a string (case is ignored), for `gt` to `lte` a number, \
                       for the others nothing.";
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
pub fn read(fields: &Fields<'_>, name: &str) -> Result<Vec<Filter>> {
    fields.raw(name).map_or(Ok(Vec::new()), |json| parse(json, name))
}

/// Reads a list of filters of a question about sessions.
pub fn read_in_sessions(fields: &Fields<'_>, name: &str) -> Result<Vec<Filter>> {
    fields.raw(name).map_or(Ok(Vec::new()), |json| parse_with(json, name, Filter::in_sessions))
}

/// Parses a list of filters.
pub fn parse(json: &str, name: &str) -> Result<Vec<Filter>> {
    parse_with(json, name, Filter::new)
}

/// Makes a filter of a field, an operator and an operand.
type NewFilter = fn(&str, &str, Option<&str>) -> Result<Filter, Invalid>;

fn parse_with(json: &str, name: &str, new: NewFilter) -> Result<Vec<Filter>> {
    let items: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter(name, format!("`{name}` must be a list of at most {MAX_FILTERS} filters")))?;
    items.into_iter().enumerate().map(|(index, item)| read_one(&format!("{name}[{index}]"), item.get(), new)).collect()
}

/// Returns the predicate of the events that a question is about, or `None` if it is about all of them.
pub fn predicate(event_name: Option<&str>, filters: Vec<Filter>) -> Result<Option<Predicate>> {
    if event_name.is_none() && filters.is_empty() {
        return Ok(None);
    }
    Ok(Some(Predicate::new(event_name, filters)?))
}

fn read_one(param: &str, json: &str, new: NewFilter) -> Result<Filter> {
    let parts: BTreeMap<String, &RawValue> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter(param, format!("`{param}` must be an object of {}", PARTS.join(", "))))?;
    if let Some(unknown) = parts.keys().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(ApiError::unknown_parameter(&format!("{param}.{unknown}"), PARTS));
    }
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
        for body in [r#"{"event_name":"a"}"#, r#"{"filters":[{"field":"name","operator":"is","value":null}]}"#] {
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
