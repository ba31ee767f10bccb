//! E-mail addresses by which somebody was erased: who reports one later is the same person,
//! whatever the id.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{TestServer, command};
use crate::tenant::Tenant;

const ADDRESS: &str = "zanzibar@acme.example";
const SPELLINGS: [&str; 4] = [ADDRESS, "Zanzibar@ACME.Example", "  zanzibar@acme.example\t", "\u{a0}ZANZIBAR@acme.example\n"];

fn identify(user: &str, email: &str) -> Value {
    json!({"name": "identify", "user_id": user, "metadata": {"email": email}})
}

/// Makes a request and waits until it is completed.
#[track_caller]
fn completed(tenant: &Tenant, body: &Value) {
    let made = tenant.post("/privacy-requests", body).ok(201);
    let (path, until) = (format!("/privacy-requests/{}", made["id"].as_str().unwrap()), Instant::now() + Duration::from_secs(60));
    while tenant.get(&path).ok(200)["status"] != "completed" {
        assert!(Instant::now() < until, "{made} does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many events the project has.
fn recorded(tenant: &Tenant) -> usize {
    tenant.get(&tenant.path("events?start_date=2020-01-01")).ok(200)["events"].as_array().unwrap().len()
}

/// An exported row of `ada`, who reports an address.
fn row(tenant: &Tenant) -> Value {
    let exported = tenant.get(&tenant.path("export?format=ndjson")).text();
    serde_json::from_str(exported.lines().next().expect("a row")).unwrap()
}

/// Sends the address in every way in which an event can report it, and returns what was not
/// dropped.
fn not_dropped(tenant: &Tenant, round: &str, row: &Value) -> Vec<String> {
    let (before, mut events) = (recorded(tenant), Vec::new());
    for (number, spelling) in SPELLINGS.into_iter().enumerate() {
        let user = format!("{round}-{number}");
        events.push(identify(&user, spelling));
        events.push(json!({"name": "order", "user_id": user, "value": 5, "metadata": {"email": spelling, "n": 1}}));
        events.push(json!({"name": "pageview", "user_id": spelling.trim()}));
        events.push(json!({"name": "pageview", "user_id": spelling.trim(), "metadata": {"email": "other@acme.example"}}));
        events.push(json!({"name": "identify", "anonymous_id": user, "metadata": {"email": spelling}}));
    }
    let mut not_dropped: Vec<String> = Vec::new();
    for event in &events {
        let answer = tenant.track(event).ok(202);
        if answer["reason"] != "opted_out" {
            not_dropped.push(format!("{event}: {answer}"));
        }
    }
    let mut imported = row.clone();
    (imported["user_id"], imported["email"]) = (json!(format!("{round}-row")), json!(SPELLINGS[1]));
    imported.as_object_mut().unwrap().remove("external_id");
    let batches = [(tenant.path("batch"), events.clone()), (tenant.path("import"), [events.clone(), vec![imported]].concat())];
    for (path, events) in batches {
        let answer = tenant.post(&path, &json!({ "events": events })).ok(202);
        if answer["dropped"] != events.len() {
            not_dropped.push(format!("{path}: {answer}"));
        }
    }
    let segment = json!({"userId": format!("{round}-segment"), "messageId": round, "traits": {"email": SPELLINGS[1]}});
    crate::segment::send(tenant, "/v1/identify", &segment).ok(200);
    if recorded(tenant) != before {
        not_dropped.push(format!("{} events more", recorded(tenant) - before));
    }
    not_dropped
}

fn is_clean(data: &Path) -> bool {
    let output = command("verify", data).args(["--erased", "--json", "zanzibar"]).output().expect("it runs");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(output.status.code() == Some(i32::from(found["status"] != "clean")), "{found}");
    found["status"] == "clean"
}

#[test]
fn an_erased_address_is_not_recorded_under_another_id() {
    let server = Arc::new(TestServer::start());
    let (tenant, stranger) = (Tenant::on(&server), Tenant::on(&server));
    tenant.recorded(&identify("ada", ADDRESS));
    tenant.recorded(&identify("bob", "bob@acme.example"));
    let row = row(&tenant);
    assert_eq!(row["email"], ADDRESS);
    completed(&tenant, &json!({"type": "erasure", "email": SPELLINGS[1]}));
    assert_eq!(not_dropped(&tenant, "first", &row), Vec::<String>::new());
    tenant.recorded(&json!({"name": "pageview", "user_id": "first-0"}));
    let profile = tenant.get(&format!("/identities/profile?email={ADDRESS}"));
    assert_eq!(profile.status, 404, "{}", profile.text());
    server.restart();
    assert_eq!(not_dropped(&tenant, "restarted", &row), Vec::<String>::new());
    assert!(server.stopped(is_clean), "nothing has the address");

    // Another organization has erased nobody.
    stranger.recorded(&identify("ada", ADDRESS));
    completed(&tenant, &json!({"type": "opt_in", "email": SPELLINGS[2]}));
    server.restart();
    tenant.recorded(&identify("eve", SPELLINGS[1]));
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada"}));
}

/// The subject of an erasure by id is the id, with those that are linked to it. Others may have the
/// same address.
#[test]
fn an_erasure_by_id_leaves_the_address_to_others() {
    let tenant = Tenant::new();
    tenant.recorded(&identify("ada", "team@acme.example"));
    tenant.recorded(&identify("bob", "team@acme.example"));
    completed(&tenant, &json!({"type": "erasure", "user_id": "ada"}));
    tenant.recorded(&identify("bob", "Team@acme.example"));
    tenant.recorded(&identify("eve", "team@acme.example"));
    // With the address, both go.
    completed(&tenant, &json!({"type": "erasure", "email": "team@acme.example"}));
    let late = tenant.track(&identify("joe", "team@acme.example")).ok(202);
    assert_eq!((&late["status"], &late["reason"]), (&json!("dropped"), &json!("opted_out")));
    assert_eq!(recorded(&tenant), 0);
    // Nobody had it since the erasure, and a further one completes all the same.
    completed(&tenant, &json!({"type": "erasure", "email": "team@acme.example"}));
    // Who opts in by an id ends the erasure that has it, and with it the address.
    completed(&tenant, &json!({"type": "opt_in", "user_id": "eve"}));
    tenant.recorded(&identify("joe", "team@acme.example"));
}
