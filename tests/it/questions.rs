//! The bounds of questions: windows, filters, and bodies of management. Values out of range are
//! refused, never clamped.

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};

/// Asks all operations that have a window: one by body, the others by query. Those about a user are
/// about ada.
fn ask_all(tenant: &Tenant, start: Option<&str>, end: Option<&str>) -> Vec<(&'static str, Answer)> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(start.map(|start| ("start_date", start)));
    query.extend_pairs(end.map(|end| ("end_date", end)));
    let query = query.finish();
    let get = |what| (what, tenant.get(&tenant.path(&format!("revenue/{what}?{query}"))));
    let body = json!({"start_date": start, "end_date": end});
    let users = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &body);
    let of_ada = |what| (what, tenant.get(&format!("/identities/{what}?user_id=ada&{query}")));
    let of_project = [get("metrics"), get("timeseries"), get("by-attribution"), ("users", users)];
    of_project.into_iter().chain(["profile", "referrers", "top-pages"].map(of_ada)).collect()
}

#[test]
fn windows_are_whole_days_and_no_more_than_3660() {
    let tenant = Tenant::new();
    tenant.peopled();
    let table = [
        // start, end, days
        ("2024-01-01", "2024-01-01", 1),
        ("2024-02-28", "2024-03-01", 3),
        ("2014-12-25", "2024-12-31", 3660),
        ("2024-01-01T23:59:59Z", "2024-01-02T00:00:00Z", 2),
        ("2024-01-02T00:30:00+02:00", "2024-01-02", 2),
        ("2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00Z", 1),
        ("2024-01-01T12:00:00Z", "2024-01-01T11:00:00Z", 1),
    ];
    for (start, end, days) in table {
        for (what, answer) in ask_all(&tenant, Some(start), Some(end)) {
            let body = answer.ok(200);
            let series = body["series"].as_array().map_or(days, Vec::len);
            assert_eq!(series, days, "{what} {start} {end}");
        }
    }
}

#[test]
fn windows_default_to_31_days_until_today() {
    away_from_midnight();
    let tenant = Tenant::new();
    tenant.peopled();
    for (start, end) in [(None, None), (Some(days_ago(30)), None), (None, Some(days_ago(0)))] {
        for (what, answer) in ask_all(&tenant, start.as_deref(), end.as_deref()) {
            let body = answer.ok(200);
            let Some(series) = body["series"].as_array() else { continue };
            let days = (series[0]["day"].as_str(), series[30]["day"].as_str(), series.len());
            assert_eq!(days, (Some(&*days_ago(30)), Some(&*days_ago(0)), 31), "{what}");
        }
    }
    let body = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &json!({})).ok(200);
    assert_eq!(body["start_date"], days_ago(30));
    assert_eq!(body["end_date"], days_ago(0));
    assert_eq!(body["timezone"], "UTC");
    let empty = tenant.send(Call::post(tenant.path("analytics/count-unique-users-per-day")).bearer(&tenant.token));
    assert_eq!(empty.ok(200), body, "no body is an empty object");
}

/// A day of UTC.
fn days_ago(days: i64) -> String {
    rfc3339(now_ms() - days * 86_400_000)[..10].to_owned()
}

#[test]
fn windows_that_are_none_are_refused() {
    away_from_midnight();
    let tenant = Tenant::new();
    let tomorrow = days_ago(-1);
    let long_ago = days_ago(31);
    let table: [(Option<&str>, Option<&str>, &str); 19] = [
        // start, end, the parameter that is named
        (Some("2024-01-02"), Some("2024-01-01"), "start_date"),
        (Some("2024-01-02T00:00:00Z"), Some("2024-01-01T23:59:59Z"), "start_date"),
        (Some(&tomorrow), None, "start_date"),
        (None, Some(&long_ago), "end_date"),
        (Some("2014-12-24"), Some("2024-12-31"), "start_date"),
        (Some("0001-01-01"), Some("9999-12-31"), "start_date"),
        (Some("yesterday"), None, "start_date"),
        (Some("2024-02-30"), Some("2024-03-01"), "start_date"),
        (Some("2023-02-29"), Some("2023-03-01"), "start_date"),
        (Some("2024-1-1"), Some("2024-01-02"), "start_date"),
        (Some("20240101"), Some("2024-01-02"), "start_date"),
        (Some("2024-01-01"), Some("2024-13-01"), "end_date"),
        (Some("2024-01-01"), Some("2024-01-01T25:00:00Z"), "end_date"),
        (Some("2024-01-01"), Some("2024-01-01T00:00:00"), "end_date"),
        (Some("2024-01-01"), Some("1704067200000"), "end_date"),
        (Some("2024-01-01"), Some("2024-01-01T00:00:00+24:00"), "end_date"),
        (Some(""), Some("2024-01-01"), "start_date"),
        (Some("2024-01-01"), Some(""), "end_date"),
        (Some("2024-01-01T"), Some("2024-01-01"), "start_date"),
    ];
    for (start, end, param) in table {
        for (what, answer) in ask_all(&tenant, start, end) {
            assert_refused(&format!("{what} {start:?} {end:?}"), &answer, 400, "invalid_parameter", Some(param));
        }
    }
    for twice in ["start_date=2024-01-01&start_date=2024-01-01", "end_date=2024-01-01&end_date=2024-01-02"] {
        let answer = tenant.get(&tenant.path(&format!("revenue/metrics?{twice}")));
        assert_refused(twice, &answer, 400, "invalid_parameter", Some(&twice[..twice.find('=').unwrap()]));
    }
}

