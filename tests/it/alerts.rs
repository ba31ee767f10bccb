//! Alerts, with a channel on this machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};
use crate::webhooks::Receiver;
use crate::wrong_clock::WrongClock;

const DAY_MS: i64 = 86_400_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn tenant(clock: Option<WrongClock>) -> Tenant {
    Tenant::on(&Arc::new(TestServer::start_by(&["--outbound-allow", "127.0.0.1"], clock)))
}

/// Makes a channel to a receiver.
fn channel(tenant: &Tenant, receiver: &Receiver) -> String {
    tenant.post("/channels", &json!({"name": "Team", "kind": "slack", "url": receiver.url()})).field("channel_id")
}

/// Makes an alert.
#[track_caller]
fn alert(tenant: &Tenant, mut fields: Value, channels: &[&str]) -> String {
    fields["name"] = json!("Watch");
    fields["channels"] = json!(channels);
    let made = tenant.post(&tenant.path("alerts"), &fields).ok(201);
    assert_eq!((&made["firing"], &made["problem"], &made["changes"]), (&json!(false), &Value::Null, &json!([])));
    made["alert_id"].as_str().expect("an id").to_owned()
}

/// The alert with this id.
fn shown(tenant: &Tenant, id: &str) -> Value {
    let all = tenant.get(&tenant.path("alerts")).ok(200);
    all["alerts"].as_array().expect("alerts").iter().find(|alert| alert["alert_id"] == id).expect("it is listed").clone()
}

/// Waits until an alert has these changes, latest first, each with the status of its messages.
#[track_caller]
fn wait(tenant: &Tenant, id: &str, expected: &[(&str, &str)]) -> Value {
    let began = Instant::now();
    loop {
        let now = shown(tenant, id);
        let change = |change: &Value| {
            let message = change["messages"].get(0).map_or(json!("none"), |message| message["status"].clone());
            (change["kind"].clone(), message)
        };
        let changes: Vec<_> = now["changes"].as_array().expect("changes").iter().map(change).collect();
        if changes == expected.iter().map(|(kind, status)| (json!(kind), json!(status))).collect::<Vec<_>>() {
            return now;
        }
        assert!(began.elapsed() < PATIENCE, "{now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The text that a receiver got.
fn text(receiver: &Receiver, number: usize) -> String {
    receiver.wait(number)[number - 1].json()["text"].as_str().expect("a text").to_owned()
}

#[test]
fn an_alert_fires_with_the_event_and_is_corrected_by_a_refund() {
    away_from_midnight();
    let (tenant, receiver) = (tenant(None), Receiver::start(&[200]));
    let channel = channel(&tenant, &receiver);
    let id = alert(&tenant, json!({"figure": "revenue", "over": "day", "condition": {"above": 100}}), &[&channel]);
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 100}));
    std::thread::sleep(Duration::from_secs(1));
    wait(&tenant, &id, &[]);
    tenant.recorded(&json!({"name": "order", "user_id": "bob", "value": 0.5}));
    let acknowledged = Instant::now();
    let first = text(&receiver, 1);
    assert!(acknowledged.elapsed() < Duration::from_secs(10), "{:?}", acknowledged.elapsed());
    let lines: Vec<_> = first.lines().collect();
    assert!(lines[0].starts_with("Alert: Watch"), "{first}");
    assert!(lines[1].starts_with("Revenue: 100.5") && lines[1].contains("above 100"), "{first}");
    let now = wait(&tenant, &id, &[("fired", "delivered")]);
    assert_eq!(
        (&now["firing"], &now["changes"][0]["value"], &now["changes"][0]["number"]),
        (&json!(true), &json!(100.5), &json!(1))
    );
    // More of it is no news, and a small refund is not far enough back.
    tenant.recorded(&json!({"name": "order", "user_id": "bob", "value": 20}));
    tenant.recorded(&json!({"name": "refund", "user_id": "bob", "value": -30}));
    tenant.recorded(&json!({"name": "refund", "user_id": "ada", "value": -50}));
    assert!(text(&receiver, 2).contains("Revenue: 40.5"));
    let changes = [("corrected", "delivered"), ("fired", "delivered")];
    assert_eq!(wait(&tenant, &id, &changes)["firing"], false);
    // It keeps its state, and sends nothing again.
    tenant.server.restart();
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 500}));
    tenant.server.kill();
    std::thread::sleep(Duration::from_secs(1));
    wait(&tenant, &id, &changes);
    assert_eq!(receiver.wait(2).len(), 2, "an hour is between two firings");
}

