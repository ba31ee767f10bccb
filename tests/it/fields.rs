//! `GET /projects/{project_id}/analytics/fields`: the fields in the metadata of events.

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::tenant::Tenant;

const WINDOW: &str = "start_date=2024-01-01&end_date=2024-01-31";

fn recorded(tenant: &Tenant, metadata: &Value) {
    tenant.recorded(&json!({"name": "a", "user_id": "ada", "metadata": metadata, "timestamp": "2024-01-05T10:00:00Z"}));
}

#[test]
fn fields_are_what_filters_find() {
    let tenant = Tenant::new();
    recorded(&tenant, &json!({"plan": "pro", "cart": {"items": 2, "paid": true}, "list": [1], "none": null}));
    recorded(&tenant, &json!({"plan": 5, "cart": {"items": "two"}, "cart.paid": null}));
    recorded(&tenant, &json!({"plan": "free"}));
    tenant.recorded(&json!({"name": "a", "metadata": {"later": 1}, "timestamp": "2024-02-05T10:00:00Z"}));
    let path = tenant.path("analytics/fields");
    let answer = tenant.get(&format!("{path}?{WINDOW}")).ok(200);
    let expected = json!({"fields": [
        {"field": "metadata.plan", "types": ["number", "text"], "events": 3},
        {"field": "metadata.cart.items", "types": ["number", "text"], "events": 2},
        {"field": "metadata.cart.paid", "types": ["boolean"], "events": 1},
    ], "truncated": false});
    assert_eq!(answer, expected);
    for field in answer["fields"].as_array().unwrap() {
        let filter = json!([{"field": field["field"], "operator": "is_set"}]);
        let body = json!({"start_date": "2024-01-01", "end_date": "2024-01-31", "filters": filter, "group_by": "name"});
        let groups = tenant.post(&tenant.path("analytics/aggregate"), &body).ok(200);
        assert_eq!(groups["rows"][0]["count"], field["events"], "{field}");
    }
    let first = tenant.get(&format!("{path}?{WINDOW}&limit=1")).ok(200);
    assert_eq!((first["fields"].as_array().unwrap().len(), &first["truncated"]), (1, &json!(true)));
}

#[test]
fn fields_have_a_tag_and_bounds() {
    let tenant = Tenant::new();
    recorded(&tenant, &json!({"plan": "pro"}));
    let path = tenant.path("analytics/fields");
    let closed = format!("{path}?{WINDOW}");
    let tag = tenant.get(&closed).etag();
    tenant.recorded(&json!({"name": "a", "metadata": {"other": 1}}));
    let again = tenant.send(Call::get(closed.clone()).bearer(&tenant.token).header("if-none-match", &*tag));
    assert_eq!(again.status, 304, "events of today leave closed windows alone");
    recorded(&tenant, &json!({"plan": 1}));
    assert_ne!(tenant.get(&closed).etag(), tag);
    for query in ["limit=1", "limit=1000", "start_date=2024-01-01"] {
        tenant.get(&format!("{path}?{query}")).ok(200);
    }
    for (query, code, param) in [
        ("limit=0", "invalid_parameter", "limit"),
        ("limit=1001", "invalid_parameter", "limit"),
        ("start_date=x", "invalid_parameter", "start_date"),
        ("start_date=2024-01-02&end_date=2024-01-01", "invalid_parameter", "start_date"),
        ("filters=[]", "unknown_parameter", "filters"),
    ] {
        assert_refused(query, &tenant.get(&format!("{path}?{query}")), 400, code, Some(param));
    }
}
