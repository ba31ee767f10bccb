//! Rate limits of public keys. No test here depends on how quick it is: keys are brought into a
//! debt of minutes by a batch, and what comes back while a request is answered is allowed for.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

const PAGE: &str = "https://shop.example";
/// How many events the batch has that uses a limit up.
const MANY: usize = 300;
/// The event of the pixel: `{"name":"a"}` in base64url.
const PIXEL_EVENT: &str = "eyJuYW1lIjoiYSJ9";

/// A key of the tenant's project with this limit.
fn limited_key(tenant: &Tenant, limit: &Value) -> String {
    let key = tenant.post(&tenant.path("keys"), &json!({})).field("public_key");
    set(tenant, &key, limit).ok(200);
    key
}

fn set(tenant: &Tenant, key: &str, limit: &Value) -> Answer {
    tenant.patch(&tenant.path(&format!("keys/{key}")), limit)
}

/// A batch of users that no other request sends.
fn batch(users: &str, events: usize) -> Value {
    json!({"events": (0..events).map(|i| json!({"name": "a", "user_id": format!("{users}{i}")})).collect::<Vec<_>>()})
}

/// Every way to send one event with a key: by name, and whether its key is in the query.
fn ways(key: &str) -> [(&'static str, u16, Call); 6] {
    let event = json!({"name": "a"});
    [
        ("POST /i", 202, Call::post("/i").key(key).json(&event)),
        ("POST /track", 202, Call::post("/track").key(key).json(&event)),
        ("a beacon to /i", 202, Call::post(format!("/i?pk={key}")).text("text/plain", event.to_string())),
        ("a beacon to /track", 202, Call::post(format!("/track?pk={key}")).text("text/plain", event.to_string())),
        ("POST /i/batch", 202, Call::post("/i/batch").key(key).json(&json!({"events": [event]}))),
        ("GET /i", 200, Call::get(format!("/i?pk={key}&d={PIXEL_EVENT}"))),
    ]
}

fn number(answer: &Answer, header: &str) -> u64 {
    let value = answer.header(header).unwrap_or_else(|| panic!("no {header}: {answer:?}"));
    value.parse().unwrap_or_else(|_| panic!("{header}: {value}"))
}

fn has_limit_headers(answer: &Answer) -> bool {
    answer.headers.iter().any(|(name, _)| name.starts_with("ratelimit-"))
}

/// Sends what counts as `cost` events on a full bucket of `burst`, filled by one a second.
#[track_caller]
fn send_on_full(tenant: &Tenant, what: &str, call: &Call, burst: u64, cost: u64) -> Answer {
    let began = Instant::now();
    let answer = tenant.send(call.clone());
    let back = began.elapsed().as_secs();
    let (left, reset) = (number(&answer, "ratelimit-remaining"), number(&answer, "ratelimit-reset"));
    assert_eq!(number(&answer, "ratelimit-limit"), burst, "{what}");
    assert!((burst - cost..=(burst - cost + back).min(burst)).contains(&left), "{what}: {left} after {back} s");
    assert!((cost.saturating_sub(back)..=cost).contains(&reset), "{what}: {reset} after {back} s");
    answer
}

/// A refusal of a key of one event a second, `burst` at once, that is in debt.
#[track_caller]
fn assert_used_up(what: &str, answer: &Answer, burst: u64) {
    assert_refused(what, answer, 429, "rate_limited", None);
    assert_eq!((number(answer, "ratelimit-limit"), number(answer, "ratelimit-remaining")), (burst, 0), "{what}");
    let (retry_after, reset) = (number(answer, "retry-after"), number(answer, "ratelimit-reset"));
    assert!((1..=MANY as u64).contains(&retry_after), "{what}: {retry_after}");
    // The bucket is full later than its first token comes, by the other tokens.
    assert!(reset + 10 >= retry_after + burst - 1 && reset <= MANY as u64 + burst, "{what}: {retry_after}, {reset}");
}

#[test]
fn every_way_in_obeys_the_limit_of_its_key() {
    let tenant = Tenant::new();
    let other = limited_key(&tenant, &json!({"rate_limit": 1}));
    for way in 0..ways("").len() {
        let key = limited_key(&tenant, &json!({"rate_limit": 1, "burst": 50}));
        let (what, status, call) = ways(&key)[way].clone();
        let call = call.header("origin", PAGE);
        let taken = send_on_full(&tenant, what, &call, 50, 1);
        assert_eq!((taken.status, taken.header("retry-after")), (status, None), "{what}: {}", taken.text());

        tenant.send(Call::post("/i/batch").key(&key).json(&batch("u", MANY))).ok(202);
        let refused = tenant.send(call);
        assert_used_up(what, &refused, 50);
        for answer in [&taken, &refused] {
            assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{what}");
            let exposed = answer.header("access-control-expose-headers").unwrap_or_default();
            for name in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"] {
                assert!(exposed.split(", ").any(|header| header == name), "{what}: {exposed}");
            }
        }
        tenant.delete(&tenant.path(&format!("keys/{key}"))).ok(204);
    }
    for (what, status, call) in ways(&tenant.key) {
        let free = tenant.send(call);
        assert_eq!((free.status, has_limit_headers(&free)), (status, false), "{what}, of a key without a limit");
    }
    assert_eq!(tenant.send(Call::post("/i").key(&other).json(&json!({"name": "a"}))).status, 202, "its limit is its own");
}

