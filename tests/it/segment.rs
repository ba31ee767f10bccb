//! Segment's HTTP API, as its SDKs use it. `tests/segment` has the SDKs themselves.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant, now_ms, rfc3339};

const PAGE: &str = "https://shop.example";

pub(crate) fn basic(key: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{key}:")))
}

fn call(tenant: &Tenant, path: &str) -> Call {
    Call::post(path).header("authorization", basic(&tenant.key))
}

pub(crate) fn send(tenant: &Tenant, path: &str, body: &Value) -> Answer {
    tenant.send(call(tenant, path).json(body))
}

fn done() -> Value {
    json!({"success": true})
}

/// The recorded events, the latest first.
fn events(tenant: &Tenant) -> Vec<Value> {
    let answer = tenant.get(&tenant.path("events?start_date=2020-01-01")).ok(200);
    answer["events"].as_array().unwrap().clone()
}

fn track(user: &str, event: &str, properties: Value) -> Value {
    json!({"type": "track", "userId": user, "event": event, "properties": properties})
}

#[test]
fn a_batch_is_counted_once_answered() {
    let tenant = Tenant::new();
    let batch = json!({
        "batch": [
            {"type": "page", "anonymousId": "a-1", "messageId": "m-1", "context": {"page": {"url": "https://shop.example/a"}}},
            {"type": "identify", "anonymousId": "a-1", "userId": "ada", "messageId": "m-2", "traits": {"email": "ada@acme.com"}},
            {"type": "track", "userId": "ada", "event": "Order Completed", "messageId": "m-3", "properties": {"revenue": 25.5}},
            {"type": "group", "userId": "ben", "groupId": "globex.com", "messageId": "m-4", "traits": {"name": "Globex"}},
        ],
        "sentAt": rfc3339(now_ms()),
    });
    for _ in 0..2 {
        assert_eq!(send(&tenant, "/v1/batch", &batch).ok(200), done(), "a message counts once");
    }
    assert_eq!(tenant.users(&tenant.project), 2, "the page was ada's");
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(25.5), &json!(1)));
    assert_eq!(tenant.get("/companies/lookup?domain=globex.com").ok(200)["name"], "Globex");
    let profile = tenant.get("/identities/profile?email=ada%40acme.com").ok(200);
    assert_eq!((&profile["events"], &profile["pageviews"]), (&json!(3), &json!(1)));
    assert_eq!(tenant.get(&tenant.path("intake")).ok(200)["duplicates"], 4);
}

#[test]
fn bad_messages_of_a_batch_are_listed_beside_the_good_ones() {
    let tenant = Tenant::new();
    let long = json!({"type": "track", "userId": "u", "event": "e", "properties": {"a": vec!["x".repeat(8_000); 9]}});
    let batch = json!({"batch": [
        track("ada", "a", json!({})),
        {"type": "track", "event": "nobody"},
        5,
        {"type": "delete", "userId": "u"},
        track("ben", "b", json!({"revenue": "much"})),
        long,
        track("eva", "c", json!({})),
    ]});
    let body = send(&tenant, "/v1/batch", &batch).ok(200);
    let errors: Vec<(u64, &str, Option<&str>)> = body["errors"].as_array().unwrap().iter().map(error).collect();
    let expected = [(2, "invalid_json", None), (3, "invalid_parameter", Some("type")), (5, "event_too_large", None)];
    assert_eq!((&body["success"], &errors[..]), (&json!(true), &expected[..]));
    let warning = &body["warnings"][0];
    let named = [&warning["index"], &warning["code"], &warning["param"]];
    assert_eq!(named, [&json!(4), &json!("value_ignored"), &json!("properties.revenue")]);
    assert_eq!(tenant.users(&tenant.project), 3);
    let all_bad = send(&tenant, "/v1/import", &json!({"batch": [{"type": "track"}]})).ok(200);
    assert_eq!(all_bad["errors"].as_array().map(Vec::len), Some(1));
    assert_eq!(tenant.get(&tenant.path("intake")).ok(200)["invalid"], 4);
    assert_eq!(send(&tenant, "/v1/batch", &json!({"batch": []})).ok(200), done());
}

fn error(error: &Value) -> (u64, &str, Option<&str>) {
    (error["index"].as_u64().unwrap(), error["code"].as_str().unwrap(), error["param"].as_str())
}