#[test]
fn a_message_is_sent_until_it_is_taken_also_after_a_kill() {
    let (tenant, receiver) = (tenant(None), Receiver::start(&[500, 0, 200]));
    let channel = channel(&tenant, &receiver);
    let id = alert(&tenant, json!({"figure": "events", "over": "month", "condition": {"above": 0}}), &[&channel]);
    tenant.recorded(&json!({"name": "a", "user_id": "ada"}));
    receiver.wait(1);
    let failed = wait(&tenant, &id, &[("fired", "pending")]);
    assert_eq!(failed["changes"][0]["messages"][0]["attempts"], 1);
    assert_eq!(failed["changes"][0]["messages"][0]["last_status"], 500);
    tenant.server.kill();
    receiver.wait(2);
    let tried = || shown(&tenant, &id)["changes"][0]["messages"][0].clone();
    let began = Instant::now();
    while tried()["attempts"] != 2 {
        assert!(began.elapsed() < PATIENCE, "{}", tried());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(tried()["last_status"], Value::Null);
    assert!(tried()["last_error"].is_string());
}

#[test]
fn an_alert_below_is_evaluated_when_its_window_ends() {
    let clock = WrongClock::right();
    let noon = now_ms() - now_ms() % DAY_MS + DAY_MS / 2;
    clock.set_ahead(noon - now_ms());
    let (tenant, receiver) = (tenant(Some(clock)), Receiver::start(&[200]));
    let channel = channel(&tenant, &receiver);
    let goal = tenant.post(&tenant.path("goals"), &json!({"name": "Sold", "event_name": "order"})).field("goal_id");
    let fields = json!({"figure": "conversions", "goal": goal, "over": "day", "condition": {"below": 2}});
    let id = alert(&tenant, fields, &[&channel]);
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 1}));
    std::thread::sleep(Duration::from_secs(1));
    wait(&tenant, &id, &[]);
    let clock = tenant.server.clock().expect("a clock");
    clock.set_ahead(noon + DAY_MS - now_ms());
    let day = rfc3339(noon)[..10].to_owned();
    assert!(text(&receiver, 1).contains("Conversions: 1. This is below 2."));
    let now = wait(&tenant, &id, &[("fired", "delivered")]);
    assert_eq!((&now["changes"][0]["start_date"], &now["changes"][0]["end_date"]), (&json!(day), &json!(day)));
    // A tenth more than 2 events is a third one, and it comes late.
    for user in ["bob", "eve"] {
        tenant.recorded(&json!({"name": "order", "user_id": user, "value": 1, "timestamp": noon}));
    }
    wait(&tenant, &id, &[("corrected", "delivered"), ("fired", "delivered")]);
    assert!(text(&receiver, 2).contains("Conversions: 3."));
    tenant.delete(&tenant.path(&format!("goals/{goal}"))).ok(204);
    let problem = shown(&tenant, &id)["problem"].clone();
    assert!(problem.as_str().is_some_and(|problem| problem.contains("goal")), "{problem}");
}