fn filter(field: &str, operator: &str, value: Value) -> Value {
    json!({"field": field, "operator": operator, "value": value})
}

#[test]
fn questions_of_the_wrong_type_are_refused() {
    let tenant = Tenant::new();
    let one = |field: &str, operator: &str, value: Value| json!({ "filters": [filter(field, operator, value)] });
    let twenty_one = json!({ "filters": vec![filter("name", "is", json!("a")); 21] });
    let table = [
        // body, code, param
        (json!({"start_date": 20240101}), "invalid_parameter", "start_date"),
        (json!({"end_date": ["2024-01-01"]}), "invalid_parameter", "end_date"),
        (json!({"event_name": 5}), "invalid_parameter", "event_name"),
        (json!({"filters": {}}), "invalid_parameter", "filters"),
        (json!({"filters": "name"}), "invalid_parameter", "filters"),
        (twenty_one, "invalid_parameter", "filters"),
        (json!({"filters": ["name"]}), "invalid_parameter", "filters[0]"),
        (json!({"filters": [{}]}), "missing_parameter", "filters[0].field"),
        (json!({"filters": [{"field": "name"}]}), "missing_parameter", "filters[0].operator"),
        (one("nothing", "is", json!("a")), "invalid_parameter", "filters[0].field"),
        (one("metadata.", "is", json!("a")), "invalid_parameter", "filters[0].field"),
        (one("metadata", "is", json!("a")), "invalid_parameter", "filters[0].field"),
        (one("Name", "is", json!("a")), "invalid_parameter", "filters[0].field"),
        (one("name", "equals", json!("a")), "invalid_parameter", "filters[0].operator"),
        (one("name", "IS", json!("a")), "invalid_parameter", "filters[0].operator"),
        (one("name", "contains", json!(5)), "invalid_parameter", "filters[0].value"),
        (one("name", "is", json!({})), "invalid_parameter", "filters[0].value"),
        (one("metadata.a", "gt", json!("5")), "invalid_parameter", "filters[0].value"),
        (one("metadata.a", "lte", json!([5])), "invalid_parameter", "filters[0].value"),
        (
            json!({"filters": [filter("name", "is", json!("a")), filter("name", "has", json!("a"))]}),
            "invalid_parameter",
            "filters[1].operator",
        ),
        (json!({"filters": [{"field": "name", "operator": "is", "values": "a"}]}), "unknown_parameter", "filters[0].values"),
    ];
    for (body, code, param) in table {
        let answer = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &body);
        assert_refused(&body.to_string(), &answer, 400, code, Some(param));
    }
    let twenty = json!({ "filters": vec![filter("name", "is", json!("a")); 20] });
    assert_eq!(tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &twenty).status, 200);
    let unknown = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &one("colour", "is", json!("a")));
    let says = unknown.json()["error"]["message"].as_str().unwrap().to_owned();
    for known in ["browser", "location_country", "utm_campaign", "consent_source"] {
        assert!(says.contains(known), "an unknown field lists those that there are: {says}");
    }
}

