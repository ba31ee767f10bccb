//! What becomes of events: by every way in, twice, from bots, from servers, in batches.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::geo::first;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant, away_from_midnight, now_ms};

const CRAWLER: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

fn pixel(tenant: &Tenant, event: &Value) -> Answer {
    let data = URL_SAFE_NO_PAD.encode(event.to_string());
    tenant.send(Call::get(format!("/i?pk={}&d={data}", tenant.key)).agent(BROWSER))
}

#[test]
fn i_is_track_by_every_way_in() {
    let tenant = Tenant::new();
    let event = |number: u64| json!({"name": "order", "user_id": format!("user {number}"), "value": 1, "external_id": format!("o-{number}")});
    let by_query = |path: &str| format!("{path}?pk={}", tenant.key);
    let calls = [
        Call::post("/i").key(&tenant.key).json(&event(0)),
        Call::post("/track").key(&tenant.key).json(&event(1)),
        Call::post(by_query("/i")).text("text/plain;charset=UTF-8", event(2).to_string()),
        Call::post(by_query("/track")).text("text/plain", event(3).to_string()),
        Call::post(by_query("/i")).bytes(event(4).to_string()),
    ];
    for (number, call) in (0..).zip(calls) {
        let first = tenant.send(call.clone().agent(BROWSER)).ok(202);
        let mut names: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["clamped", "duplicate", "id", "position", "reason", "status"]);
        assert_eq!((&first["status"], &first["duplicate"], &first["reason"]), (&json!("recorded"), &json!(false), &Value::Null));
        assert!(first["id"].as_str().is_some_and(|id| id.starts_with("ev_")), "{first}");
        // The other path knows it.
        for path in ["/i", "/track"] {
            let again = tenant.send(Call::post(path).key(&tenant.key).json(&event(number))).ok(202);
            assert_eq!((&again["status"], &again["duplicate"]), (&json!("duplicate"), &json!(true)));
            assert_eq!((&again["id"], &again["position"]), (&first["id"], &first["position"]), "those of the first");
        }
    }
    assert_eq!(tenant.users(&tenant.project), 5);
    assert_eq!(tenant.metrics(&tenant.project)["orders"], 5);
}

#[test]
fn the_header_goes_before_the_query() {
    let tenant = Tenant::new();
    let other = tenant.project(&json!({}));
    let call = Call::post(format!("/i?pk={}", other.key)).key(&tenant.key).json(&json!({"name": "a", "user_id": "ada"}));
    assert_eq!(tenant.send(call).status, 202);
    assert_eq!((tenant.users(&tenant.project), tenant.users(&other.id)), (1, 0));
}

