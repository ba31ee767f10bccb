//! Requests that reach a node about a project that another node has.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use headcount_domain::Instant;
use serde_json::{Value, json};
use ureq::http::{HeaderMap, Request};

use super::nodes::{Nodes, bytes, get, refusal, send, text};
use crate::server::HttpConfig;

const JSON: &str = "application/json";
const ORIGIN: &str = "https://shop.example";

fn event(name: &str) -> String {
    json!({"name": name, "user_id": "ada"}).to_string()
}

/// A request with a public key in the header.
fn by_key(uri: String, key: &str, body: String) -> Request<String> {
    Request::post(uri).header("x-service-pk", key).header("content-type", JSON).body(body).unwrap()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

#[actix_web::test]
async fn every_way_to_send_events_reaches_the_owner() {
    let further = |config: &mut HttpConfig| config.extra_paths.collect = Some("/stats/e".to_owned());
    let nodes = Nodes::start_with(further, further).await;
    let (url, key) = (&nodes.first.url, nodes.there.public_key.as_str());
    let basic = format!("Basic {}", STANDARD.encode(format!("{key}:")));
    let batch = json!({"events": [{"name": "e"}, {"name": "e"}]}).to_string();
    let message = json!({"userId": "ada", "event": "e", "writeKey": key}).to_string();
    let messages = json!({"batch": [{"type": "track", "userId": "ada", "event": "e"}], "writeKey": key}).to_string();
    let pixel = URL_SAFE_NO_PAD.encode(event("e"));
    let sent = [
        (by_key(format!("{url}/i"), key, event("e")), 202, 1),
        (by_key(format!("{url}/track"), key, event("e")), 202, 1),
        (by_key(format!("{url}/stats/e"), key, event("e")), 202, 1),
        (get(&format!("{url}/stats/e?pk={key}&d={pixel}")), 200, 1),
        (by_key(format!("{url}/i/batch"), key, batch.clone()), 202, 2),
        (Request::post(format!("{url}/i?pk={key}")).header("content-type", "text/plain").body(event("e")).unwrap(), 202, 1),
        (get(&format!("{url}/i?pk={key}&d={pixel}")), 200, 1),
        (Request::post(format!("{url}/v1/t")).header("authorization", &basic).body(message.clone()).unwrap(), 200, 1),
        (Request::post(format!("{url}/v1/track")).header("content-type", "text/plain").body(message).unwrap(), 200, 1),
        (Request::post(format!("{url}/v1/batch")).header("content-type", JSON).body(messages).unwrap(), 200, 1),
        (nodes.about_there("POST", "/track").header("content-type", JSON).body(event("e")).unwrap(), 202, 1),
        (nodes.about_there("POST", "/batch").header("content-type", JSON).body(batch.clone()).unwrap(), 202, 2),
        (nodes.about_there("POST", "/import").header("content-type", JSON).body(batch).unwrap(), 202, 2),
    ];
    let (requests, mut expected) = (sent.len() as u64, 0);
    for (request, status, events) in sent {
        let name = format!("{} {}", request.method(), request.uri());
        let (head, body) = bytes(request).await;
        assert_eq!(head.status(), status, "{name}: {}", String::from_utf8_lossy(&body));
        expected += events;
        assert_eq!(nodes.count("e").await, expected, "{name}");
    }
    let engines = (nodes.first.engine.vitals(), nodes.other.engine.vitals());
    assert_eq!((engines.0.log_position, engines.1.log_position), (0, expected));
    let answered = nodes.first.metric("headcount_forwarded_requests_total{outcome=\"answered\"}").await;
    assert_eq!(answered, 2 * requests, "each request, and a question after each");
    // Those of a project of its own stay.
    let (head, _) = text(by_key(format!("{url}/i"), &nodes.here.public_key, event("e"))).await;
    assert_eq!((head.status().as_u16(), nodes.first.engine.vitals().log_position), (202, 1));
}

#[actix_web::test]
async fn an_encoded_body_with_the_key_in_it_arrives() {
    use std::io::Write;
    let nodes = Nodes::start().await;
    let message = json!({"userId": "ada", "event": "é", "writeKey": nodes.there.public_key}).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(message.as_bytes()).unwrap();
    let body = gzip.finish().unwrap();
    let uri = format!("{}/v1/track", nodes.first.url);
    let status = actix_web::rt::task::spawn_blocking(move || {
        let request = Request::post(uri).header("content-encoding", "gzip").header("content-type", JSON).body(body);
        ureq::run(request.unwrap()).unwrap().status()
    });
    assert_eq!(status.await.unwrap(), 200);
    assert_eq!(nodes.count("é").await, 1);
}

#[actix_web::test]
async fn a_body_in_chunks_is_sent_on_whole() {
    let nodes = Nodes::start().await;
    let events: Vec<Value> = (0..2_000).map(|_| json!({"name": "chunked", "message": "m".repeat(500)})).collect();
    let body = json!({"events": events}).to_string();
    let request = nodes.about_there("POST", "/import").header("content-type", JSON);
    let answer = actix_web::rt::task::spawn_blocking(move || {
        let mut reader = std::io::Cursor::new(body);
        let request = request.body(ureq::SendBody::from_reader(&mut reader)).unwrap();
        ureq::run(request).unwrap().into_body().read_to_string().unwrap()
    });
    let answer: Value = serde_json::from_str(&answer.await.unwrap()).unwrap();
    assert_eq!(answer["recorded"], 2_000);
    assert_eq!(nodes.count("chunked").await, 2_000);
}

#[actix_web::test]
async fn answers_are_those_of_the_owner() {
    let nodes = Nodes::start().await;
    let events: Vec<Value> = (0..80).map(|i| json!({"name": format!("event {i}"), "user_id": "ada"})).collect();
    let batch = json!({"events": events}).to_string();
    text(nodes.about_there("POST", "/batch").header("content-type", JSON).body(batch).unwrap()).await;
    let question = json!({"start_date": "2020-01-01", "group_by": "name", "limit": 100}).to_string();
    let ask = |request: ureq::http::request::Builder| request.header("content-type", JSON).body(question.clone()).unwrap();
    let path = "/analytics/aggregate";
    for encoding in ["identity", "gzip", "br"] {
        let (through, own) = (
            bytes(ask(nodes.about_there("POST", path).header("accept-encoding", encoding))).await,
            bytes(ask(nodes.at_owner("POST", path).header("accept-encoding", encoding))).await,
        );
        assert_eq!(through.1, own.1, "{encoding}");
        for name in ["content-type", "content-encoding", "content-length", "etag", "vary", "cache-control"] {
            assert_eq!(header(through.0.headers(), name), header(own.0.headers(), name), "{encoding} {name}");
        }
    }
    let plain = nodes.at_owner("POST", path).header("accept-encoding", "identity");
    let tag = header(text(ask(plain)).await.0.headers(), "etag")[0].to_owned();
    let known = nodes.about_there("POST", path).header("if-none-match", &tag);
    let (head, body) = text(ask(known)).await;
    assert_eq!((head.status().as_u16(), body.as_str(), header(head.headers(), "etag")), (304, "", vec![&*tag]));
    // What changes the answer changes the tag, whichever node took the event.
    text(by_key(format!("{}/i", nodes.first.url), &nodes.there.public_key, event("another"))).await;
    let known = nodes.about_there("POST", path).header("if-none-match", &tag);
    assert_eq!(text(ask(known)).await.0.status(), 200);
    let (head, body) = text(nodes.about_there("HEAD", "/revenue/metrics").body(String::new()).unwrap()).await;
    let (own, _) = text(nodes.at_owner("HEAD", "/revenue/metrics").body(String::new()).unwrap()).await;
    assert_eq!((head.status().as_u16(), body.as_str()), (200, ""));
    assert_eq!(header(head.headers(), "content-length"), header(own.headers(), "content-length"));
}

#[actix_web::test]
async fn refusals_are_those_of_the_owner_and_strangers_learn_nothing() {
    let nodes = Nodes::start().await;
    let asked = nodes.about_there("GET", "/revenue/metrics?days=1").header("x-request-id", "req-7").body(String::new());
    let (head, body) = text(asked.unwrap()).await;
    let error: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((head.status().as_u16(), &error["error"]["code"]), (400, &json!("unknown_parameter")));
    assert_eq!((header(head.headers(), "x-request-id"), &error["error"]["request_id"]), (vec!["req-7"], &json!("req-7")));
    let body = json!({"batch": [], "writeKey": nodes.there.public_key}).to_string();
    let (_, invalid) = text(Request::post(format!("{}/v1/track", nodes.first.url)).body(body).unwrap()).await;
    assert_eq!(serde_json::from_str::<Value>(&invalid).unwrap()["success"], false, "{invalid}");
    // Strangers hear what the owner would say, and their requests go nowhere.
    let before = nodes.first.metric("headcount_forwarded_requests_total{outcome=\"answered\"}").await;
    let of_project = |id: &str, token: &str| {
        let uri = format!("{}/projects/{id}/revenue/metrics", nodes.first.url);
        Request::get(uri).header("authorization", format!("Bearer {token}")).body(String::new()).unwrap()
    };
    let (there, none) = (nodes.there.id.to_string(), "prj_00000000000");
    for id in [&*there, none] {
        assert_eq!(refusal(of_project(id, "sk_unknown")).await, (401, "invalid_credential".to_owned()), "{id}");
    }
    assert_eq!(refusal(of_project(none, &nodes.token)).await, (404, "not_found".to_owned()));
    assert_eq!(refusal(of_project("nonsense", &nodes.token)).await, (404, "not_found".to_owned()));
    let unknown = by_key(format!("{}/i", nodes.first.url), "pk_unknown", event("e"));
    assert_eq!(refusal(unknown).await, (401, "invalid_credential".to_owned()));
    assert_eq!(nodes.first.metric("headcount_forwarded_requests_total{outcome=\"answered\"}").await, before);
}

#[actix_web::test]
async fn pages_may_read_what_the_owner_lets_them() {
    let allow = |config: &mut HttpConfig| config.query_origins = vec![ORIGIN.to_owned()];
    let nodes = Nodes::start_with(allow, allow).await;
    let asked = nodes.about_there("GET", "/revenue/metrics").header("origin", ORIGIN).body(String::new()).unwrap();
    let (head, _) = text(asked).await;
    assert_eq!(header(head.headers(), "access-control-allow-origin"), [ORIGIN]);
    assert_eq!(header(head.headers(), "vary"), ["Origin"]);
    let mut sent = by_key(format!("{}/i", nodes.first.url), &nodes.there.public_key, event("e"));
    sent.headers_mut().insert("origin", ORIGIN.parse().unwrap());
    let (head, _) = text(sent).await;
    assert_eq!((head.status().as_u16(), header(head.headers(), "access-control-allow-origin")), (202, vec![ORIGIN]));
    assert_eq!(header(head.headers(), "access-control-allow-credentials"), ["true"]);
    let preflight = Request::options(format!("{}/projects/{}/live", nodes.first.url, nodes.there.id))
        .header("origin", ORIGIN)
        .header("access-control-request-method", "GET");
    assert_eq!(text(preflight.body(String::new()).unwrap()).await.0.status(), 204);
}

#[actix_web::test]
async fn a_stream_arrives_event_by_event() {
    let nodes = Nodes::start().await;
    let live = nodes.about_there("GET", "/live").body(String::new()).unwrap();
    let stream = send(live).await;
    assert_eq!((stream.status().as_u16(), header(stream.headers(), "content-type")), (200, vec!["text/event-stream"]));
    let mut reader = read_until(stream.into_body().into_reader(), "event: snapshot").await;
    for _ in 0..3 {
        text(by_key(format!("{}/i", nodes.first.url), &nodes.there.public_key, event("live"))).await;
        reader = read_until(reader, "event: delta").await;
    }
}

/// Reads frames up to one that has the word.
async fn read_until<R: Read + Send + 'static>(mut reader: R, word: &'static str) -> R {
    let read = move || {
        let mut seen = String::new();
        while !(seen.contains(word) && seen.ends_with("\n\n")) {
            let mut part = [0; 4_096];
            let count = reader.read(&mut part).unwrap();
            assert!(count > 0, "the stream ended: {seen}");
            seen += &String::from_utf8_lossy(&part[..count]);
        }
        reader
    };
    actix_web::rt::task::spawn_blocking(read).await.unwrap()
}

