//! `traffic`, `report` and `breakdown`: worked examples, money, bounds, floors and tags. Random
//! histories are in `scans.rs` and `histories.rs`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};

fn ask(tenant: &Tenant, operation: &str, body: &Value) -> Value {
    tenant.post(&tenant.path(&format!("analytics/{operation}")), body).ok(200)
}

/// A tenant in Berlin, before its first event.
fn in_berlin() -> Tenant {
    let tenant = Tenant::new();
    tenant.patch("/organization", &json!({"timezone": "Europe/Berlin"})).ok(200);
    tenant
}

/// Ada reads three pages over midnight to 2024-03-31, and Ben bounces; somebody without consent is
/// there too.
fn over_midnight(tenant: &Tenant) {
    let events = [
        ("ada", "2024-03-30T22:50:00Z", "https://shop.example/in?utm_medium=Email"),
        ("ada", "2024-03-30T23:10:00Z", "https://shop.example/b"),
        ("ada", "2024-03-30T23:30:00Z", "https://shop.example/out?x=1"),
        ("ben", "2024-03-31T02:30:00Z", "https://shop.example/in?utm_source=News"),
    ];
    for (user, at, url) in events {
        tenant.recorded(&json!({"name": "pageview", "user_id": user, "timestamp": at, "url": url}));
    }
    let order = |at: &str, value: f64, currency: &str| {
        let event = json!({"name": "order", "user_id": "ben", "timestamp": at, "value": value, "currency": currency});
        tenant.recorded(&event);
    };
    order("2024-03-31T08:00:00Z", 10.5, "USD");
    order("2024-03-31T08:00:01Z", -0.5, "USD");
    order("2024-03-31T08:00:02Z", 7.0, "CHF");
    let event = json!({"name": "pageview", "timestamp": "2024-03-31T09:00:00Z", "pc": "", "url": "https://shop.example/in"});
    tenant.recorded(&event);
}

#[test]
fn a_session_counts_as_a_whole_in_the_bucket_of_its_first_event() {
    let tenant = in_berlin();
    over_midnight(&tenant);
    let answer = ask(&tenant, "report", &json!({"start_date": "2024-03-30", "end_date": "2024-03-31"}));
    let totals = json!({
        "unique_users": 2, "sessions": 3, "pageviews": 5, "events": 8, "bounce_rate": 0.333_333,
        // 40 minutes, 0 and 2 seconds.
        "duration_avg_sec": 800.666_667, "revenue": 10, "orders": 1
    });
    assert_eq!(answer["totals"], totals);
    let days: Vec<_> = answer["series"].as_array().unwrap().iter().map(|day| [&day["sessions"], &day["unique_users"]]).collect();
    assert_eq!(json!(days), json!([[1, 1], [2, 2]]));
    assert_eq!(answer["series"][0]["duration_avg_sec"], 2_400);
    assert_eq!(answer["unconverted"], json!({"CHF": {"revenue": 7, "orders": 1}}));
    assert_eq!([&answer["previous"], &answer["currency"], &answer["interval"]], [&json!(null), &json!("USD"), &json!("day")]);
    // What lies after the window belongs to its sessions, and what began before it counts nowhere
    // in it.
    let before = ask(&tenant, "report", &json!({"start_date": "2024-03-30", "end_date": "2024-03-30"}));
    assert_eq!(before["totals"]["duration_avg_sec"], 2_400);
    let after =
        ask(&tenant, "report", &json!({"start_date": "2024-03-31", "end_date": "2024-03-31", "compare": "previous_period"}));
    assert_eq!([&after["totals"]["sessions"], &after["totals"]["unique_users"], &after["totals"]["events"]], [2, 2, 7]);
    assert_eq!(after["previous"]["totals"], before["totals"]);
    assert_eq!(after["previous"]["series"], before["series"]);
    assert_eq!([&after["previous"]["start_date"], &after["previous"]["end_date"]], ["2024-03-30", "2024-03-30"]);
}

#[test]
fn hours_are_those_of_the_day() {
    let tenant = in_berlin();
    over_midnight(&tenant);
    let hours = |day: &str| ask(&tenant, "report", &json!({"start_date": day, "end_date": day, "interval": "hour"}));
    let short = hours("2024-03-31");
    let series = short["series"].as_array().unwrap();
    assert_eq!(series.len(), 23);
    assert_eq!(series[0]["bucket"], "2024-03-30T23:00:00.000Z");
    let events: Vec<u64> = series.iter().map(|hour| hour["events"].as_u64().unwrap()).collect();
    assert_eq!((events[0], events[3], events[9], events[10]), (2, 1, 3, 1), "{events:?}");
    assert!(series.iter().all(|hour| hour["complete"] == true));
    assert_eq!(hours("2024-10-27")["series"].as_array().unwrap().len(), 25);
    let months = ask(&tenant, "report", &json!({"start_date": "2024-02-29", "end_date": "2024-03-31", "interval": "month"}));
    let shown: Vec<_> = months["series"].as_array().unwrap().iter().map(|one| [&one["bucket"], &one["complete"]]).collect();
    assert_eq!(json!(shown), json!([["2024-02-01", false], ["2024-03-01", true]]));
}

