//! What a visitor, a browser or a careless program gets wrong costs a detail, never the event,
//! whichever way it comes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::segment;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant, now_ms};

/// An event in which much is wrong, and the codes of its repairs in order.
fn spoiled() -> (Value, [&'static str; 5]) {
    let event = json!({
        "name": "order", "user_id": "undefined", "anonymous_id": 4711, "value": "49.90", "currency": " usd ", "screen": {},
        "group_type": "Team X", "group_id": "t", "url": format!("https://shop.example/%C3%BC?{}", "x".repeat(5_000)),
        "metadata": (0..140).map(|key| (format!("k{key}"), json!(key))).collect::<serde_json::Map<_, _>>(),
    });
    (event, ["field_ignored", "group_ignored", "metadata_trimmed", "placeholder_id", "text_cut"])
}

fn codes(warnings: &Value) -> Vec<&str> {
    let mut codes: Vec<_> = warnings.as_array().into_iter().flatten().map(|warning| warning["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    codes
}

#[test]
fn every_way_in_repairs_alike() {
    let tenant = Tenant::new();
    let (event, expected) = spoiled();
    let by_server = tenant.path("track");
    for call in [
        Call::post("/i").key(&tenant.key).agent(BROWSER),
        Call::post("/track").key(&tenant.key).agent(BROWSER),
        Call::post(&*by_server).bearer(&tenant.token),
    ] {
        assert_eq!(codes(&tenant.send(call.json(&event)).ok(202)["warnings"]), expected);
    }
    let batch = json!({"events": [{"name": "fine"}, event, {}]});
    for (path, is_server) in [("/i/batch", false), (&*tenant.path("batch"), true), (&*tenant.path("import"), true)] {
        let call = if is_server { Call::post(path).bearer(&tenant.token) } else { Call::post(path).key(&tenant.key) };
        let answer = tenant.send(call.json(&batch)).ok(202);
        assert_eq!((&answer["recorded"], &answer["errors"][0]["index"]), (&json!(2), &json!(2)), "{path}");
        assert_eq!(codes(&answer["warnings"]), expected, "{path}");
        assert!(answer["warnings"].as_array().unwrap().iter().all(|warning| warning["index"] == 1), "{path}");
    }
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(299.4), &json!(6)));
    assert_eq!(tenant.get("/identities/profile?user_id=undefined").status, 404);
    let intake = tenant.get(&tenant.path("intake")).ok(200);
    assert_eq!(
        intake["repaired"],
        json!(expected.map(|code| (code, 6)).into_iter().collect::<std::collections::BTreeMap<_, _>>())
    );
    let pages = json!({"start_date": "2020-01-01", "group_by": "url", "event_name": "order"});
    let pages = tenant.post(&tenant.path("analytics/aggregate"), &pages).ok(200);
    assert_eq!(pages["rows"], json!([{"value": "https://shop.example/ü", "count": 6}]));
}

#[test]
fn a_batch_lists_its_first_100_warnings_and_counts_all() {
    let tenant = Tenant::new();
    let batch = json!({"events": vec![json!({"name": "a", "user_id": "null", "value": true}); 80]});
    let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&batch)).ok(202);
    let warnings = answer["warnings"].as_array().unwrap();
    assert_eq!((&answer["recorded"], warnings.len(), &warnings[99]["index"]), (&json!(80), 100, &json!(49)));
    let repaired = &tenant.get(&tenant.path("intake")).ok(200)["repaired"];
    assert_eq!(*repaired, json!({"placeholder_id": 80, "value_ignored": 80}));
}