#[test]
fn the_pixel_is_a_gif() {
    let tenant = Tenant::new();
    let answer = pixel(&tenant, &json!({"name": "pageview", "user_id": "ada"}));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/gif")), "{}", answer.text());
    assert_eq!(&answer.body[..10], b"GIF89a\x01\x00\x01\x00", "1 by 1");
    assert_eq!(answer.body.last(), Some(&0x3b));
    assert!(answer.header("cache-control").is_some_and(|value| value.contains("no-store")));
    assert_eq!(tenant.users(&tenant.project), 1);
    let get = |query: &str| tenant.send(Call::get(format!("/i?pk={}{query}", tenant.key)));
    assert_refused("no event", &get(""), 400, "missing_parameter", Some("d"));
    assert_refused("no base64", &get("&d=%7B%7D"), 400, "invalid_parameter", Some("d"));
    assert_refused("no JSON", &get(&format!("&d={}", URL_SAFE_NO_PAD.encode("{"))), 400, "invalid_json", None);
    assert_refused("no name", &pixel(&tenant, &json!({})), 400, "missing_parameter", Some("name"));
    let padded = URL_SAFE.encode(r#"{"name":"a","user_id":"ben2"}"#);
    assert!(padded.ends_with('='), "{padded}");
    assert_eq!(get(&format!("&d={padded}")).status, 200, "with padding too");
    let head = tenant.send(Call::new("HEAD", format!("/i?pk={}&d={padded}", tenant.key)));
    assert_eq!(head.status, 405, "a question about an answer records nothing");
    assert_eq!(tenant.users(&tenant.project), 2);
}

/// Older servers meet newer trackers, whose pages may also break caches with a parameter.
#[test]
fn unknown_fields_and_parameters_are_ignored() {
    let tenant = Tenant::new();
    let event = json!({"name": "a", "user_id": "ada", "not_yet": {"deep": [1, 2]}, "userId": 5, "ip": "1.2.3.4"});
    tenant.recorded(&event);
    let batch = json!({"events": [event], "sent_at": "2024-01-01", "more": null});
    assert_eq!(tenant.send(Call::post("/i/batch").key(&tenant.key).json(&batch)).ok(202)["recorded"], 1);
    let call = Call::post(format!("/i?pk={}&v=2", tenant.key)).json(&event);
    let answer = tenant.send(call);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let data = URL_SAFE_NO_PAD.encode(event.to_string());
    let answer = tenant.send(Call::get(format!("/i?pk={}&d={data}&_=1712345", tenant.key)));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn duplicates_change_nothing() {
    let tenant = Tenant::new();
    let other = tenant.project(&json!({}));
    let event = |value: u64| json!({"name": "order", "user_id": "ada", "value": value, "external_id": "o-1"});
    let first = tenant.recorded(&event(5));
    for _ in 0..3 {
        let again = tenant.track(&event(9)).ok(202);
        assert_eq!((&again["status"], &again["id"]), (&json!("duplicate"), &first["id"]));
    }
    let elsewhere = tenant.send(Call::post("/track").key(&other.key).json(&event(7))).ok(202);
    assert_eq!(elsewhere["status"], "recorded", "an external_id is its project's");
    assert_ne!(elsewhere["id"], first["id"]);
    let twice = json!({"name": "order", "user_id": "ben", "value": 3, "external_id": "o-2"});
    let batch = json!({"events": [event(1), twice, twice, {"name": "a"}]});
    let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&batch)).ok(202);
    assert_eq!(answer, json!({"recorded": 2, "duplicates": 2, "dropped": 0, "errors": []}));
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(8), &json!(2)));
}

#[test]
fn positions_rise_within_a_project() {
    let tenant = Tenant::new();
    let positions: Vec<u64> =
        (0..20).map(|_| tenant.recorded(&json!({"name": "a", "user_id": "ada"}))["position"].as_u64().unwrap()).collect();
    assert!(positions.is_sorted_by(|left, right| left < right), "{positions:?}");
    let first = tenant.recorded(&json!({"name": "a"}));
    let second = tenant.recorded(&json!({"name": "a"}));
    assert_ne!(first["id"], second["id"]);
}

#[test]
fn bots_are_dropped_unless_the_project_records_them() {
    let tenant = Tenant::new();
    let recording = tenant.project(&json!({"bots": "record"}));
    let send = |key: &str, agent: &str| {
        let body = json!({"name": "pageview", "user_id": "ada", "external_id": "e-1", "value": 5});
        tenant.send(Call::post("/track").key(key).agent(agent).json(&body)).ok(202)
    };
    let dropped = send(&tenant.key, CRAWLER);
    let expected =
        json!({"id": null, "status": "dropped", "duplicate": false, "reason": "bot", "position": null, "clamped": false});
    assert_eq!(dropped, expected);
    assert_eq!(tenant.users(&tenant.project), 0);
    assert_eq!(tenant.metrics(&tenant.project)["orders"], 0);
    assert_eq!(send(&tenant.key, BROWSER)["status"], "recorded", "a dropped event takes no external_id");
    assert_eq!(send(&recording.key, CRAWLER)["status"], "recorded");
    let batch = json!({"events": [{"name": "a"}, {"name": [5]}, {"name": "b"}]});
    let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).agent(CRAWLER).json(&batch)).ok(202);
    assert_eq!((&answer["dropped"], &answer["recorded"], &answer["errors"][0]["index"]), (&json!(2), &json!(0), &json!(1)));
    for agent in ["curl/8.5.0", "python-requests/2.31.0", "Go-http-client/1.1"] {
        let answer = tenant.send(Call::post("/track").key(&tenant.key).agent(agent).json(&json!({"name": "a"}))).ok(202);
        assert_eq!(answer["status"], "recorded", "{agent} is not a bot");
    }
    let nobody = tenant.send(Call::post("/track").key(&tenant.key).json(&json!({"name": "a"}))).ok(202);
    assert_eq!(nobody["status"], "recorded", "no agent is not a bot");
}

