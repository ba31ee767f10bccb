use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::http::tests::server::{Answer, TestServer};

const ORIGIN: &str = "https://shop.example";

fn message(path: &str) -> Value {
    let ids = json!({"userId": "ada", "previousId": "a", "groupId": "g", "event": "e", "messageId": path});
    if ["/v1/b", "/v1/batch", "/v1/import"].contains(&path.trim_end_matches('/')) {
        return json!({"batch": [{"type": "track", "userId": "ada", "event": "e", "messageId": path}]});
    }
    ids
}

async fn send(server: &TestServer, path: &str, body: &Value) -> Answer {
    let basic = format!("Basic {}", STANDARD.encode(format!("{}:", server.keys.public_key)));
    let call = TestRequest::post().uri(path).insert_header((header::AUTHORIZATION, basic));
    let call = call.insert_header((header::CONTENT_TYPE, "text/plain")).insert_header((header::ORIGIN, ORIGIN));
    server.send(call.set_payload(body.to_string())).await
}

#[actix_web::test]
async fn every_name_of_a_call_is_answered() {
    let server = TestServer::start();
    let names = ["track", "identify", "page", "screen", "group", "alias", "batch", "import", "t", "i", "p", "s", "g", "a", "b"];
    for name in names {
        for slash in ["", "/"] {
            let path = format!("/v1/{name}{slash}");
            let answer = send(&server, &path, &message(&path)).await;
            assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({"success": true})), "{path}");
            assert_eq!(answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).unwrap(), ORIGIN, "{path}");
            let preflight = server.send(TestRequest::with_uri(&path).method(Method::OPTIONS)).await;
            let allowed = preflight.headers.get(header::ACCESS_CONTROL_ALLOW_HEADERS).unwrap().to_str().unwrap().to_owned();
            assert!(preflight.status == 204 && allowed.contains("authorization") && allowed.contains("x-retry-count"), "{path}");
            assert_eq!(server.send(TestRequest::with_uri(&path)).await.status, 405, "{path}");
        }
    }
    assert_eq!(send(&server, "/v1/other", &json!({})).await.status, 404);
}

#[actix_web::test]
async fn refusals_are_what_sdks_read() {
    let server = TestServer::start();
    let unknown = json!({"batch": [], "writeKey": "pk_unknown"}).to_string();
    let table = [
        (TestRequest::post().uri("/v1/batch").set_payload("{"), 401, "invalid_credential"),
        (TestRequest::post().uri("/v1/batch").set_payload(unknown), 401, "invalid_credential"),
        (TestRequest::post().uri("/v1/t").insert_header((header::AUTHORIZATION, "Bearer a")), 401, "invalid_credential"),
        (TestRequest::post().uri("/v1/t").insert_header((header::CONTENT_TYPE, "text/html")), 415, "unsupported_media_type"),
        (TestRequest::post().uri("/v1/t").set_payload("a".repeat(70_000)), 413, "body_too_large"),
        (TestRequest::post().uri("/v1/m").set_payload("a".repeat(70_000)), 413, "body_too_large"),
        (TestRequest::get().uri("/v1/t"), 405, "method_not_allowed"),
        (TestRequest::get().uri("/v1/nothing"), 404, "not_found"),
        (TestRequest::get().uri("/v1/projects/pk_unknown/settings"), 404, "not_found"),
    ];
    for (request, status, code) in table {
        let answer = server.send(request.insert_header((header::ORIGIN, ORIGIN))).await;
        let body = answer.json();
        assert_eq!((answer.refusal().0, answer.refusal().1.as_str()), (status, code), "{body}");
        let expected = json!([false, code, body["error"]["message"]]);
        assert_eq!(json!([body["success"], body["code"], body["message"]]), expected);
        assert_eq!(answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).unwrap(), ORIGIN, "{body}");
    }
    let elsewhere = server.send(TestRequest::get().uri("/nothing").insert_header((header::ORIGIN, ORIGIN))).await;
    assert_eq!((elsewhere.json().get("success"), elsewhere.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN)), (None, None));
}

#[actix_web::test]
async fn settings_send_messages_back_here() {
    let server = TestServer::start();
    let key = server.keys.public_key.to_string();
    let settings = |host: &'static str| {
        let request = TestRequest::with_uri(&format!("/v1/projects/{key}/settings")).insert_header((header::HOST, host));
        // Nobody believes a proxy that is not trusted.
        request.insert_header(("x-forwarded-proto", "https")).insert_header((header::ORIGIN, ORIGIN))
    };
    let answer = server.send(settings("stats.example:8080")).await;
    let expected = json!({
        "integrations": {"Segment.io": {"apiKey": key, "apiHost": "stats.example:8080/v1", "protocol": "http"}},
        "plan": {}, "middlewareSettings": {}, "edgeFunction": {},
        "metrics": {"sampleRate": 0, "host": "stats.example:8080/v1"},
    });
    assert_eq!((answer.status.as_u16(), answer.json()), (200, expected));
    assert_eq!(answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).unwrap(), ORIGIN);
    let tag = answer.headers.get(header::ETAG).unwrap().clone();
    assert_eq!(server.send(settings("stats.example:8080").insert_header((header::IF_NONE_MATCH, tag))).await.status, 304);
}

#[actix_web::test]
async fn metrics_of_sdks_are_read_and_dropped() {
    let server = TestServer::start();
    let answer = server.send(TestRequest::post().uri("/v1/m").set_payload("{\"series\": []}")).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({"success": true})));
}