#[test]
fn a_muted_alert_sends_nothing_and_a_removed_one_is_gone() {
    let (tenant, receiver) = (tenant(None), Receiver::start(&[200]));
    let channel = channel(&tenant, &receiver);
    let muted = json!({
        "figure": "unique_users", "over": "week", "condition": {"above": 1}, "muted_until": rfc3339(now_ms() + DAY_MS),
    });
    let quiet = alert(&tenant, muted, &[&channel]);
    let fields = json!({
        "figure": "events", "over": "week", "condition": {"above": 1},
        "filters": [{"field": "name", "operator": "is", "value": "signup"}],
    });
    let loud = alert(&tenant, fields, &[&channel]);
    for user in ["ada", "bob"] {
        tenant.recorded(&json!({"name": "signup", "user_id": user}));
    }
    wait(&tenant, &loud, &[("fired", "delivered")]);
    assert_eq!(wait(&tenant, &quiet, &[("fired", "none")])["firing"], true);
    assert_eq!(receiver.wait(1).len(), 1);
    let one = tenant.path(&format!("alerts/{loud}"));
    let raised = tenant.patch(&one, &json!({"condition": {"above": 10}})).ok(200);
    assert_eq!(raised["condition"], json!({"above": 10}));
    // A changed rule starts over.
    assert_eq!(raised["firing"], false);
    wait(&tenant, &loud, &[("fired", "delivered")]);
    tenant.delete(&one).ok(204);
    assert_refused("removed", &tenant.patch(&one, &json!({})), 404, "not_found", None);
    let left = tenant.get(&tenant.path("alerts")).ok(200);
    assert_eq!(left["alerts"].as_array().map(Vec::len), Some(1));
    let files = || std::fs::read_dir(tenant.server.data_dir().join("control/pushed")).expect("a directory").count();
    assert_eq!(files(), 1, "the state of the removed one is gone");
    tenant.delete(&format!("/projects/{}", tenant.project)).ok(204);
    let began = Instant::now();
    while files() > 0 {
        assert!(began.elapsed() < PATIENCE, "the states of a deleted project are gone");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_preview_says_what_the_alert_would_have_done() {
    away_from_midnight();
    let tenant = tenant(None);
    let now = now_ms();
    for (days, count) in [(40, 3), (12, 1), (11, 4), (10, 4), (1, 2)] {
        for number in 0..count {
            let event = json!({"name": "a", "user_id": format!("u{number}"), "timestamp": now - days * DAY_MS});
            tenant.recorded(&event);
        }
    }
    let preview = |condition: Value| {
        let asked = json!({"figure": "unique_users", "over": "day", "condition": condition});
        tenant.post(&tenant.path("alerts/preview"), &asked).ok(200)
    };
    let fired = |answer: &Value| -> Vec<(String, Value)> {
        let windows = answer["windows"].as_array().expect("windows");
        assert_eq!(windows.len(), 90);
        assert_eq!(windows[89]["complete"], false);
        let fires = windows.iter().filter(|window| window["fires"] == true);
        fires.map(|window| (window["start_date"].as_str().unwrap().to_owned(), window["value"].clone())).collect()
    };
    let day = |days: i64| rfc3339(now - days * DAY_MS)[..10].to_owned();
    let above = preview(json!({"above": 2}));
    assert_eq!(fired(&above), [(day(40), json!(3)), (day(11), json!(4)), (day(10), json!(4))]);
    // The report has the same figures.
    let report = json!({"start_date": day(89), "end_date": day(0)});
    let report = tenant.post(&tenant.path("analytics/report"), &report).ok(200);
    let of = |list: &Value, name: &str| list.as_array().unwrap().iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(of(&above["windows"], "value"), of(&report["series"], "unique_users"));
    // It stays below 3 from day to day, and returns twice.
    let below = fired(&preview(json!({"below": 3})));
    assert_eq!(below.iter().map(|(day, _)| day.clone()).collect::<Vec<_>>(), [day(89), day(9)]);
    let doubled = fired(&preview(json!({"changes_by": "+100%", "against": "previous"})));
    assert_eq!(doubled, [(day(11), json!(4))]);
    let less = fired(&preview(json!({"changes_by": -3, "against": "previous"})));
    assert_eq!(less, [(day(39), json!(0)), (day(9), json!(0))]);
}

#[test]
fn an_alert_that_can_not_be_is_refused() {
    let tenant = tenant(None);
    let path = tenant.path("alerts");
    let goal = tenant.post(&tenant.path("goals"), &json!({"name": "Sold", "event_name": "order"})).field("goal_id");
    let whole = json!({"name": "a", "figure": "events", "over": "day", "condition": {"above": 1}, "channels": []});
    let with = |changes: Value| {
        let mut body = whole.clone();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        body
    };
    let without = |name: &str| {
        let mut body = whole.clone();
        body.as_object_mut().unwrap().remove(name);
        body
    };
    for name in ["name", "figure", "over", "condition", "channels"] {
        assert_refused(name, &tenant.post(&path, &without(name)), 400, "missing_parameter", Some(name));
    }
    for (changes, status, code, param) in [
        (json!({"figure": "luck"}), 400, "invalid_parameter", "figure"),
        (json!({"over": "year"}), 400, "invalid_parameter", "over"),
        (json!({"condition": {"above": 1, "below": 2}}), 400, "invalid_parameter", "condition"),
        (json!({"condition": {"above": "1"}}), 400, "invalid_parameter", "condition"),
        (json!({"condition": {"changes_by": "30%", "against": "previous"}}), 400, "invalid_parameter", "condition"),
        (json!({"condition": {"changes_by": -3}}), 400, "invalid_parameter", "condition"),
        (
            json!({"condition": {"changes_by": "-30%", "against": "same_weekday"}, "over": "week"}),
            400,
            "invalid_parameter",
            "condition",
        ),
        (json!({"condition": null}), 400, "missing_parameter", "condition"),
        (json!({"figure": "rate"}), 400, "missing_parameter", "goal"),
        (json!({"goal": goal}), 400, "invalid_parameter", "goal"),
        (json!({"figure": "rate", "goal": "goal_0000000000000000"}), 404, "not_found", "goal"),
        (json!({"segment": "segment_0000000000000000"}), 404, "not_found", "segment"),
        (json!({"channels": vec!["x"; 11]}), 400, "invalid_parameter", "channels"),
        (json!({"channels": ["x"]}), 404, "not_found", "channels"),
        (json!({"channels": ["channel_0000000000000000"]}), 404, "not_found", "channels"),
        (json!({"filters": [{"field": "x", "operator": "is", "value": "y"}]}), 400, "invalid_parameter", "filters[0].field"),
        (json!({"muted_until": "tomorrow"}), 400, "invalid_parameter", "muted_until"),
        (json!({"window": 1}), 400, "unknown_parameter", "window"),
    ] {
        assert_refused(&changes.to_string(), &tenant.post(&path, &with(changes.clone())), status, code, Some(param));
    }
    let id = tenant.post(&path, &whole).field("alert_id");
    let change = tenant.patch(&format!("{path}/{id}"), &json!({"figure": "rate"}));
    assert_refused("a change", &change, 400, "missing_parameter", Some("goal"));
    let blind = tenant.token("admin", &["admin", "analytics:read"], None);
    let money = with(json!({"figure": "revenue"}));
    let call = crate::client::Call::post(&path).bearer(&blind).json(&money);
    assert_refused("money", &tenant.server.send(&call), 403, "insufficient_scope", None);
}