#[test]
fn the_valid_events_of_a_batch_are_recorded() {
    let tenant = Tenant::new();
    let events = json!([
        {"name": "order", "user_id": "ada", "value": 1},
        {"user_id": "ada"},
        {"name": "order", "user_id": "ben", "value": "5"},
        {"name": "order", "user_id": "cleo", "value": 2, "currency": "EURO"},
        5,
        null,
        ["name"],
        {"name": "order", "user_id": "dana", "value": 3}
    ]);
    for content_type in ["application/json", "text/plain"] {
        let body = json!({ "events": events }).to_string();
        let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).text(content_type, body)).ok(202);
        assert_eq!((&answer["recorded"], &answer["duplicates"], &answer["dropped"]), (&json!(4), &json!(0), &json!(0)));
        let errors = answer["errors"].as_array().unwrap();
        let accepted: Vec<_> =
            errors.iter().map(|error| (error["index"].as_u64().unwrap(), &error["code"], &error["param"])).collect();
        let expected = [
            (1, &json!("missing_parameter"), &json!("name")),
            (4, &json!("invalid_json"), &Value::Null),
            (5, &json!("invalid_json"), &Value::Null),
            (6, &json!("invalid_json"), &Value::Null),
        ];
        assert_eq!(accepted, expected);
        assert!(errors.iter().all(|error| error["message"].as_str().is_some_and(|message| !message.is_empty())));
        let warnings: Vec<_> =
            answer["warnings"].as_array().unwrap().iter().map(|warning| (&warning["index"], &warning["code"])).collect();
        assert_eq!(warnings, [(&json!(3), &json!("currency_unknown"))]);
    }
    assert_eq!(tenant.users(&tenant.project), 4);
    assert_eq!(tenant.metrics(&tenant.project)["total_revenue"], 18);
}

#[test]
fn servers_say_whose_agent_and_address_it_is() {
    let tenant = Tenant::new();
    let token = tenant.token("member", &["events:write"], Some(&tenant.project));
    let send = |event: Value| tenant.send(Call::post(tenant.path("track")).bearer(&token).agent(CRAWLER).json(&event)).ok(202);
    let visit = |ip: &str, agent: &str| send(json!({"name": "pageview", "ip": ip, "user_agent": agent}));
    assert_eq!(visit("203.0.113.1", BROWSER)["status"], "recorded", "the server's own agent doesn't matter");
    visit("203.0.113.1", BROWSER);
    visit("203.0.113.2", BROWSER);
    visit("203.0.113.2", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) Safari/604.1");
    assert_eq!(tenant.users(&tenant.project), 3, "a visitor is an address and an agent");
    assert_eq!(visit("203.0.113.3", CRAWLER)["reason"], "bot", "the visitor is one");
    send(json!({"name": "pageview"}));
    assert_eq!(tenant.users(&tenant.project), 3, "without an address visitors are not distinguished");
    let batch = json!({"events": [{"name": "a", "ip": "203.0.113.4", "user_agent": BROWSER}, {"name": "a", "user_id": "ada"}]});
    let answer = tenant.send(Call::post(tenant.path("batch")).bearer(&token).json(&batch)).ok(202);
    assert_eq!(answer["recorded"], 2);
    assert_eq!(tenant.users(&tenant.project), 5);
}

/// A socket for both families says `::ffff:1.2.3.4` where another says `1.2.3.4`.
#[test]
fn all_spellings_of_an_address_are_one_visitor() {
    let tenant = Tenant::new();
    let token = tenant.token("member", &["events:write"], Some(&tenant.project));
    let table = [
        // the address, how many visitors by then
        ("1.2.3.4", 1),
        ("::ffff:1.2.3.4", 1),
        (" 0:0:0:0:0:FFFF:102:304 ", 1),
        ("2001:db8::1", 2),
        ("2001:0DB8:0:0::0001", 2),
        // What is no address stands for itself.
        ("a.host", 3),
        ("A.host", 4),
        // A port is that of a connection.
        ("1.2.3.4:80", 4),
    ];
    for (ip, visitors) in table {
        let event = json!({"name": "pageview", "ip": ip, "user_agent": BROWSER});
        tenant.send(Call::post(tenant.path("track")).bearer(&token).json(&event)).ok(202);
        assert_eq!(tenant.users(&tenant.project), visitors, "{ip}");
    }
}