#[test]
fn messages_of_segment_are_repaired() {
    let tenant = Tenant::new();
    let mut properties = json!({"revenue": "25.50", "order_id": 7, "currency": "usd"});
    for number in 0..137 {
        properties[format!("p{number}")] = json!(number);
    }
    let order = |id: &str| json!({"type": "track", "event": "Order Completed", "userId": "ada", "messageId": id, "properties": properties});
    // The page is loaded again, and another SDK tells the same.
    for id in ["m-1", "m-2"] {
        let answer = segment::send(&tenant, "/v1/track", &order(id)).ok(200);
        assert_eq!(answer["warnings"][0]["code"], "metadata_trimmed", "{answer}");
        assert_eq!((&answer["success"], &answer["warnings"][0]["param"]), (&json!(true), &json!("properties")));
    }
    let batch =
        json!({"batch": [order("m-3"), {"type": "page"}, {"type": "identify", "userId": "undefined", "anonymousId": "a-1"}]});
    let answer = segment::send(&tenant, "/v1/batch", &batch).ok(200);
    let places: Vec<_> =
        answer["warnings"].as_array().unwrap().iter().map(|warning| (&warning["index"], &warning["param"])).collect();
    assert_eq!(places, [(&json!(0), &json!("properties")), (&json!(2), &json!("userId"))]);
    assert_eq!(answer["errors"], Value::Null);
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(25.5), &json!(1)));
}

/// posthog#10111 and its kind.
#[test]
fn proxies_write_addresses_in_many_ways() {
    let server = Arc::new(TestServer::start_with(&["--trusted-proxies", "127.0.0.1,10.0.0.0/8"]));
    let tenant = Tenant::on(&server);
    let visit = |name: &str, value: &str| {
        let call = Call::post("/track").key(&tenant.key).agent(BROWSER).header(name, value);
        assert_eq!(tenant.send(call.json(&json!({"name": "pageview"}))).status, 202, "{name}: {value}");
    };
    for value in ["203.0.113.9", "203.0.113.9:41234", " 203.0.113.9 , 10.0.0.7:80", "[::ffff:203.0.113.9]:443, 10.0.0.7"] {
        visit("x-forwarded-for", value);
    }
    for value in ["for=203.0.113.9", "For=\"203.0.113.9:80\";proto=https, for=10.0.0.7", "for=\"[::ffff:203.0.113.9]\""] {
        visit("forwarded", value);
    }
    assert_eq!(tenant.users(&tenant.project), 1);
    visit("x-forwarded-for", "[2001:db8::1]:443");
    visit("forwarded", "for=\"[2001:db8::1]\"");
    assert_eq!(tenant.users(&tenant.project), 2);
}

/// fathom#129: a visitor of an evening in New York is one, though UTC has another day by then.
#[test]
fn visitors_live_by_the_organizations_day() {
    let tenant = Tenant::new();
    tenant.patch("/organization", &json!({"timezone": "America/New_York"})).ok(200);
    // An hour before and after midnight in UTC, some days ago, are 18 to 21 o'clock there.
    let midnight = now_ms() / 86_400_000 * 86_400_000 - 3 * 86_400_000;
    for at_ms in [midnight - 3_600_000, midnight + 3_600_000] {
        tenant.recorded(&json!({"name": "pageview", "timestamp": at_ms}));
    }
    assert_eq!(tenant.users(&tenant.project), 1);
    tenant.recorded(&json!({"name": "pageview", "timestamp": midnight + 12 * 3_600_000}));
    assert_eq!(tenant.users(&tenant.project), 2);
}

#[test]
fn no_bytes_are_an_error_of_the_server() {
    let tenant = Tenant::new();
    let body = json!({"name": "order", "user_id": "ada é 😀", "value": 5.5, "metadata": {"a": [1, null]}, "timestamp": now_ms()})
        .to_string();
    let mut bodies: Vec<Vec<u8>> = (0..body.len()).map(|length| body.as_bytes()[..length].to_vec()).collect();
    for place in 0..body.len() {
        for byte in [b'"', b'\\', 0xff, 0xc3, b'{'] {
            let mut spoiled = body.clone().into_bytes();
            spoiled[place] = byte;
            bodies.push(spoiled);
        }
    }
    for (number, body) in bodies.into_iter().enumerate() {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let call = if number % 2 == 0 { Call::post("/track").key(&tenant.key) } else { Call::post("/i").key(&tenant.key) };
        let answer = tenant.send(call.text("application/json", body));
        let is_reason = || {
            let error = &answer.json()["error"];
            error["code"] == "invalid_json" || ["name", "timestamp"].iter().any(|param| error["param"] == *param)
        };
        assert!(answer.status == 202 || (answer.status == 400 && is_reason()), "{shown}: {} {}", answer.status, answer.text());
    }
}
