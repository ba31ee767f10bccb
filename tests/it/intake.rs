//! `GET /projects/{project_id}/intake`: what arrived, and why some of it was not recorded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::Tenant;

fn intake(tenant: &Tenant, project: &str) -> Value {
    tenant.get(&format!("/projects/{project}/intake")).ok(200)
}

/// The counts but `last_event_at`.
fn counts(tenant: &Tenant, project: &str) -> Value {
    let mut answer = intake(tenant, project);
    answer.as_object_mut().unwrap().remove("last_event_at");
    answer
}

/// Sends events of each kind to a new project: 3 recorded, one of them without consent.
fn send_all_kinds(tenant: &Tenant) -> String {
    let project = tenant.project(&json!({"signals_policy": "drop"}));
    let send = |call: Call, status: u16| assert_eq!(tenant.send(call.key(&project.key)).status, status);
    let one = |event: &Value| Call::post("/i").json(event);
    send(one(&json!({"name": "a", "external_id": "x"})), 202);
    send(one(&json!({"name": "a", "external_id": "x"})), 202);
    send(one(&json!({"name": "a", "pc": ""})), 202);
    send(one(&json!({"name": "a", "ps": "gpc"})), 202);
    send(one(&json!({"name": "a"})).agent("Googlebot/2.1 (+http://www.google.com/bot.html)"), 202);
    send(one(&json!({"value": 5})), 400);
    send(Call::post("/i").text("application/json", "{"), 400);
    send(Call::post("/i/batch").text("application/json", "[]"), 400);
    send(Call::get("/i?d=!!"), 400);
    // Neither of these is an event.
    send(Call::post("/i").text("text/html", "{}"), 415);
    send(Call::post("/i/batch").text("application/json", " ".repeat(5 << 20)), 413);
    let batch =
        json!({"events": [{"name": "a"}, {"name": "b", "external_id": "x"}, {}, {"name": "a", "ps": "dnt"}, {"name": [5]}]});
    send(Call::post("/i/batch").json(&batch), 202);
    send(one(&json!({"name": "a", "external_id": "x", "value": "much", "user_id": "null"})), 202);
    project.id
}

fn expected(approximate: bool) -> Value {
    json!({
        "recorded": 3, "without_consent": 1, "duplicates": 3, "invalid": 6, "approximate": approximate,
        "repaired": {"placeholder_id": 1, "value_ignored": 1},
        "dropped": {"bot": 1, "consent": 2, "opted_out": 0, "retention": 0},
    })
}

#[test]
fn every_event_is_counted_once_by_what_became_of_it() {
    let tenant = Tenant::new();
    let nothing = intake(&tenant, &tenant.project);
    assert_eq!((&nothing["recorded"], &nothing["last_event_at"]), (&json!(0), &Value::Null));
    let project = send_all_kinds(&tenant);
    assert_eq!(counts(&tenant, &project), expected(false));
    assert!(intake(&tenant, &project)["last_event_at"].as_str().unwrap().ends_with('Z'));
    // It is the day of receipt that counts, not that of the event.
    tenant.recorded(&json!({"name": "a", "timestamp": "2021-05-05T00:00:00Z"}));
    assert_eq!(tenant.get(&tenant.path("intake?range_days=1")).ok(200)["recorded"], 1);
}

#[test]
fn its_tag_changes_with_counts_that_no_event_changes() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "a"}));
    let path = tenant.path("intake");
    let tag = tenant.get(&path).header("etag").unwrap().to_owned();
    let again = |tag: &str| tenant.send(Call::get(path.clone()).bearer(&tenant.token).header("if-none-match", tag));
    assert_eq!(again(&tag).status, 304);
    assert_eq!(tenant.track(&json!({})).status, 400);
    let changed = again(&tag);
    assert_eq!((changed.status, &changed.json()["invalid"]), (200, &json!(1)));
}

#[test]
fn counts_survive_a_stop_and_a_kill_is_reported() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let project = send_all_kinds(&tenant);
    server.restart();
    assert_eq!(counts(&tenant, &project), expected(false), "after a stop");
    // Until the counts are on disk.
    let dir = server.data_dir().join("control/intake");
    let written = || std::fs::read_dir(&dir).unwrap().flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    assert_eq!(tenant.track(&json!({})).status, 400);
    let until = Instant::now() + Duration::from_secs(30);
    while !written().any(|text| text.contains(r#""invalid":1}"#)) {
        assert!(Instant::now() < until, "the counts are not written");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill();
    assert_eq!(counts(&tenant, &project), expected(true), "after a kill");
    assert_eq!(intake(&tenant, &tenant.project)["invalid"], 1);
}