#[actix_web::test]
async fn an_export_is_passed_on_whole() {
    let nodes = Nodes::start().await;
    for _ in 0..4 {
        let events: Vec<Value> = (0..2_000).map(|i| json!({"name": "e", "message": format!("{i}").repeat(200)})).collect();
        let batch = json!({"events": events}).to_string();
        let sent = nodes.about_there("POST", "/import").header("content-type", JSON).body(batch).unwrap();
        assert_eq!(text(sent).await.0.status(), 202);
    }
    let (head, through) = bytes(nodes.about_there("GET", "/export").body(String::new()).unwrap()).await;
    let (_, own) = bytes(nodes.at_owner("GET", "/export").body(String::new()).unwrap()).await;
    assert_eq!(head.status(), 200);
    assert!(through.len() > 4_000_000 && through == own, "{} bytes, not {}", through.len(), own.len());
}

#[actix_web::test]
async fn the_owner_knows_the_client_as_the_first_node_does() {
    let proxied = |config: &mut HttpConfig| {
        config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
        config.geo_header = Some(actix_web::http::header::HeaderName::from_static("x-country"));
    };
    // The owner trusts no proxy.
    let nodes = Nodes::start_with(proxied, |_| {}).await;
    let visit = |address: &str, url: &str| {
        let mut request = by_key(format!("{url}/i"), &nodes.there.public_key, json!({"name": "visit"}).to_string());
        request.headers_mut().insert("x-forwarded-for", address.parse().unwrap());
        request.headers_mut().insert("x-country", "FR".parse().unwrap());
        request
    };
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        assert_eq!(text(visit(address, &nodes.first.url)).await.0.status(), 202);
    }
    let users = async || {
        let today = Instant(nodes.other.engine.clock().now().0).to_string()[..10].to_owned();
        let body = json!({"start_date": today, "end_date": today}).to_string();
        let asked = nodes.about_there("POST", "/analytics/count-unique-users-per-day").header("content-type", JSON).body(body);
        let answer: Value = serde_json::from_str(&text(asked.unwrap()).await.1).unwrap();
        answer["series"][0]["unique_users"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    };
    assert_eq!(users().await, 2);
    let countries = async || {
        let body = json!({"start_date": "2020-01-01", "group_by": "location_country"}).to_string();
        let asked = nodes.about_there("POST", "/analytics/aggregate").header("content-type", JSON).body(body).unwrap();
        serde_json::from_str::<Value>(&text(asked).await.1).unwrap()["rows"].clone()
    };
    assert_eq!(countries().await, json!([{"value": "FR", "count": 3}]));
    // From outside, the header says nothing, with a token that is none, and one that is short.
    for token in ["0".repeat(64), String::new(), "x".to_owned()] {
        for url in [&nodes.first.url, &nodes.other.url] {
            let mut request = visit("192.0.2.1", url);
            let claim = format!("{token} proto=https for=198.51.100.9 country=ZA");
            request.headers_mut().insert("headcount-forwarded", claim.parse().unwrap());
            assert_eq!(text(request).await.0.status(), 202);
        }
    }
    assert_eq!(users().await, 3, "the other node sees the peer's address");
    assert_eq!(countries().await, json!([{"value": "FR", "count": 6}, {"value": null, "count": 3}]));
}
