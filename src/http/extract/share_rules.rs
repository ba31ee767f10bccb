//! What the readers of a share may ask: figures of its project. Never of people or companies, and of money only if the share shows it.

use actix_web::HttpRequest;
use headcount_actors::registry::Share;
use serde_json::Value;

use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The operations about figures. What isn't listed is refused, new operations too.
const FIGURES: [&str; 8] = [
    "/projects/{project_id}/analytics/count-unique-users-per-day",
    "/projects/{project_id}/analytics/aggregate",
    "/projects/{project_id}/analytics/report",
    "/projects/{project_id}/analytics/breakdown",
    "/projects/{project_id}/analytics/traffic",
    "/projects/{project_id}/analytics/retention",
    "/projects/{project_id}/analytics/fields",
    "/projects/{project_id}/live",
];
/// The operations about money.
const MONEY: [&str; 4] = [
    "/projects/{project_id}/revenue/metrics",
    "/projects/{project_id}/revenue/timeseries",
    "/projects/{project_id}/revenue/by-attribution",
    "/projects/{project_id}/revenue/ltv-cohorts",
];
/// The fields whose values name a person or a company.
const NAMING_FIELDS: [&str; 2] = ["user_id", "group_id"];
/// Metadata may hold anything: addresses, names, amounts.
const METADATA_PREFIX: &str = "metadata.";

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::ShareForbidden, message)
}

/// Checks that a share may ask for what is at the path of a request.
pub(crate) fn check_path(request: &HttpRequest, share: &Share) -> Result<(), ApiError> {
    let pattern = request.match_pattern().unwrap_or_default();
    if FIGURES.contains(&&*pattern) || share.revenue && MONEY.contains(&&*pattern) {
        return Ok(());
    }
    Err(forbidden(if MONEY.contains(&&*pattern) {
        "the share doesn't show money"
    } else {
        "a share shows figures of its project, and nothing else"
    }))
}

/// Checks the fields that a question names. The body is JSON that the operation has read.
pub(crate) fn check_fields(body: &[u8]) -> Result<(), ApiError> {
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else { return Ok(()) };
    for param in ["metadata_field", "sum_metadata_field"] {
        if body.get(param).is_some_and(|value| !value.is_null()) {
            return Err(forbidden("a share doesn't show metadata, which may name people").with_param(param));
        }
    }
    for param in ["group_by", "dimension"] {
        check_field(param, body.get(param))?;
    }
    for (i, filter) in body.get("filters").and_then(Value::as_array).into_iter().flatten().enumerate() {
        check_field(&format!("filters[{i}].field"), filter.get("field"))?;
    }
    Ok(())
}

fn check_field(param: &str, field: Option<&Value>) -> Result<(), ApiError> {
    let Some(field) = field.and_then(Value::as_str) else { return Ok(()) };
    if NAMING_FIELDS.contains(&field) || field.starts_with(METADATA_PREFIX) {
        let message = format!("a share doesn't show {field}, which may name people or companies");
        return Err(forbidden(message).with_param(param));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_people_or_companies_is_refused() {
        let table = [
            ("", None),
            ("{}", None),
            (r#"{"group_by": "browser", "metadata_field": null, "filters": []}"#, None),
            (r#"{"dimension": "source", "filters": [{"field": "url", "operator": "is_set"}]}"#, None),
            (r#"{"group_by": "user_id"}"#, Some("group_by")),
            (r#"{"group_by": "group_id"}"#, Some("group_by")),
            (r#"{"dimension": "user_id"}"#, Some("dimension")),
            (r#"{"dimension": "metadata.email"}"#, Some("dimension")),
            (r#"{"metadata_field": "email"}"#, Some("metadata_field")),
            (r#"{"group_by": "browser", "sum_metadata_field": "total"}"#, Some("sum_metadata_field")),
            (r#"{"filters": [{"field": "url"}, {"field": "user_id"}]}"#, Some("filters[1].field")),
            (r#"{"filters": [{"field": "metadata.email"}]}"#, Some("filters[0].field")),
            (r#"{"filters": [{"field": "url", "field": "user_id"}]}"#, Some("filters[0].field")),
            (r#"{"fil\u0074ers": [{"fiel\u0064": "user\u005fid"}]}"#, Some("filters[0].field")),
        ];
        for (body, expected) in table {
            let refused = check_fields(body.as_bytes()).err();
            let param = refused.as_ref().map(|error| serde_json::to_value(error.body("")).unwrap()["error"]["param"].clone());
            assert_eq!(param, expected.map(Value::from), "{body}");
            assert!(refused.is_none_or(|error| error.code() == ErrorCode::ShareForbidden), "{body}");
        }
    }
}
