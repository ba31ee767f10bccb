//! Limits of tokens and of projects, and quotas of projects. What comes back while a request is
//! answered is allowed for, as in `rate_limits`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

fn number(answer: &Answer, header: &str) -> u64 {
    let value = answer.header(header).unwrap_or_else(|| panic!("no {header}: {}", answer.text()));
    value.parse().unwrap()
}

#[test]
fn a_token_has_a_limit_of_requests() {
    let tenant = Tenant::new();
    let made = tenant.post("/api-tokens", &json!({"name": "t", "role": "admin", "scopes": ["admin"]})).ok(201);
    assert_eq!((&made["rate_limit"], &made["burst"]), (&json!(0), &json!(0)));
    let (path, secret) = (format!("/api-tokens/{}", made["token_id"].as_str().unwrap()), made["token"].as_str().unwrap());
    let ask = || tenant.send(Call::get("/organization").bearer(secret));
    assert!(ask().header("ratelimit-limit").is_none());
    let limited = tenant.patch(&path, &json!({"rate_limit": 1, "burst": 5, "name": "slow"})).ok(200);
    assert_eq!(json!([limited["rate_limit"], limited["burst"], limited["name"]]), json!([1, 5, "slow"]));
    let first = ask();
    assert_eq!((first.status, number(&first, "ratelimit-limit")), (200, 5));
    assert!((4..=5).contains(&number(&first, "ratelimit-remaining")));
    // Refusals for other reasons count, and report, too.
    let refused = tenant.send(Call::get(tenant.path("revenue/metrics")).bearer(secret));
    assert_eq!((refused.status, number(&refused, "ratelimit-limit")), (403, 5));
    let used_up = (0..100).map(|_| ask()).find(|answer| answer.status != 200).expect("a refusal");
    assert_refused("used up", &used_up, 429, "rate_limited", None);
    assert_eq!((number(&used_up, "retry-after"), number(&used_up, "ratelimit-remaining")), (1, 0));
    assert_eq!(tenant.get("/organization").status, 200, "the limit is of one token");
    assert_eq!(tenant.patch(&path, &json!({"rate_limit": 0})).ok(200)["burst"], 0);
    assert!(ask().header("ratelimit-limit").is_none());
    for (body, param) in [
        (json!({"rate_limit": 1_000_001}), "rate_limit"),
        (json!({"burst": 5}), "burst"),
        (json!({"rate_limit": 1, "burst": 0}), "burst"),
        (json!({"name": ""}), "name"),
    ] {
        assert_refused(&body.to_string(), &tenant.patch(&path, &body), 400, "invalid_parameter", Some(param));
    }
    let admin = tenant.token("admin", &["admin"], None);
    let owner = tenant.get("/api-tokens").ok(200)["api_tokens"][0]["token_id"].as_str().unwrap().to_owned();
    let change = Call::patch(format!("/api-tokens/{owner}")).bearer(&admin).json(&json!({"rate_limit": 1}));
    assert_refused("an owner's", &tenant.send(change), 403, "insufficient_role", None);
    assert_eq!(tenant.patch("/api-tokens/tok_0000000000000000", &json!({})).status, 404);
}

#[test]
fn a_project_has_a_limit_for_its_keys_together() {
    let tenant = Tenant::new();
    let second = tenant.post(&tenant.path("keys"), &json!({})).field("public_key");
    let path = format!("/projects/{}", tenant.project);
    let limited = tenant.patch(&path, &json!({"rate_limit": 1, "burst": 50})).ok(200);
    assert_eq!(json!([limited["rate_limit"], limited["burst"]]), json!([1, 50]));
    let send = |key: &str, events: usize| {
        let events: Vec<Value> = (0..events).map(|i| json!({"name": "a", "user_id": format!("u{i}")})).collect();
        tenant.send(Call::post("/i/batch").key(key).json(&json!({ "events": events })))
    };
    assert_eq!(tenant.patch(&tenant.path(&format!("keys/{second}")), &json!({"rate_limit": 1000})).status, 200);
    let one = send(&second, 10);
    assert_eq!((one.status, number(&one, "ratelimit-limit")), (202, 50), "the tighter one");
    // A batch may leave a debt, which is every key's.
    assert_eq!(send(&tenant.key, 300).status, 202);
    for key in [&tenant.key, &second] {
        let refused = send(key, 1);
        assert_refused("in debt", &refused, 429, "rate_limited", None);
        assert!(number(&refused, "retry-after") > 100);
    }
    let other = tenant.project(&json!({}));
    assert_eq!(send(&other.key, 1).status, 202, "of one project");
    let bearer = Call::post(tenant.path("track")).bearer(&tenant.token).json(&json!({"name": "a"}));
    assert_eq!(tenant.send(bearer).status, 202, "servers have the limits of their tokens");
    assert_eq!(tenant.patch(&path, &json!({"name": "renamed"})).status, 200);
    assert_eq!(send(&second, 1).status, 429, "another change leaves the debt");
    assert_eq!(tenant.patch(&path, &json!({"rate_limit": 0})).status, 200);
    assert_eq!(send(&second, 1).status, 202);
}

#[test]
fn a_project_has_quotas_of_its_own() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let path = format!("/projects/{}", tenant.project);
    let usual = json!({"groups": 1_000_000, "companies": 1_000_000, "pages": 1_000_000, "sources": 100_000});
    assert_eq!(tenant.get(&path).ok(200)["quotas"], usual);
    let quota = |groups: u32| tenant.patch(&path, &json!({"quotas": {"groups": groups}})).ok(200)["quotas"]["groups"].clone();
    let send = |group: &str| tenant.track(&json!({"name": "a", "user_id": "ada", "group_type": "team", "group_id": group}));
    assert_eq!(quota(2), 2);
    for group in ["t1", "t2", "t1"] {
        assert_eq!(send(group).status, 202, "{group}");
    }
    let refused = send("t3");
    assert_refused("one more", &refused, 429, "quota_exceeded", None);
    assert!(refused.text().contains("groups") && refused.header("retry-after") == Some("3600"), "{}", refused.text());
    assert_eq!(quota(3), 3);
    assert_eq!(send("t3").status, 202, "at once");
    assert_eq!(quota(1), 1);
    server.restart();
    assert_eq!(tenant.get(&path).ok(200)["quotas"]["groups"], 1);
    assert_eq!((send("t4").status, send("t2").status), (429, 202));
    for (body, code, param) in [
        (json!({"quotas": {"groups": 0}}), "invalid_parameter", "quotas.groups"),
        (json!({"quotas": {"pages": 100_000_001}}), "invalid_parameter", "quotas.pages"),
        (json!({"quotas": {"pages": "5"}}), "invalid_parameter", "quotas.pages"),
        (json!({"quotas": {"users": 5}}), "unknown_parameter", "quotas.users"),
        (json!({"quotas": [5]}), "invalid_json", ""),
    ] {
        let param = Some(param).filter(|param| !param.is_empty());
        assert_refused(&body.to_string(), &tenant.patch(&path, &body), 400, code, param);
    }
}