#[test]
fn an_aggregate_says_what_is_wrong_with_its_question() {
    let tenant = Tenant::new();
    let with = |more: serde_json::Value| {
        let mut body = json!({"start_date": "2024-01-01", "group_by": "name"});
        let fields = body.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        body
    };
    let long = "x".repeat(1_032);
    let values = vec![1; 1_001];
    let table = [
        (json!({"group_by": "name"}), "missing_parameter", "start_date"),
        (json!({"start_date": "2024-01-01"}), "missing_parameter", "group_by"),
        (json!({"start_date": "2024-01-01", "group_by": null, "metadata_field": null}), "missing_parameter", "group_by"),
        (with(json!({"metadata_field": "plan"})), "invalid_parameter", "group_by"),
        (with(json!({"group_by": "metadata.plan"})), "invalid_parameter", "group_by"),
        (with(json!({"group_by": "Name"})), "invalid_parameter", "group_by"),
        (with(json!({"group_by": ["name"]})), "invalid_parameter", "group_by"),
        (with(json!({"group_by": null, "metadata_field": ""})), "invalid_parameter", "metadata_field"),
        (with(json!({"group_by": null, "metadata_field": long})), "invalid_parameter", "metadata_field"),
        (with(json!({"sum_metadata_field": long})), "invalid_parameter", "sum_metadata_field"),
        (with(json!({"sum_metadata_field": 5})), "invalid_parameter", "sum_metadata_field"),
        (with(json!({"group_by": "entry_url", "sum_metadata_field": "n"})), "unsupported_combination", "sum_metadata_field"),
        (with(json!({"limit": 0})), "invalid_parameter", "limit"),
        (with(json!({"limit": 1_001})), "invalid_parameter", "limit"),
        (with(json!({"limit": -1})), "invalid_parameter", "limit"),
        (with(json!({"limit": "10"})), "invalid_parameter", "limit"),
        (with(json!({"limit": 1.5})), "invalid_parameter", "limit"),
        (with(json!({"event_name": ""})), "invalid_parameter", "event_name"),
        (with(json!({"end_date": "2023-12-31"})), "invalid_parameter", "start_date"),
        (with(json!({"groupby": "name"})), "unknown_parameter", "groupby"),
        (with(json!({"filters": [filter("name", "is", json!(values))]})), "invalid_parameter", "filters[0].value"),
        (with(json!({"filters": [filter("entry_url", "gt", json!("a"))]})), "invalid_parameter", "filters[0].value"),
    ];
    let path = tenant.path("analytics/aggregate");
    for (body, code, param) in table {
        assert_refused(&body.to_string(), &tenant.post(&path, &body), 400, code, Some(param));
    }
    let unknown = tenant.post(&path, &with(json!({"group_by": "colour"})));
    let says = unknown.json()["error"]["message"].as_str().unwrap().to_owned();
    for known in ["browser", "location_country", "utm_campaign", "consent_source"] {
        assert!(says.contains(known), "an unknown field lists those that there are: {says}");
    }
    let empty = tenant.post(&path, &with(json!({"end_date": "2024-01-02", "limit": 1_000, "filters": null}))).ok(200);
    let expected = json!({
        "rows": [], "total_groups": 0, "truncated": false,
        "start_date": "2024-01-01", "end_date": "2024-01-02", "timezone": "UTC"
    });
    assert_eq!(empty, expected);
}

#[test]
fn projects_that_are_none_are_refused() {
    let tenant = Tenant::new();
    let table = [
        // body, code, param
        (json!({}), "missing_parameter", "name"),
        (json!({"name": null}), "missing_parameter", "name"),
        (json!({"name": ""}), "invalid_parameter", "name"),
        (json!({"name": 5}), "invalid_parameter", "name"),
        (json!({"name": "p", "currency": "US"}), "invalid_parameter", "currency"),
        (json!({"name": "p", "currency": "ZZZ"}), "invalid_parameter", "currency"),
        (json!({"name": "p", "currency": 5}), "invalid_parameter", "currency"),
        (json!({"name": "p", "allowed_origins": "https://a.example"}), "invalid_parameter", "allowed_origins"),
        (json!({"name": "p", "allowed_origins": ["https://a.example", "b"]}), "invalid_parameter", "allowed_origins[1]"),
        (json!({"name": "p", "own_domains": "a.example"}), "invalid_parameter", "own_domains"),
        (json!({"name": "p", "own_domains": ["a.example", "https://b.example/"]}), "invalid_parameter", "own_domains[1]"),
        (json!({"name": "p", "own_domains": ["co.uk"]}), "invalid_parameter", "own_domains[0]"),
        (json!({"name": "p", "ignored_referrers": ["*.a.example"]}), "invalid_parameter", "ignored_referrers[0]"),
        (json!({"name": "p", "ignored_referrers": vec!["a.example"; 101]}), "invalid_parameter", "ignored_referrers"),
        (json!({"name": "p", "cookieless": "yes"}), "invalid_parameter", "cookieless"),
        (json!({"name": "p", "bots": "keep"}), "invalid_parameter", "bots"),
        (json!({"name": "p", "signals_policy": true}), "invalid_parameter", "signals_policy"),
        (json!({"name": "p", "server_only_revenue": 1}), "invalid_parameter", "server_only_revenue"),
    ];
    for (body, code, param) in table {
        assert_refused(&body.to_string(), &tenant.post("/projects", &body), 400, code, Some(param));
        if code == "invalid_parameter" {
            let answer = tenant.patch(&format!("/projects/{}", tenant.project), &body);
            assert_refused(&format!("PATCH {body}"), &answer, 400, code, Some(param));
        }
    }
    assert_eq!(tenant.get("/projects").ok(200)["projects"].as_array().unwrap().len(), 1, "none was made");
}