#[test]
fn the_key_is_in_the_header_or_in_the_body() {
    let tenant = Tenant::new();
    let other = tenant.project(&json!({}));
    let message = |user: &str, key: &str| json!({"userId": user, "event": "e", "writeKey": key});
    let keyed = |path: &str, body: &Value| tenant.send(Call::post(path).text("text/plain", body.to_string()));
    assert_eq!(keyed("/v1/t", &message("ada", &tenant.key)).ok(200), done());
    let batch = json!({"batch": [track("ben", "e", json!({}))], "writeKey": tenant.key});
    assert_eq!(keyed("/v1/b/", &batch).ok(200), done());
    // The header decides, unless it names nobody.
    assert_eq!(send(&tenant, "/v1/track", &message("eva", &other.key)).ok(200), done());
    let nobody = Call::post("/v1/track").header("authorization", basic("")).json(&message("kim", &other.key));
    assert_eq!(tenant.send(nobody).ok(200), done());
    assert_eq!((tenant.users(&tenant.project), tenant.users(&other.id)), (3, 1));

    let refused = |what: &str, call: Call| assert_refused(what, &tenant.send(call), 401, "invalid_credential", None);
    refused("no key", Call::post("/v1/t").json(&json!({"userId": "ada", "event": "e"})));
    refused("an unknown key", Call::post("/v1/t").json(&message("ada", "pk_unknown")));
    refused("an API token", Call::post("/v1/t").bearer(&tenant.token).json(&message("ada", &tenant.key)));
    let twice = call(&tenant, "/v1/t").header("authorization", basic(&tenant.key)).json(&message("ada", ""));
    assert_refused("two headers", &tenant.send(twice), 400, "duplicate_credentials", None);
}

#[test]
fn bodies_may_be_compressed_up_to_their_limits() {
    let tenant = Tenant::new();
    let gzip = |body: &Value| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(body.to_string().as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    let batch =
        |padding: usize| json!({"batch": [track("ada", "e", json!({}))], "writeKey": tenant.key, "x": "x".repeat(padding)});
    for (what, begin) in [("by header", call(&tenant, "/v1/batch")), ("by body", Call::post("/v1/batch"))] {
        let send = |padding: usize| {
            let body = gzip(&batch(padding));
            tenant.send(begin.clone().header("content-encoding", "gzip").text("text/plain", body))
        };
        assert_eq!(send(1 << 20).ok(200), done(), "{what}");
        assert_refused(what, &send(4 << 20), 413, "body_too_large", None);
        let broken = begin.clone().header("content-encoding", "gzip").text("application/json", "no gzip");
        assert_refused(what, &tenant.send(broken), 400, "invalid_encoding", None);
    }
    let chunks = gzip(&batch(0)).chunks(10).map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(tenant.send(Call::post("/v1/b").header("content-encoding", "gzip").chunked(chunks)).ok(200), done());
    let single = json!({"userId": "ada", "event": "e", "x": "x".repeat(64 << 10)});
    assert_refused("a single message", &send(&tenant, "/v1/track", &single), 413, "body_too_large", None);
    let many = json!({"batch": vec![track("ada", "e", json!({})); 5_001]});
    assert_refused("5,001 messages", &send(&tenant, "/v1/batch", &many), 400, "invalid_parameter", Some("batch"));
}

#[test]
fn an_order_and_its_refund_are_one_order_and_no_revenue() {
    let tenant = Tenant::new();
    for event in ["Product Added", "Checkout Started", "Payment Info Entered", "Order Updated"] {
        send(&tenant, "/v1/track", &track("ada", event, json!({"revenue": 25, "total": 30}))).ok(200);
    }
    send(&tenant, "/v1/track", &track("ada", "Order Completed", json!({"revenue": 25, "currency": "USD"}))).ok(200);
    assert_eq!(tenant.metrics(&tenant.project)["total_revenue"], 25);
    send(&tenant, "/v1/track", &track("ada", "Order Refunded", json!({"total": 25, "currency": "USD"}))).ok(200);
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(0), &json!(1)));
}

#[test]
fn the_agent_is_that_of_the_user_and_never_the_sdk() {
    let tenant = Tenant::new();
    let message = |user: &str, context: Value| json!({"userId": user, "event": "e", "context": context});
    let from = |agent: &str, body: &Value| call(&tenant, "/v1/track").agent(agent).json(body);
    let device = json!({"library": {"name": "analytics-kotlin"}});
    let server = json!({"library": {"name": "analytics-node"}});
    tenant.send(from(BROWSER, &message("server", server.clone()))).ok(200);
    tenant.send(from(BROWSER, &message("device", device))).ok(200);
    tenant.send(from(BROWSER, &message("page", json!({}))).header("origin", PAGE)).ok(200);
    let named = json!({"userAgent": BROWSER, "library": {"name": "analytics-node"}});
    tenant.send(from("analytics-node-next/latest", &message("named", named))).ok(200);
    // A crawler's own agent counts only where it is the user's.
    let crawler = "Googlebot/2.1 (+http://www.google.com/bot.html)";
    tenant.send(from(crawler, &message("by a crawler", server))).ok(200);
    tenant.send(from(crawler, &message("a crawler", json!({}))).header("origin", PAGE)).ok(200);
    let browsers: Vec<(String, Option<String>)> = events(&tenant)
        .iter()
        .map(|event| (event["user_id"].as_str().unwrap().to_owned(), event["browser"].as_str().map(str::to_owned)))
        .collect();
    for (user, browser) in [
        ("server", None),
        ("device", Some("Chrome")),
        ("page", Some("Chrome")),
        ("named", Some("Chrome")),
        ("by a crawler", None),
    ] {
        let found = browsers.iter().find(|(found, _)| found == user).unwrap_or_else(|| panic!("{user} of {browsers:?}"));
        assert_eq!(found.1.as_deref(), browser, "{user}");
    }
    assert!(!browsers.iter().any(|(user, _)| user == "a crawler"));
}

