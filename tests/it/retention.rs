//! `GET /projects/{project_id}/analytics/retention`: who came back, by the interval of the first
//! event.

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};

const DAY_MS: i64 = 86_400_000;
const WEEK_MS: i64 = 7 * DAY_MS;

/// Noon of the Monday of the running week, or an hour ago if that is earlier.
fn this_week_ms() -> i64 {
    let monday = (now_ms() / DAY_MS + 3) / 7 * 7 - 3;
    (monday * DAY_MS + DAY_MS / 2).min(now_ms() - 60_000)
}

fn active(tenant: &Tenant, ids: &Value, at_ms: i64) {
    let mut event = json!({"name": "read", "timestamp": rfc3339(at_ms)});
    event.as_object_mut().unwrap().extend(ids.as_object().unwrap().clone());
    tenant.recorded(&event);
}

/// The users of each cohort that came back.
fn returned(answer: &Value) -> Vec<Value> {
    answer["cohorts"].as_array().unwrap().iter().map(|cohort| cohort["returned"].clone()).collect()
}

#[test]
fn users_count_in_the_week_of_their_first_event_and_when_they_come_back() {
    away_from_midnight();
    let (tenant, now) = (Tenant::new(), this_week_ms());
    let (ada, ben, zoe) = (json!({"user_id": "ada"}), json!({"user_id": "ben"}), json!({"anonymous_id": "zoe"}));
    [3, 3, 1, 0].iter().for_each(|weeks| active(&tenant, &ada, now - weeks * WEEK_MS));
    [2, 1].iter().for_each(|weeks| active(&tenant, &ben, now - weeks * WEEK_MS));
    active(&tenant, &zoe, now - WEEK_MS);
    // Cookieless visitors would never come back.
    active(&tenant, &json!({}), now - WEEK_MS);
    let path = tenant.path("analytics/retention");
    let ask = |query: &str| tenant.get(&format!("{path}?{query}")).ok(200);
    let answer = ask("cohorts=4");
    let rows = [json!([0]), json!([1, 0]), json!([1, 1, 0]), json!([1, 0, 1, 1])];
    assert_eq!(returned(&answer), rows, "{answer}");
    let users: Vec<&Value> = answer["cohorts"].as_array().unwrap().iter().map(|cohort| &cohort["users"]).collect();
    assert_eq!(users, [0, 1, 1, 1]);
    let monday = rfc3339(now)[..10].to_owned();
    let expected = json!({"interval": "week", "timezone": "UTC", "truncated": false});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(answer[name], *value, "{name}");
    }
    assert_eq!(answer["cohorts"][0]["cohort"], monday, "weeks begin on Monday");
    assert_eq!((ask("cohorts=3")["truncated"].clone(), ask("cohorts=60")["truncated"].clone()), (json!(true), json!(false)));
    assert_eq!(ask("")["cohorts"].as_array().unwrap().len(), 12);

    // A link moves the first event, and so does a late event.
    active(&tenant, &json!({"user_id": "ben", "anonymous_id": "zoe"}), now);
    assert_eq!(returned(&ask("cohorts=4")), [json!([0]), json!([0, 0]), json!([1, 1, 1]), json!([1, 0, 1, 1])]);
    active(&tenant, &ben, now - 3 * WEEK_MS);
    assert_eq!(returned(&ask("cohorts=4")), [json!([0]), json!([0, 0]), json!([0, 0, 0]), json!([2, 1, 2, 2])]);

    let months = ask("interval=month&cohorts=2");
    assert_eq!((&months["interval"], &months["cohorts"][0]["cohort"]), (&json!("month"), &json!(rfc3339(now_ms())[..7])));
}

#[test]
fn a_tag_changes_with_an_interval_in_which_somebody_becomes_active() {
    away_from_midnight();
    let (tenant, now) = (Tenant::new(), this_week_ms());
    let path = tenant.path("analytics/retention?interval=month");
    let ask = || tenant.get(&path);
    let changes = |ids: Value, at_ms: i64| {
        let tag = ask().etag();
        active(&tenant, &ids, at_ms);
        let again = tenant.send(Call::get(path.clone()).bearer(&tenant.token).header("if-none-match", &*tag));
        assert_eq!(again.status, if ask().etag() == tag { 304 } else { 200 });
        again.status == 200
    };
    assert!(changes(json!({"user_id": "ada"}), now), "somebody is new");
    assert!(!changes(json!({"user_id": "ada"}), now), "was active in this month");
    assert!(!changes(json!({}), now), "nobody who can come back");
    assert!(changes(json!({"user_id": "ada"}), now - 70 * DAY_MS), "an earlier cohort");
}

#[test]
fn cohorts_and_their_intervals_have_bounds() {
    let tenant = Tenant::new();
    let path = tenant.path("analytics/retention");
    for query in ["interval=week", "interval=month", "cohorts=1", "cohorts=60"] {
        tenant.get(&format!("{path}?{query}")).ok(200);
    }
    for (query, code, param) in [
        ("interval=day", "invalid_parameter", "interval"),
        ("interval=", "invalid_parameter", "interval"),
        ("interval=Week", "invalid_parameter", "interval"),
        ("cohorts=0", "invalid_parameter", "cohorts"),
        ("cohorts=61", "invalid_parameter", "cohorts"),
        ("cohorts=-1", "invalid_parameter", "cohorts"),
        ("cohorts=x", "invalid_parameter", "cohorts"),
        ("cohorts=2&cohorts=2", "invalid_parameter", "cohorts"),
        ("start_date=2024-01-01", "unknown_parameter", "start_date"),
        ("limit=5", "unknown_parameter", "limit"),
    ] {
        assert_refused(query, &tenant.get(&format!("{path}?{query}")), 400, code, Some(param));
    }
}