#[test]
fn a_batch_is_taken_whole_or_refused_whole() {
    let tenant = Tenant::new();
    let key = limited_key(&tenant, &json!({"rate_limit": 1, "burst": 10}));
    let send = |users: &str, events: usize| tenant.send(Call::post("/i/batch").key(&key).json(&batch(users, events)));
    // More than the burst will ever have room for: one is left, so that it is taken, and leaves a
    // debt.
    let taken = send("first", MANY);
    assert_eq!(taken.ok(202)["recorded"], MANY);
    assert_eq!((number(&taken, "ratelimit-limit"), number(&taken, "ratelimit-remaining")), (10, 0));
    assert_eq!(tenant.users(&tenant.project), MANY as u64);
    for events in [2, 1, 0] {
        assert_used_up(&format!("a batch of {events}"), &send("second", events), 10);
    }
    let early = Call::post("/i/batch").key(&key).text("application/json", vec![b' '; 5 << 20]);
    assert_used_up("a body over its limit, which is not read", &tenant.send(early), 10);
    assert_eq!(tenant.users(&tenant.project), MANY as u64, "nothing of what was refused was recorded");
}

#[test]
fn every_answer_of_a_limited_key_says_what_is_left() {
    let tenant = Tenant::new();
    let key = limited_key(&tenant, &json!({"rate_limit": 1, "burst": 1000}));
    let post = |path: &str| Call::post(path).key(&key);
    let event = json!({"name": "a"});
    let table = [
        // what, request, status, how many events it counts as
        ("no JSON", post("/i").text("application/json", "{"), 400, 1),
        ("no name", post("/track").json(&json!({})), 400, 1),
        ("a batch of nothing", post("/i/batch").json(&json!({"events": []})), 202, 1),
        ("an empty batch", post("/i/batch").json(&json!([])), 400, 1),
        ("a batch with invalid events", post("/i/batch").json(&json!({"events": [event, 1, 2]})), 202, 3),
        ("another content type", post("/i").text("text/html", "<p>"), 415, 0),
        ("too long a body", post("/i").text("application/json", vec![b' '; 70 << 10]), 413, 0),
        ("a pixel without an event", Call::get(format!("/i?pk={key}")), 400, 0),
        ("a crawler", post("/i").agent("Googlebot/2.1").json(&event), 202, 1),
    ];
    for (what, call, status, cost) in table {
        set(&tenant, &key, &json!({"rate_limit": 0})).ok(200);
        set(&tenant, &key, &json!({"rate_limit": 1, "burst": 1000})).ok(200);
        let answer = send_on_full(&tenant, what, &call, 1000, cost);
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
    }
    let patch = json!({"allowed_origins": ["https://other.example"]});
    tenant.patch(&format!("/projects/{}", tenant.project), &patch).ok(200);
    let forbidden = tenant.send(post("/i").header("origin", PAGE).json(&event));
    assert_refused("a page that may not send", &forbidden, 403, "origin_forbidden", None);
    assert_eq!(number(&forbidden, "ratelimit-limit"), 1000);

    let unlimited = [
        ("no key", Call::post("/i").json(&event), 401),
        ("a preflight", Call::new("OPTIONS", "/i").header("origin", PAGE), 204),
        ("a server", Call::post(tenant.path("track")).bearer(&tenant.token).json(&event), 202),
        ("management", Call::get(tenant.path("keys")).bearer(&tenant.token), 200),
    ];
    for (what, call, status) in unlimited {
        let answer = tenant.send(call);
        assert_eq!((answer.status, has_limit_headers(&answer)), (status, false), "{what}");
    }
}