#[test]
fn rows_are_of_events_or_of_their_sessions() {
    let tenant = in_berlin();
    over_midnight(&tenant);
    let rows = |dimension: &str, more: Value| {
        let mut body = json!({"start_date": "2024-03-30", "end_date": "2024-03-31", "dimension": dimension});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&tenant, "breakdown", &body)
    };
    let shown = |answer: &Value| -> Value {
        let row = |row: &Value| json!([row["value"], row["unique_users"], row["sessions"], row["events"]]);
        answer["rows"].as_array().unwrap().iter().map(row).collect()
    };
    let sessions = json!({"order_by": "sessions"});
    assert_eq!(shown(&rows("source", sessions.clone())), json!([["(direct)", 2, 2, 6], ["news", 1, 1, 1], [null, 0, 0, 1]]));
    assert_eq!(shown(&rows("medium", json!({"search": "MAIL"}))), json!([["email", 1, 1, 3]]));
    let exits = rows("exit_url", json!({"order_by": "events"}));
    let (out, into) = ("https://shop.example/out", "https://shop.example/in");
    assert_eq!(shown(&exits), json!([[null, 1, 1, 4], [out, 1, 1, 3], [into, 1, 1, 1]]));
    let filter = json!({"filters": [{"field": "exit_url", "operator": "is", "value": out}]});
    assert_eq!(shown(&rows("path", filter)), json!([["/b", 1, 1, 1], ["/in", 1, 1, 1], ["/out", 1, 1, 1]]));
    let compared = rows("name", json!({"compare": {"start_date": "2024-03-30", "end_date": "2024-03-30"}, "limit": 1}));
    assert_eq!([&compared["total_rows"], &compared["truncated"]], [&json!(2), &json!(true)]);
    let previous = json!({"unique_users": 1, "sessions": 1, "pageviews": 1, "events": 1, "revenue": 0, "orders": 0});
    assert_eq!(compared["rows"][0]["previous"], previous);
    assert_eq!(compared["previous"], json!({"start_date": "2024-03-30", "end_date": "2024-03-30"}));
}

#[test]
fn traffic_is_of_the_entries_themselves() {
    let tenant = in_berlin();
    over_midnight(&tenant);
    let target = tenant.path("analytics/traffic?start_date=2024-03-30&end_date=2024-03-31");
    let answer = tenant.get(&target).ok(200);
    assert_eq!([&answer["sessions"], &answer["bounces"], &answer["bounce_rate"]], [&json!(3), &json!(1), &json!(0.333_333)]);
    let names = |list: &str| -> Vec<(String, u64)> {
        let row = |row: &Value| (row["value"].as_str().unwrap().to_owned(), row["sessions"].as_u64().unwrap());
        answer[list].as_array().unwrap().iter().map(row).collect()
    };
    assert_eq!(names("by_medium"), [("(none)".to_owned(), 2), ("email".to_owned(), 1)]);
    assert_eq!(names("by_source"), [("(direct)".to_owned(), 2), ("news".to_owned(), 1)]);
    assert_eq!(answer["by_source"][1], json!({"value": "news", "sessions": 1, "bounces": 1, "bounce_rate": 1}));
    assert_eq!(answer["truncated"], false);
    let cut = tenant.get(&format!("{target}&limit=1")).ok(200);
    assert_eq!([&cut["truncated"], &cut["sessions"]], [&json!(true), &json!(3)]);
    assert_eq!(cut["by_medium"].as_array().unwrap().len(), 1);
}

#[test]
fn money_is_for_who_may_see_it() {
    let tenant = Tenant::new();
    over_midnight(&tenant);
    let window = json!({"start_date": "2024-03-30", "end_date": "2024-03-31", "compare": "previous_period"});
    let breakdown =
        json!({"start_date": "2024-03-30", "end_date": "2024-03-31", "dimension": "name", "compare": "previous_year"});
    let scopes = ["analytics:read", "revenue:read"];
    for (role, scopes, sees) in [("member", &scopes[..], false), ("admin", &scopes[..1], false), ("admin", &scopes[..], true)] {
        let token = tenant.token(role, scopes, None);
        let send = |operation: &str, body: &Value| {
            tenant.send(Call::post(tenant.path(&format!("analytics/{operation}"))).bearer(&token).json(body))
        };
        for (operation, body) in [("report", &window), ("breakdown", &breakdown)] {
            let text = send(operation, body).ok(200).to_string();
            for key in ["revenue", "orders", "currency", "unconverted"] {
                assert_eq!(text.contains(&format!("\"{key}\"")), sees, "{key} for {role} in {text}");
            }
        }
        for order in ["revenue", "orders"] {
            let mut body = breakdown.clone();
            body["order_by"] = json!(order);
            assert_eq!(send("breakdown", &body).status, if sees { 200 } else { 403 }, "{role} by {order}");
        }
    }
    // Who may see money does not get the answer of who may not.
    let tag = tenant.post(&tenant.path("analytics/report"), &window).etag();
    let member = tenant.token("member", &["analytics:read"], None);
    let again =
        |token: &str| Call::post(tenant.path("analytics/report")).bearer(token).json(&window).header("if-none-match", &*tag);
    assert_eq!(tenant.send(again(&tenant.token)).status, 304);
    assert_eq!(tenant.send(again(&member)).status, 200);
}

