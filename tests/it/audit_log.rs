//! The audit log: who changed what, over HTTP and on the command line.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

fn entries(tenant: &Tenant, query: &str) -> Vec<Value> {
    let answer = tenant.get(&format!("/audit-log?{query}"));
    answer.ok(200)["entries"].as_array().unwrap().clone()
}

#[test]
fn every_change_names_its_author_and_no_secret() {
    let tenant = Tenant::new();
    let member = tenant.post("/members", &json!({"email": "ada@acme.com", "role": "admin"})).ok(201);
    let body = json!({"name": "t", "role": "admin", "scopes": ["admin"], "member_id": member["member_id"]});
    let made = tenant.post("/api-tokens", &body).ok(201);
    let held = made["token"].as_str().unwrap();
    let rename = Call::patch("/organization").bearer(held).header("x-request-id", "rename-1").json(&json!({"name": "Acme"}));
    assert_eq!(tenant.send(rename).status, 200);
    let refused = Call::patch("/organization").bearer(held).json(&json!({"name": ""}));
    assert_eq!(tenant.send(refused).status, 400);
    let project = tenant.project(&json!({"name": "Shop"}));
    let key = format!("/projects/{}/keys/{}", project.id, project.key);
    assert_eq!(tenant.patch(&key, &json!({"rate_limit": 5})).status, 200);
    assert_eq!(tenant.delete(&format!("/members/{}", member["member_id"].as_str().unwrap())).status, 204);
    assert_eq!(tenant.delete(&format!("/projects/{}", project.id)).status, 204);

    let log = tenant.get("/audit-log?limit=100");
    for secret in [&*tenant.token, held] {
        assert!(!log.text().contains(secret));
    }
    let listed: Vec<(String, String)> = log.ok(200)["entries"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|entry| (entry["action"].as_str().unwrap().to_owned(), entry["target"]["id"].as_str().unwrap().to_owned()))
        .collect();
    let token_id = |token: &Value| token["token_id"].as_str().unwrap().to_owned();
    let first = tenant.get("/api-tokens").ok(200)["api_tokens"][0].clone();
    let member_id = member["member_id"].as_str().unwrap();
    let expected = [
        ("organization.created", &*tenant.organization),
        ("project.created", &*tenant.project),
        ("api_token.created", &*token_id(&first)),
        ("member.created", member_id),
        ("api_token.created", &*token_id(&made)),
        ("organization.updated", &*tenant.organization),
        ("project.created", &*project.id),
        ("public_key.updated", &*project.key),
        ("member.removed", member_id),
        ("api_token.revoked", &*token_id(&made)),
        ("project.deleted", &*project.id),
    ];
    let expected: Vec<(String, String)> = expected.map(|(action, id)| (action.to_owned(), id.to_owned())).to_vec();
    assert_eq!(listed, expected);
    let renamed = entries(&tenant, "action=organization.updated");
    assert_eq!(renamed.len(), 1);
    assert_eq!(
        json!([renamed[0]["actor"], renamed[0]["changes"]["name"]["to"], renamed[0]["request_id"], renamed[0]["target"]["type"]]),
        json!([{"kind": "token", "token_id": made["token_id"], "member_id": member_id}, "Acme", "rename-1", "organization"])
    );
    let of_key = entries(&tenant, &format!("target_id={}", project.key));
    assert_eq!(of_key[0]["changes"]["rate_limit"], json!({"from": 0, "to": 5}));
    assert_eq!(entries(&tenant, "action=organization.created")[0]["actor"]["kind"], "root");
    // Another organization's log has none of it.
    assert_eq!(entries(&Tenant::new(), "limit=100").len(), 3);
}

#[test]
fn the_log_is_paged_and_its_parameters_are_checked() {
    let tenant = Tenant::new();
    for i in 0..22 {
        assert_eq!(tenant.patch("/organization", &json!({"name": format!("n{i}")})).status, 200);
    }
    let first = tenant.get("/audit-log").ok(200);
    let listed = first["entries"].as_array().unwrap();
    assert_eq!((listed.len(), &first["truncated"]), (20, &json!(true)));
    let rest = tenant.get(&format!("/audit-log?starting_after={}", listed[19]["id"].as_str().unwrap())).ok(200);
    assert_eq!((rest["entries"].as_array().unwrap().len(), &rest["truncated"]), (5, &json!(false)));
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("action=project.eaten", "action"),
        ("starting_after=5", "starting_after"),
        ("starting_after=aud_0000000000000000", "starting_after"),
        ("target_id=", "target_id"),
    ] {
        assert_refused(query, &tenant.get(&format!("/audit-log?{query}")), 400, "invalid_parameter", Some(param));
    }
    let answer = tenant.get("/audit-log?limit=3");
    let again = Call::get("/audit-log?limit=3").bearer(&tenant.token).header("if-none-match", answer.etag());
    assert_eq!(tenant.send(again).status, 304);
}

/// Commands on the directory of a stopped server are in it too, and it outlives kills.
#[test]
fn the_log_survives_kills_and_tells_of_commands() {
    let server = Arc::new(TestServer::start());
    let token = server.initial("api_token").to_owned();
    let patch = |name: &str| server.send(&Call::patch("/organization").bearer(&token).json(&json!({ "name": name }))).status;
    assert_eq!(patch("one"), 200);
    server.kill();
    assert_eq!(patch("two"), 200);
    server.stopped(|dir| {
        let set = command("organization", dir).args(["set", "--name", "three"]).output().unwrap();
        assert!(set.status.success());
        let list = command("audit-log", dir).args(["--action", "organization.updated", "--json"]).output().unwrap();
        let log: Value = serde_json::from_slice(&list.stdout).unwrap();
        let kinds: Vec<&Value> = log["entries"].as_array().unwrap().iter().map(|entry| &entry["actor"]["kind"]).collect();
        assert_eq!(kinds, ["cli", "token", "token"]);
        assert_eq!(log["entries"][0]["actor"]["token_id"], Value::Null);
    });
    let names = server.send(&Call::get("/audit-log?action=organization.updated").bearer(&token)).ok(200);
    let names: Vec<&Value> = names["entries"].as_array().unwrap().iter().map(|entry| &entry["changes"]["name"]["to"]).collect();
    assert_eq!(names, ["three", "two", "one"]);
    let text = command("audit-log", server.data_dir()).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().count() == 7 && text.contains("organization.updated"), "{text}");
}