#[test]
fn an_import_counts_all_spellings_of_an_address_as_one_visitor() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    away_from_midnight();
    let (mut log, mut events) = (String::new(), String::new());
    for ip in ["1.2.3.4", "::ffff:1.2.3.4", "2001:db8::1", "2001:DB8:0:0::1", "a.host"] {
        writeln!(log, r#"{ip} - - [17/May/2025:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "{BROWSER}""#).unwrap();
        let event = json!({"name": "pageview", "ip": ip, "user_agent": BROWSER, "timestamp": "2025-05-17T11:00:00Z"});
        writeln!(events, "{event}").unwrap();
    }
    std::fs::write(file("events.log"), log).unwrap();
    std::fs::write(file("events.ndjson"), events).unwrap();
    let tenant = first(&Arc::new(TestServer::start()));
    tenant.server.run("import", &["--format", "combined", &file("events.log")]);
    assert_eq!(tenant.users(&tenant.project), 3);
    tenant.server.run("import", &[&file("events.ndjson")]);
    assert_eq!(tenant.users(&tenant.project), 3);
}

#[test]
fn browsers_can_not_say_whose_address_it_is() {
    let tenant = Tenant::new();
    for ip in ["203.0.113.1", "203.0.113.2"] {
        tenant.recorded(&json!({"name": "pageview", "ip": ip, "user_agent": format!("agent of {ip}")}));
        let call = Call::post("/track").key(&tenant.key).agent(BROWSER).header("x-forwarded-for", ip).json(&json!({"name": "a"}));
        assert_eq!(tenant.send(call).status, 202);
    }
    assert_eq!(tenant.users(&tenant.project), 1);
}

#[test]
fn a_trusted_proxy_can() {
    let server = Arc::new(TestServer::start_with(&["--trusted-proxies", "127.0.0.0/8,::ffff:10.0.0.0/104"]));
    let tenant = Tenant::on(&server);
    let table = [
        // the header, how many visitors by then
        ("203.0.113.1", 1),
        ("198.51.100.7, 203.0.113.1", 1),
        ("203.0.113.1, 10.1.2.3", 1),
        ("203.0.113.2", 2),
        ("2001:db8::1, 127.0.0.1", 3),
        ("2001:0DB8:0::1, ::ffff:127.0.0.1", 3),
        ("::ffff:203.0.113.2", 3),
        ("nonsense", 4),
    ];
    for (header, visitors) in table {
        let call = Call::post("/track").key(&tenant.key).agent(BROWSER).header("x-forwarded-for", header);
        assert_eq!(tenant.send(call.json(&json!({"name": "pageview"}))).status, 202);
        assert_eq!(tenant.users(&tenant.project), visitors, "{header}");
    }
}

/// 202 means counted: every later read sees the event, also under concurrent requests.
#[test]
fn a_read_after_202_counts_it() {
    let tenant = Tenant::new();
    let send = &|thread: usize, number: u64| {
        tenant.recorded(&json!({"name": "order", "user_id": format!("user {thread}"), "value": 1}));
        let metrics = tenant.metrics(&tenant.project);
        assert!(metrics["orders"].as_u64() >= Some(number), "{metrics} after {number}");
        assert!(tenant.users(&tenant.project) >= 1);
    };
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || (1..=20).for_each(|number| send(thread, number)));
        }
    });
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["orders"], &metrics["arpu"]), (&json!(120), &json!(20)));
}

#[test]
fn of_the_same_event_at_the_same_moment_one_is_recorded() {
    let tenant = Tenant::new();
    for round in 0..10 {
        let order = json!({"name": "order", "user_id": "ada", "value": 1, "external_id": format!("o-{round}")});
        let answers: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| tenant.track(&order).ok(202))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer["status"] == "recorded").count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer["id"] == answers[0]["id"]), "{answers:?}");
    }
    assert_eq!(tenant.metrics(&tenant.project)["orders"], 10);
}