#[test]
fn what_can_not_be_asked_is_refused() {
    let tenant = Tenant::new();
    let days = |from: &str, to: &str| json!({"start_date": from, "end_date": to});
    let hours = |window: Value, compare: Value| {
        let mut body = window;
        (body["interval"], body["compare"]) = (json!("hour"), compare);
        body
    };
    let fortnight = days("2024-03-01", "2024-03-14");
    assert_eq!(tenant.post(&tenant.path("analytics/report"), &hours(fortnight.clone(), json!("previous_year"))).status, 200);
    let table = [
        // operation, body, code, param
        ("report", json!({"interval": "year"}), "invalid_parameter", "interval"),
        ("report", hours(days("2024-03-01", "2024-03-15"), json!(null)), "invalid_parameter", "interval"),
        ("report", hours(fortnight, days("2024-01-01", "2024-01-15")), "invalid_parameter", "interval"),
        ("report", json!({"compare": "last_week"}), "invalid_parameter", "compare"),
        ("report", json!({"compare": {"start_date": "2024-01-01"}}), "missing_parameter", "compare.end_date"),
        ("report", json!({"compare": {"start": "2024-01-01"}}), "unknown_parameter", "compare.start"),
        ("report", json!({"compare": days("2024-01-02", "2024-01-01")}), "invalid_parameter", "compare.start_date"),
        ("report", json!({"dimension": "source"}), "unknown_parameter", "dimension"),
        ("report", json!({"filters": [{"field": "exit", "operator": "is_set"}]}), "invalid_parameter", "filters[0].field"),
        ("breakdown", json!({}), "missing_parameter", "dimension"),
        ("breakdown", json!({"dimension": "plan"}), "invalid_parameter", "dimension"),
        ("breakdown", json!({"dimension": "metadata."}), "invalid_parameter", "dimension"),
        ("breakdown", json!({"dimension": "name", "interval": "day"}), "unknown_parameter", "interval"),
        ("breakdown", json!({"dimension": "name", "order_by": "bounces"}), "invalid_parameter", "order_by"),
        ("breakdown", json!({"dimension": "name", "limit": 1001}), "invalid_parameter", "limit"),
        ("breakdown", json!({"dimension": "name", "search": 5}), "invalid_parameter", "search"),
        ("aggregate", json!({"start_date": "2024-01-01", "group_by": "source"}), "invalid_parameter", "group_by"),
    ];
    for (operation, body, code, param) in table {
        let answer = tenant.post(&tenant.path(&format!("analytics/{operation}")), &body);
        assert_refused(&format!("{operation} {body}"), &answer, 400, code, Some(param));
    }
    let filter = json!({"filters": [{"field": "source", "operator": "is_set"}]});
    assert_eq!(tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &filter).status, 400);
}

#[test]
fn a_tag_changes_with_what_concerns_its_windows() {
    let tenant = Tenant::new();
    let read = |user: &str, at: &str| {
        tenant.recorded(&json!({"name": "pageview", "user_id": user, "timestamp": at, "url": "https://shop.example/"}));
    };
    read("ada", "2024-03-30T23:50:00Z");
    let day = json!({"start_date": "2024-03-30", "end_date": "2024-03-30", "compare": "previous_year"});
    let mut rows = day.clone();
    rows["dimension"] = json!("exit_url");
    let tags = || {
        let tag = |operation: &str, body: &Value| tenant.post(&tenant.path(&format!("analytics/{operation}")), body).etag();
        let traffic = tenant.get(&tenant.path("analytics/traffic?start_date=2024-03-30&end_date=2024-03-30")).etag();
        [tag("report", &day), tag("breakdown", &rows), traffic]
    };
    let mut before = tags();
    let table = [
        // user, time, whether report and breakdown change, whether traffic does
        ("ben", "2024-04-02T10:00:00Z", false, false),
        ("ben", "2023-06-01T10:00:00Z", false, false),
        ("ada", "2024-03-31T00:10:00Z", true, true),
        ("ada", "2024-03-31T01:10:00Z", false, false),
        ("ada", "2023-03-30T10:00:00Z", true, false),
        ("ben", "2024-03-30T10:00:00Z", true, true),
    ];
    for (user, at, of_figures, of_traffic) in table {
        read(user, at);
        let after = tags();
        let changed: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
        assert_eq!(changed, [of_figures, of_figures, of_traffic], "{user} {at}");
        before = after;
    }
    let call = Call::post(tenant.path("analytics/report")).bearer(&tenant.token).json(&day);
    let answer = tenant.send(call.header("if-none-match", &*before[0]));
    assert_eq!((answer.status, answer.header("cache-control")), (304, None));
    assert_eq!(tenant.post(&tenant.path("analytics/report"), &day).header("cache-control"), Some("private, no-cache"));
}