#[test]
fn times_are_corrected_by_the_clock_of_the_sender() {
    let tenant = Tenant::new();
    // The sender's clock is a day ahead; it happened an hour before it was sent.
    let (now, day, hour) = (now_ms(), 86_400_000, 3_600_000);
    let message = json!({"type": "track", "userId": "ada", "event": "e", "timestamp": rfc3339(now + day - hour)});
    send(&tenant, "/v1/batch", &json!({"batch": [message], "sentAt": rfc3339(now + day)})).ok(200);
    let at = events(&tenant)[0]["timestamp"].as_str().unwrap().to_owned();
    assert!((rfc3339(now - hour)..=rfc3339(now_ms() - hour)).contains(&at), "{at}");
}

#[test]
fn an_alias_links_an_anonymous_id() {
    let tenant = Tenant::new();
    for user in ["a-1", "a-2"] {
        send(&tenant, "/v1/page", &json!({"anonymousId": user})).ok(200);
    }
    assert_eq!(tenant.users(&tenant.project), 2);
    send(&tenant, "/v1/alias", &json!({"previousId": "a-1", "userId": "ada"})).ok(200);
    send(&tenant, "/v1/alias", &json!({"previousId": "a-2", "userId": "ada"})).ok(200);
    assert_eq!(tenant.users(&tenant.project), 1);
    // Users are never joined.
    send(&tenant, "/v1/track", &track("ben", "e", json!({}))).ok(200);
    send(&tenant, "/v1/alias", &json!({"previousId": "ben", "userId": "ada"})).ok(200);
    assert_eq!(tenant.users(&tenant.project), 2);
}

#[test]
fn origins_and_limits_of_a_key_hold() {
    let tenant = Tenant::new();
    let closed = tenant.project(&json!({"allowed_origins": [PAGE]}));
    let from = |origin: &str| {
        let message = json!({"userId": "ada", "event": "e", "writeKey": closed.key});
        tenant.send(Call::post("/v1/t").header("origin", origin).text("text/plain", message.to_string()))
    };
    assert_eq!(from(PAGE).header("access-control-allow-origin"), Some(PAGE));
    let refused = from("https://other.example");
    assert_refused("another origin", &refused, 403, "origin_forbidden", None);
    assert_eq!(refused.header("access-control-allow-origin"), None);
    assert_eq!(tenant.users(&closed.id), 1);

    let path = format!("/projects/{}/keys/{}", tenant.project, tenant.key);
    tenant.patch(&path, &json!({"rate_limit": 1, "burst": 3})).ok(200);
    let four = json!({"batch": vec![track("ada", "e", json!({})); 4]});
    let first = send(&tenant, "/v1/batch", &four);
    assert_eq!((first.ok(200), first.header("ratelimit-remaining")), (done(), Some("0")));
    let keyed = json!({"userId": "ada", "event": "e", "writeKey": tenant.key});
    for call in [call(&tenant, "/v1/t").json(&keyed), Call::post("/v1/t").json(&keyed)] {
        let refused = tenant.send(call.header("origin", PAGE));
        assert_refused("over the limit", &refused, 429, "rate_limited", None);
        assert!(refused.header("retry-after").is_some() && refused.header("access-control-allow-origin") == Some(PAGE));
    }
}

#[test]
fn settings_have_the_public_address() {
    let server = TestServer::start_with(&["--public-url", "https://stats.example/", "--query-origins", "https://board.example"]);
    let key = server.initial("public_key");
    let answer = server.send(&Call::get(format!("/v1/projects/{key}/settings")).header("origin", PAGE));
    let segment = json!({"apiKey": key, "apiHost": "stats.example/v1", "protocol": "https"});
    assert_eq!(answer.ok(200)["integrations"], json!({"Segment.io": segment}), "the only integration");
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    // Origins that may ask questions are none of the SDK's.
    let preflight = Call::new("OPTIONS", "/v1/t").header("origin", PAGE).header("access-control-request-method", "POST");
    let allowed = server.send(&preflight.header("access-control-request-headers", "authorization,x-retry-count"));
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (204, Some(PAGE)));
    let headers = allowed.header("access-control-allow-headers").unwrap_or_default();
    assert!(headers.contains("authorization") && headers.contains("x-retry-count"), "{headers}");
    let behind_a_proxy = TestServer::start_with(&["--trusted-proxies", "127.0.0.1"]);
    let key = behind_a_proxy.initial("public_key");
    let call = Call::get(format!("/v1/projects/{key}/settings")).header("host", "a.example").header("x-forwarded-proto", "https");
    let segment = json!({"apiKey": key, "apiHost": "a.example/v1", "protocol": "https"});
    assert_eq!(behind_a_proxy.send(&call).ok(200)["integrations"]["Segment.io"], segment);
}
