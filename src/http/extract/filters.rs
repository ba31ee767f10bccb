//! The filters of a question, read so that an error names the part that is wrong.

use std::collections::BTreeMap;

use headcount_domain::filter::{Filter, MAX_FILTERS, Operator, Predicate};
use headcount_domain::intake::submission::Invalid;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Type};

use crate::http::extract::query::Fields;
use crate::http::respond::error::ApiError;

const PARTS: &[&str] = &["field", "operator", "value"];

/// One condition on a property of events.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read part by part, for errors that name the part; this is the shape for the document")]
pub struct FilterShape {
    /// A built-in field (`browser`), or `metadata.` and a path (`metadata.plan.name`).
    field: String,
    #[schema(schema_with = operators)]
    operator: String,
    #[schema(schema_with = operands)]
    value: Option<serde_json::Value>,
}

fn operators() -> ObjectBuilder {
    let names = Operator::ALL.iter().map(|operator| operator.as_str());
    let description = "How the property is compared. The `not` forms hold for absent properties too.";
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).description(Some(description))
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
    scalars().item(ArrayBuilder::new().items(scalars()).min_items(Some(1))).description(Some(description))
}

/// Which events a question is about, by its `event_name` and the `filters` in its body; `None`: about all.
pub fn predicate(event_name: Option<String>, fields: &Fields<'_>) -> Result<Option<Predicate>, ApiError> {
    let filters = fields.raw("filters").map(read).transpose()?.unwrap_or_default();
    if event_name.is_none() && filters.is_empty() {
        return Ok(None);
    }
    Ok(Some(Predicate::new(event_name.as_deref(), filters)?))
}

fn read(json: &str) -> Result<Vec<Filter>, ApiError> {
    let items: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter("filters", format!("`filters` must be a list of at most {MAX_FILTERS} filters")))?;
    items.into_iter().enumerate().map(|(index, item)| read_one(&format!("filters[{index}]"), item.get())).collect()
}

fn read_one(param: &str, json: &str) -> Result<Filter, ApiError> {
    let parts: BTreeMap<String, &RawValue> = serde_json::from_str(json)
        .map_err(|_| ApiError::parameter(param, format!("`{param}` must be an object of {}", PARTS.join(", "))))?;
    if let Some(unknown) = parts.keys().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(ApiError::unknown_parameter(&format!("{param}.{unknown}"), PARTS));
    }
    let text = |part: &str| -> Result<String, ApiError> {
        let param = format!("{param}.{part}");
        let raw = parts.get(part).ok_or_else(|| ApiError::missing(&param))?;
        serde_json::from_str(raw.get()).map_err(|_| ApiError::parameter(&param, format!("`{param}` must be a string")))
    };
    let filter = Filter::new(&text("field")?, &text("operator")?, parts.get("value").map(|raw| raw.get()));
    let filter = filter.map_err(|invalid| at(param, invalid))?;
    if filter.needs_session() {
        let message = "fields of the session's entry are not available yet for unique users";
        return Err(ApiError::bad_request("unsupported_combination", message).with_param(format!("{param}.field")));
    }
    Ok(filter)
}

fn at(param: &str, invalid: Invalid) -> ApiError {
    let param = invalid.param.as_ref().map_or(param.to_owned(), |part| format!("{param}.{part}"));
    ApiError::from(invalid).with_param(param)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &str) -> Result<Option<Predicate>, ApiError> {
        let fields = Fields::read(body.as_bytes(), &["event_name", "filters"])?;
        predicate(fields.text("event_name")?, &fields)
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
            (r#"[{"field":"entry_url","operator":"is_set"}]"#, "unsupported_combination", "filters[0].field"),
        ];
        for (filters, code, param) in table {
            let error = format!("{:?}", ask(&format!("{{\"filters\":{filters}}}")).expect_err(filters));
            assert!(error.contains(&format!("code: {code:?}")) && error.contains(&format!("param: Some({param:?})")), "{error}");
        }
        for body in [r#"{"event_name":""}"#.to_owned(), format!("{{\"event_name\":\"{}\"}}", "x".repeat(101))] {
            assert!(format!("{:?}", ask(&body).expect_err(&body)).contains("param: Some(\"event_name\")"), "{body}");
        }
    }
}