const DAY_MS: i64 = 86_400_000;

/// Twelve days of sessions, over midnights too, some without a source; of orders, and of somebody
/// without consent.
fn twelve_days(tenant: &Tenant, now: i64) {
    for day in 0..12 {
        let at = |minutes: i64| now - day * DAY_MS + minutes * 60_000;
        let source = ["utm_medium=Email", "utm_campaign=Spring", "utm_source=News", "page=1"][day as usize % 4];
        let events = [
            json!({"user_id": format!("u{}", day % 3), "timestamp": at(-21), "url": format!("https://shop.example/?{source}")}),
            json!({"user_id": format!("u{}", day % 3), "timestamp": at(-1), "url": "https://shop.example/a"}),
            json!({"name": "order", "user_id": format!("u{}", day % 5), "timestamp": at(-90), "value": 5 + day}),
            json!({"name": "order", "user_id": "u9", "timestamp": at(-91), "value": day, "currency": "CHF"}),
            json!({"timestamp": at(-5), "pc": "", "url": "https://shop.example/b"}),
        ];
        for mut event in events {
            let name = event.get("name").cloned().unwrap_or_else(|| json!("pageview"));
            event["name"] = name;
            tenant.recorded(&event);
        }
    }
}

#[test]
fn days_that_are_no_longer_kept_have_their_figures() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let now = now_ms();
    twelve_days(&tenant, now);
    let (start, end) = (rfc3339(now - 12 * DAY_MS), rfc3339(now));
    let window = |more: Value| {
        let mut body = json!({"start_date": start, "end_date": end});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let report = |body: &Value| tenant.post(&tenant.path("analytics/report"), body);
    let traffic = |query: &str| tenant.get(&tenant.path(&format!("analytics/traffic{query}")));
    let asked = || -> Vec<Answer> {
        let own = json!({"start_date": rfc3339(now - 20 * DAY_MS), "end_date": rfc3339(now - 9 * DAY_MS)});
        vec![
            report(&window(json!({"compare": own}))),
            report(&window(json!({"interval": "week", "compare": "previous_period"}))),
            report(&window(json!({"interval": "month"}))),
            report(&json!({})),
            traffic(&format!("?start_date={start}&end_date={end}")),
            traffic("?limit=2"),
        ]
    };
    let shown = |answers: &[Answer]| -> Vec<(Value, String)> { answers.iter().map(|one| (one.ok(200), one.etag())).collect() };
    let before = shown(&asked());
    assert_eq!(before[0].0["totals"]["events"], 60);
    let mediums = before[4].0["by_medium"].as_array().unwrap();
    assert!(mediums.iter().any(|row| row["value"] == "email"), "a session without a source has a medium: {mediums:?}");

    let raised = tenant.patch(&format!("/projects/{}", tenant.project), &json!({"retention_days": 4})).ok(200);
    let floor = raised["retention_floor"].as_str().unwrap();
    assert_eq!(shown(&asked()), before, "after the floor rose");
    let late = json!({"name": "pageview", "user_id": "u1", "timestamp": now - 8 * DAY_MS});
    assert_eq!(tenant.track(&late).json()["reason"], "retention");
    server.restart();
    assert_eq!(shown(&asked()), before, "after a restart");

    // What reads events has those from the floor on.
    let filters = json!([{"field": "source", "operator": "is", "value": "news"}]);
    for some in [json!({"filters": filters}), json!({"event_name": "order"}), json!({"interval": "hour"})] {
        assert_refused(&some.to_string(), &report(&window(some.clone())), 400, "before_retention", Some("start_date"));
        let mut of_default = some.clone();
        of_default["end_date"] = json!(rfc3339(now));
        assert_eq!(report(&of_default).ok(200)["start_date"], floor, "{some}");
    }
    let compared = json!({"start_date": floor, "event_name": "order", "compare": "previous_period"});
    assert_refused("what it is compared with", &report(&compared), 400, "before_retention", Some("compare"));
}