#[test]
fn a_limit_is_set_shown_changed_and_taken_away() {
    let tenant = Tenant::new();
    let (first, second) = (tenant.key.clone(), tenant.post(&tenant.path("keys"), &json!({})).field("public_key"));
    let shown = |key: &str, rate: u32, burst: u32| json!({"public_key": key, "rate_limit": rate, "burst": burst});
    let list = || tenant.get(&tenant.path("keys")).ok(200);
    assert_eq!(list(), json!({"keys": [shown(&first, 0, 0), shown(&second, 0, 0)], "truncated": false}));
    let table = [
        // body, rate_limit, burst
        (json!({}), 0, 0),
        (json!({"rate_limit": 20}), 20, 20),
        (json!({"rate_limit": 30, "burst": null}), 30, 30),
        (json!({"burst": 100}), 30, 100),
        (json!({"rate_limit": 40}), 40, 100),
        (json!({"rate_limit": 0}), 0, 0),
        (json!({"rate_limit": 1, "burst": 1}), 1, 1),
        (json!({"rate_limit": 0, "burst": 0}), 0, 0),
        (json!({"rate_limit": 1_000_000, "burst": 1_000_000}), 1_000_000, 1_000_000),
    ];
    for (body, rate, burst) in table {
        assert_eq!(set(&tenant, &second, &body).ok(200), shown(&second, rate, burst), "{body}");
        assert_eq!(list()["keys"], json!([shown(&first, 0, 0), shown(&second, rate, burst)]), "{body}");
    }
    let bad = [
        (r#"{"rate_limit": -1}"#, "invalid_parameter", "rate_limit"),
        (r#"{"rate_limit": 1000001}"#, "invalid_parameter", "rate_limit"),
        (r#"{"rate_limit": 99999999999999999999}"#, "invalid_parameter", "rate_limit"),
        (r#"{"rate_limit": 1.5}"#, "invalid_parameter", "rate_limit"),
        (r#"{"rate_limit": "10"}"#, "invalid_parameter", "rate_limit"),
        (r#"{"rate_limit": true}"#, "invalid_parameter", "rate_limit"),
        (r#"{"burst": 0}"#, "invalid_parameter", "burst"),
        (r#"{"burst": -5}"#, "invalid_parameter", "burst"),
        (r#"{"burst": 1000001}"#, "invalid_parameter", "burst"),
        (r#"{"rate_limit": 0, "burst": 5}"#, "invalid_parameter", "burst"),
        (r#"{"rate": 5}"#, "unknown_parameter", "rate"),
    ];
    for (body, code, param) in bad {
        let call = Call::patch(tenant.path(&format!("keys/{second}"))).bearer(&tenant.token).text("application/json", body);
        let answer = tenant.send(call);
        assert_refused(body, &answer, 400, code, Some(param));
        assert_eq!(list()["keys"][1], shown(&second, 1_000_000, 1_000_000), "{body} changes nothing");
    }
    let message = set(&tenant, &second, &json!({"rate_limit": 2_000_000})).json()["error"]["message"].clone();
    assert_eq!(message, "must be 0 (no limit) to 1000000 events a second, is 2000000");
    let unknown = set(&tenant, &format!("pk_{}", "0".repeat(32)), &json!({"rate_limit": 1}));
    assert_refused("an unknown key", &unknown, 404, "not_found", None);
    assert_refused("another's key", &set(&tenant, &Tenant::new().key, &json!({"rate_limit": 1})), 404, "not_found", None);
}

#[test]
fn a_limit_holds_from_the_next_request_on_and_over_restarts() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let sibling = tenant.project(&json!({}));
    let key = tenant.key.clone();
    let event = json!({"name": "a"});
    let send = |key: &str| tenant.send(Call::post("/i").key(key).json(&event));
    let use_up = || tenant.send(Call::post("/i/batch").key(&key).json(&batch("u", MANY))).ok(202);
    assert!(!has_limit_headers(&send(&key)));
    set(&tenant, &key, &json!({"rate_limit": 1})).ok(200);
    use_up();
    assert_used_up("at once", &send(&key), 1);
    assert_eq!(send(&sibling.key).status, 202, "of the same organization");
    // What changes something else leaves the debt as it is, and so does the same limit again.
    tenant.patch(&format!("/projects/{}", tenant.project), &json!({"name": "new"})).ok(200);
    set(&tenant, &key, &json!({"rate_limit": 1})).ok(200);
    assert_used_up("after another change", &send(&key), 1);
    set(&tenant, &key, &json!({"rate_limit": 2, "burst": 60})).ok(200);
    assert_eq!(send(&key).status, 202, "another limit begins full");
    use_up();
    assert_eq!(send(&key).status, 429);
    set(&tenant, &key, &json!({"rate_limit": 0})).ok(200);
    let free = send(&key);
    assert_eq!((free.status, has_limit_headers(&free)), (202, false));
    let metrics = || tenant.get("/metrics").text();
    assert!(metrics().lines().any(|line| line == "headcount_rate_limit_refusals_total 3"), "{}", metrics());

    set(&tenant, &key, &json!({"rate_limit": 1, "burst": 60})).ok(200);
    for restart in [TestServer::restart, TestServer::kill] {
        restart(&server);
        assert_eq!(tenant.get(&tenant.path("keys")).ok(200)["keys"][0]["burst"], 60);
        assert_eq!(number(&send(&key), "ratelimit-limit"), 60, "it begins full");
        use_up();
        assert_used_up("after a restart", &send(&key), 60);
        assert!(!has_limit_headers(&send(&sibling.key)));
    }
}
