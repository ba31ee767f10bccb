//! `GET /identities/top`: the most active identified identities, over all projects.

use serde_json::{Value, json};

use crate::archive::seal;
use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

fn rows(tenant: &Tenant, query: &str) -> Vec<Value> {
    tenant.get(&format!("/identities/top?{query}")).ok(200)["identities"].as_array().unwrap().clone()
}

fn names(tenant: &Tenant, query: &str) -> Vec<String> {
    rows(tenant, query).iter().map(|row| row["resolved_identifier"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn identified_identities_are_listed_over_all_projects() {
    away_from_midnight();
    let server = Arc::new(TestServer::start_with(&["--view-memory=0"]));
    let tenant = Tenant::on(&server);
    let other = tenant.project(&json!({"currency": "EUR"}));
    let elsewhere = |event: &Value| {
        let call = Call::post("/track").key(&other.key).agent(crate::tenant::BROWSER).json(event);
        assert_eq!(tenant.send(call).status, 202);
    };
    let ago = |days: i64| rfc3339(now_ms() - days * DAY_MS - 60_000);
    tenant.recorded(&json!({"name": "read", "user_id": "ada", "timestamp": ago(3)}));
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5, "timestamp": ago(3)}));
    elsewhere(&json!({"name": "read", "user_id": "ada", "metadata": {"email": "Ada@acme.com"}, "timestamp": ago(1)}));
    tenant.recorded(&json!({"name": "order", "user_id": "ben", "value": 20, "timestamp": ago(2)}));
    tenant.recorded(&json!({"name": "order", "user_id": "ben", "value": -1.5, "timestamp": ago(40)}));
    // Linked, and so ben's; identified by an address; and by nothing.
    tenant.recorded(&json!({"name": "read", "anonymous_id": "b1", "timestamp": ago(5)}));
    tenant.recorded(
        &json!({"name": "identify", "anonymous_id": "z1", "metadata": {"email": "zoe@x.example"}, "timestamp": ago(0)}),
    );
    tenant.recorded(&json!({"name": "read", "anonymous_id": "n1", "timestamp": ago(0)}));
    tenant.recorded(&json!({"name": "read", "timestamp": ago(0)}));
    tenant.recorded(&json!({"name": "read", "user_id": "old", "timestamp": ago(35)}));
    assert_eq!(names(&tenant, ""), ["ada@acme.com", "ben", "zoe@x.example"]);
    tenant.recorded(&json!({"name": "read", "user_id": "ben", "anonymous_id": "b1", "timestamp": ago(2)}));
    let expected = |sealed: &str| {
        assert_eq!(names(&tenant, ""), ["ada@acme.com", "ben", "zoe@x.example"], "{sealed}: ties go by name");
        assert_eq!(names(&tenant, "sort=revenue"), ["ben", "ada@acme.com", "zoe@x.example"], "{sealed}");
        assert_eq!(names(&tenant, "sort=last_seen"), ["zoe@x.example", "ada@acme.com", "ben"], "{sealed}");
        assert_eq!(names(&tenant, "range_days=365&sort=events"), ["ben", "ada@acme.com", "old", "zoe@x.example"], "{sealed}");
        let ben = &rows(&tenant, "sort=revenue")[0];
        for (name, value) in [("user_id", json!("ben")), ("email", json!(null)), ("events", json!(3)), ("revenue", json!(20))] {
            assert_eq!(ben[name], value, "{sealed}: {name}");
        }
        let zoe = &rows(&tenant, "sort=last_seen")[0];
        assert_eq!([&zoe["user_id"], &zoe["email"]], [&json!(null), &json!("zoe@x.example")]);
        let first = tenant.get("/identities/top?limit=1").ok(200);
        assert_eq!(
            (&first["truncated"], &first["currency"], &first["complete_from"]),
            (&json!(true), &json!("USD"), &json!(null))
        );
        assert_eq!(tenant.get("/identities/top?limit=3").ok(200)["truncated"], false);
        let profile = tenant.get("/identities/profile?user_id=ben").ok(200);
        assert_eq!(
            ["identity_id", "events", "revenue", "last_seen"].map(|name| &ben[name]),
            ["identity_id", "events", "revenue", "last_seen"].map(|name| &profile[name])
        );
    };
    expected("in the log");
    assert!(seal(&server).expect("it seals").1 > 0);
    expected("in the archive");
}

#[test]
fn an_order_is_one_of_three_figures() {
    let tenant = Tenant::new();
    for sort in ["events", "revenue", "last_seen"] {
        assert!(rows(&tenant, &format!("sort={sort}")).is_empty());
    }
    for query in ["sort=", "sort=users", "sort=Events", "sort=events&sort=events"] {
        assert_refused(query, &tenant.get(&format!("/identities/top?{query}")), 400, "invalid_parameter", Some("sort"));
    }
}