#[test]
fn cookieless_visitors_are_agents_of_a_day() {
    let tenant = Tenant::new();
    let off = tenant.project(&json!({"cookieless": false}));
    let visit = |key: &str, agent: &str, at_ms: i64| {
        let body = json!({"name": "pageview", "timestamp": at_ms});
        assert_eq!(tenant.send(Call::post("/track").key(key).agent(agent).json(&body)).status, 202);
    };
    let noon = now_ms() / 86_400_000 * 86_400_000 - 12 * 3_600_000;
    for key in [&tenant.key, &off.key] {
        visit(key, BROWSER, noon);
        visit(key, BROWSER, noon + 1_000);
        visit(key, "Mozilla/5.0 (Macintosh) Firefox/125.0", noon);
    }
    assert_eq!(tenant.users(&tenant.project), 2, "two agents on one day");
    visit(&tenant.key, BROWSER, noon - 86_400_000);
    assert_eq!(tenant.users(&tenant.project), 3, "another day, another visitor");
    assert_eq!(tenant.users(&off.id), 0, "without ids nobody, where that is not wanted");
}

#[test]
fn money_from_browsers_may_be_left_out() {
    let tenant = Tenant::new();
    let strict = tenant.project(&json!({"server_only_revenue": true}));
    let order = json!({"name": "order", "user_id": "ada", "value": 5});
    assert_eq!(tenant.send(Call::post("/track").key(&strict.key).json(&order)).status, 202);
    assert_eq!(tenant.metrics(&strict.id)["orders"], 0);
    assert_eq!(tenant.users(&strict.id), 1, "the event counts, its money doesn't");
    let answer = tenant.post(&format!("/projects/{}/track", strict.id), &order);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let metrics = tenant.metrics(&strict.id);
    assert_eq!((&metrics["orders"], &metrics["total_revenue"]), (&json!(1), &json!(5)));
}

#[test]
fn money_is_exact() {
    let tenant = Tenant::new();
    for value in ["0.1", "0.2", "1e-6", "999999999999.999999"] {
        let body = format!("{{\"name\": \"order\", \"user_id\": \"ada\", \"value\": {value}}}");
        assert_eq!(tenant.send(Call::post("/track").key(&tenant.key).text("application/json", body)).status, 202);
    }
    let path = tenant.path("revenue/metrics?start_date=2020-01-01&end_date=2028-12-31");
    let text = tenant.get(&path).text();
    assert!(text.contains("\"total_revenue\":1000000000000.3,"), "0.1 + 0.2 + 0.000001 + 999999999999.999999: {text}");
}

#[test]
fn what_was_probably_not_meant_is_answered_with_a_warning() {
    let tenant = Tenant::new();
    let table = [
        (json!({"name": "a", "value": 5, "currency": "EUR"}), Some("EUR has no rate")),
        (json!({"name": "a", "value": 5, "currency": "USD"}), None),
        (json!({"name": "a", "currency": "EUR"}), None),
        (json!({"name": "a", "userId": "ada"}), Some("`user_id`")),
        (json!({"name": "a", "userId": 5, "user_id": ""}), Some("`user_id`")),
        (json!({"name": "a", "userId": "ada", "user_id": "ada"}), None),
        (json!({"name": "a", "anonymousId": "a1"}), Some("`anonymous_id`")),
        (json!({"name": "a"}), None),
    ];
    for (event, expected) in &table {
        for path in ["/i", "/track"] {
            let answer = tenant.send(Call::post(path).key(&tenant.key).agent(BROWSER).json(event)).ok(202);
            assert_eq!(answer["status"], "recorded", "{answer}");
            match expected {
                None => assert!(answer.get("warnings").is_none(), "{answer}"),
                Some(words) => {
                    let warnings = answer["warnings"].as_array().unwrap_or_else(|| panic!("no warning: {answer}"));
                    let says = |warning: &Value| warning["message"].as_str().is_some_and(|said| said.contains(words));
                    assert!(warnings.len() == 1 && says(&warnings[0]), "{answer}");
                }
            }
        }
    }
    let seconds = tenant.track(&json!({"name": "a", "timestamp": crate::tenant::now_ms() / 1000})).ok(202);
    assert_eq!(seconds["warnings"][0]["code"], "timestamp_in_seconds", "{seconds}");
}