#[test]
fn tokens_that_are_none_are_refused() {
    let tenant = Tenant::new();
    let with = |name: &str, value: Value| {
        let mut body = json!({"name": "t", "role": "member", "scopes": ["admin"]});
        body[name] = value;
        body
    };
    let table = [
        // body, code, param
        (json!({"role": "member", "scopes": ["admin"]}), "missing_parameter", "name"),
        (json!({"name": "t", "scopes": ["admin"]}), "missing_parameter", "role"),
        (json!({"name": "t", "role": "member"}), "missing_parameter", "scopes"),
        (with("name", json!("")), "invalid_parameter", "name"),
        (with("role", json!("root")), "invalid_parameter", "role"),
        (with("role", json!(["owner"])), "invalid_parameter", "role"),
        (with("scopes", json!([])), "invalid_parameter", "scopes"),
        (with("scopes", json!("admin")), "invalid_parameter", "scopes"),
        (with("scopes", json!(["admin", "everything"])), "invalid_parameter", "scopes[1]"),
        (with("expires_at", json!("tomorrow")), "invalid_parameter", "expires_at"),
        (with("expires_at", json!("2001-01-01T00:00:00Z")), "invalid_parameter", "expires_at"),
        (with("expires_at", json!(4_102_444_800_000_i64)), "invalid_parameter", "expires_at"),
        (with("project_id", json!("default")), "invalid_parameter", "project_id"),
    ];
    for (body, code, param) in table {
        assert_refused(&body.to_string(), &tenant.post("/api-tokens", &body), 400, code, Some(param));
    }
    let other = Tenant::new();
    for project in [other.project.as_str(), "prj_00000000000"] {
        let answer = tenant.post("/api-tokens", &with("project_id", json!(project)));
        assert!([400, 404].contains(&answer.status), "another's project: {}", answer.text());
    }
    assert_eq!(tenant.get("/api-tokens").ok(200)["api_tokens"].as_array().unwrap().len(), 1, "none was made");
}

#[test]
fn organizations_that_are_none_are_refused() {
    let tenant = Tenant::new();
    let table = [
        // body, param
        (json!({"name": ""}), "name"),
        (json!({"name": 5}), "name"),
        (json!({"currency": "dollars"}), "currency"),
        (json!({"timezone": 5}), "timezone"),
        (json!({"fx_rates": 5}), "fx_rates"),
        (json!({"fx_rates": {"EURO": 1.08}}), "fx_rates.EURO"),
        (json!({"fx_rates": {"EUR": "1.08"}}), "fx_rates.EUR"),
        (json!({"fx_rates": {"EUR": 0}}), "fx_rates.EUR"),
        (json!({"fx_rates": {"EUR": -1}}), "fx_rates.EUR"),
        (json!({"fx_rates": {"USD": 2}}), "fx_rates.USD"),
        (json!({"capabilities": "target_accounts"}), "capabilities"),
        (json!({"capabilities": ["everything"]}), "capabilities"),
        (json!({"actions_balance": -1}), "actions_balance"),
        (json!({"actions_balance": 1.5}), "actions_balance"),
    ];
    let before = tenant.get("/organization").ok(200);
    for (body, param) in table {
        let mut all = body.clone();
        all["name"] = if param == "name" { body["name"].clone() } else { json!("changed") };
        assert_refused(&body.to_string(), &tenant.patch("/organization", &all), 400, "invalid_parameter", Some(param));
    }
    assert_eq!(tenant.get("/organization").ok(200), before, "all of a change is made, or nothing");
    let root = tenant.server.initial("root_token");
    for (body, code) in [(json!({}), "missing_parameter"), (json!({"name": ""}), "invalid_parameter")] {
        let answer = tenant.send(Call::post("/organizations").bearer(root).json(&body));
        assert_refused(&body.to_string(), &answer, 400, code, Some("name"));
    }
}
