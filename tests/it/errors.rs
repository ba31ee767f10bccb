//! The shape of errors, and the errors of any path: unknown paths, wrong methods, bodies that are
//! not JSON.

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::paths::{filled, operations, paths};
use crate::segment::basic;
use crate::tenant::Tenant;

/// Checks that an answer is this error, in the shape of all errors.
#[track_caller]
pub(crate) fn assert_refused(what: &str, answer: &Answer, status: u16, code: &str, param: Option<&str>) {
    let says = format!("{what}\n{} {}", answer.status, answer.text());
    assert_eq!(answer.status, status, "{says}");
    let kind = match status {
        401 => "authentication",
        403 => "permission",
        404 => "not_found",
        409 => "conflict",
        410 => "gone",
        429 => "rate_limited",
        503 => "overloaded",
        500 => "internal",
        _ => "invalid_request",
    };
    let body = answer.json();
    let error = body["error"].as_object().unwrap_or_else(|| panic!("no error: {says}"));
    let mut names: Vec<&str> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "message", "param", "request_id", "type"], "{says}");
    // Segment's SDKs read some of it beside the error.
    let beside = [&body["success"], &body["code"], &body["message"]];
    match body.as_object().map(serde_json::Map::len) {
        Some(4) => assert_eq!(beside, [&json!(false), &error["code"], &error["message"]], "{says}"),
        fields => assert_eq!(fields, Some(1), "{says}"),
    }
    let expected = json!({"type": kind, "code": code, "param": param});
    let got = json!({"type": error["type"], "code": error["code"], "param": error["param"]});
    assert_eq!(got, expected, "{says}");
    assert!(error["message"].as_str().is_some_and(|message| message.len() > 5), "{says}");
    assert_eq!(error["request_id"].as_str(), answer.header("x-request-id"), "{says}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{says}");
    assert_eq!(answer.header("www-authenticate"), (status == 401).then_some("Bearer"), "{says}");
}

#[test]
fn unknown_paths_are_404_for_everybody() {
    let tenant = Tenant::new();
    let paths = ["/nothing", "/projects/", "/i/", "/track/more", "/projects/x/y/z", "/organization/", "//i", "/%00", "/I"];
    for path in paths {
        for method in ["GET", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"] {
            let anonymous = tenant.send(Call::new(method, path));
            assert_refused(&format!("{method} {path}"), &anonymous, 404, "not_found", None);
            let owner = tenant.send(Call::new(method, path).bearer(&tenant.token));
            assert_refused(&format!("{method} {path} as owner"), &owner, 404, "not_found", None);
        }
    }
}

#[test]
fn wrong_methods_are_405_with_those_that_there_are() {
    let tenant = Tenant::new();
    for (path, methods) in paths() {
        let target = filled(path, &tenant);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
            if method == "GET" && path.ends_with("/live") {
                // It has no end. `live.rs` reads it.
                continue;
            }
            let answer = tenant.send(Call::new(method, &*target).bearer(&tenant.token));
            if methods.contains(&method) {
                assert_ne!(answer.status, 405, "{method} {path}");
                continue;
            }
            let what = format!("{method} {path}");
            assert_refused(&what, &answer, 405, "method_not_allowed", None);
            let mut allowed: Vec<_> = answer.header("allow").unwrap_or_default().split(", ").collect();
            let mut expected = methods.clone();
            allowed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(allowed, expected, "Allow of {what}");
        }
        let head = tenant.send(Call::new("HEAD", &*target).bearer(&tenant.token));
        assert_eq!(head.status != 405, methods.contains(&"HEAD"), "HEAD {path}");
    }
}

#[test]
fn bodies_that_are_no_json_object_are_refused() {
    let tenant = Tenant::capable();
    let bodies =
        ["{", "}", "[]", "[{\"name\": \"a\"}]", "\"text\"", "5", "null", "{\"a\" 1}", "{'name': 'a'}", "{} {}", "\u{fffd}"];
    for operation in operations().filter(|operation| operation.body.is_some()) {
        for body in bodies {
            let call = Call::new(operation.method, filled(operation.path, &tenant)).bearer(&tenant.token);
            let answer = tenant.send(call.text("application/json", body));
            assert_refused(&format!("{} {} {body}", operation.method, operation.path), &answer, 400, "invalid_json", None);
        }
    }
    for path in ["/i", "/track", "/i/batch"] {
        for body in bodies.iter().chain(&[""]) {
            let answer = tenant.send(Call::post(path).key(&tenant.key).text("application/json", *body));
            assert_refused(&format!("{path} {body}"), &answer, 400, "invalid_json", None);
        }
        let bytes = b"{\"name\": \xff}";
        let not_utf8 = tenant.send(Call::post(path).key(&tenant.key).text("application/json", bytes));
        assert_refused(&format!("{path} with bytes that are not UTF-8"), &not_utf8, 400, "invalid_json", None);
    }
    assert_eq!(tenant.users(&tenant.project), 0, "nothing was recorded");
}

#[test]
fn a_batch_without_a_list_of_events_names_the_field() {
    let tenant = Tenant::new();
    for (events, code) in [
        ("5", "invalid_parameter"),
        ("{}", "invalid_parameter"),
        (r#""a""#, "invalid_parameter"),
        ("false", "invalid_parameter"),
        ("null", "missing_parameter"),
    ] {
        let body = format!(r#"{{"events": {events}}}"#);
        let by_key = tenant.send(Call::post("/i/batch").key(&tenant.key).text("application/json", &*body));
        assert_refused(&body, &by_key, 400, code, Some("events"));
        for path in ["batch", "import"] {
            let by_token = Call::post(tenant.path(path)).bearer(&tenant.token).text("application/json", &*body);
            assert_refused(&format!("{path} {body}"), &tenant.send(by_token), 400, code, Some("events"));
        }
        let body = body.replace("events", "batch");
        let by_segment =
            tenant.send(Call::post("/v1/batch").header("authorization", basic(&tenant.key)).text("application/json", &*body));
        assert_refused(&format!("/v1/batch {body}"), &by_segment, 400, code, Some("batch"));
    }
}

#[test]
fn other_content_types_are_415() {
    let tenant = Tenant::capable();
    let json = ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.api+json"];
    let others =
        ["text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "image/gif"];
    for operation in operations().filter(|operation| operation.body.is_some()) {
        let what = format!("{} {}", operation.method, operation.path);
        let send = |content_type: &str| {
            let call = Call::new(operation.method, filled(operation.path, &tenant)).bearer(&tenant.token);
            tenant.send(call.text(content_type, operation.filled_body().unwrap()))
        };
        for content_type in others.iter().chain(&["text/plain"]) {
            assert_refused(&format!("{what} {content_type}"), &send(content_type), 415, "unsupported_media_type", None);
        }
        for content_type in json {
            let answer = send(content_type);
            let is_missing = answer.status == 404 && operation.is_of_one_thing();
            assert!((200..300).contains(&answer.status) || is_missing, "{what} {content_type}: {}", answer.text());
        }
    }
    for path in ["/i", "/track", "/i/batch"] {
        let body = if path == "/i/batch" { r#"{"events": [{"name": "a"}]}"# } else { r#"{"name": "a"}"# };
        let send = |content_type: &str| tenant.send(Call::post(path).key(&tenant.key).text(content_type, body));
        for content_type in others {
            assert_refused(&format!("{path} {content_type}"), &send(content_type), 415, "unsupported_media_type", None);
        }
        for content_type in json.iter().chain(&["text/plain", "text/plain;charset=UTF-8"]) {
            assert_eq!(send(content_type).status, 202, "{path} {content_type}");
        }
    }
}

#[test]
fn unknown_names_are_refused_in_queries() {
    let tenant = Tenant::capable();
    let read = operations().filter(|operation| operation.scope != "events:write");
    let mut calls: Vec<(String, Call)> = read
        .map(|operation| {
            let call = operation.call_with(&tenant, "start_dat=2024-01-01").bearer(&tenant.token);
            (format!("{} {}", operation.method, operation.path), call)
        })
        .collect();
    let name = json!({"name": "a"});
    let root = tenant.server.initial("root_token");
    calls.push(("POST /organizations".to_owned(), Call::post("/organizations?start_dat=1").bearer(root).json(&name)));
    for path in ["/healthz", "/readyz", "/version", "/metrics", "/openapi.json", "/docs"] {
        calls.push((path.to_owned(), Call::get(format!("{path}?start_dat=1")).header("host", "localhost")));
    }
    let mut taken = Vec::new();
    for (what, call) in calls {
        let answer = tenant.send(call);
        if answer.status < 300 {
            taken.push(what);
            continue;
        }
        assert_refused(&what, &answer, 400, "unknown_parameter", Some("start_dat"));
    }
    assert_eq!(taken, Vec::<String>::new(), "these took a parameter that they don't have");
}

#[test]
fn unknown_names_are_refused_in_bodies() {
    let tenant = Tenant::capable();
    for operation in operations().filter(|operation| operation.scope != "events:write") {
        let Some(body) = operation.body else { continue };
        let mut body: Value = serde_json::from_str(body).unwrap();
        body["start_dat"] = json!("2024-01-01");
        let call = Call::new(operation.method, filled(operation.path, &tenant)).bearer(&tenant.token).json(&body);
        let what = format!("{} {}", operation.method, operation.path);
        assert_refused(&what, &tenant.send(call), 400, "unknown_parameter", Some("start_dat"));
    }
    let root = tenant.server.initial("root_token");
    let call = Call::post("/organizations").bearer(root).json(&json!({"name": "a", "x": 1}));
    assert_refused("POST /organizations", &tenant.send(call), 400, "unknown_parameter", Some("x"));
}

#[test]
fn a_sane_request_id_is_kept_and_another_is_made() {
    let tenant = Tenant::new();
    let long = "x".repeat(128);
    for id in ["a", "0f-_Z9", &long] {
        for path in ["/healthz", "/nothing", "/organization"] {
            let answer = tenant.send(Call::get(path).header("x-request-id", id));
            assert_eq!(answer.header("x-request-id"), Some(id), "{path}");
            if answer.status >= 400 {
                assert_eq!(answer.json()["error"]["request_id"], id, "{path}");
            }
        }
    }
    let too_long = "x".repeat(129);
    let mut made = Vec::new();
    for id in ["", " ", "a b", "a.b", "ä", "<script>", "a\tb", &too_long] {
        let answer = tenant.send(Call::get("/nothing").header("x-request-id", id));
        let new = answer.header("x-request-id").expect("an id").to_owned();
        assert_ne!(new, id.trim(), "kept {id:?}");
        assert!(new.len() <= 128 && new.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{new}");
        assert_eq!(answer.json()["error"]["request_id"], new);
        made.push(new);
    }
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 8, "each request has its own");
}

#[test]
fn the_timezone_is_fixed_once_an_event_is_recorded() {
    let tenant = Tenant::new();
    let zone = |name: &str| tenant.patch("/organization", &json!({ "timezone": name }));
    assert_eq!(zone("Europe/Berlin").ok(200)["timezone"], "Europe/Berlin");
    for wrong in ["Mars/Olympus", "berlin", "", "+02:00"] {
        assert_refused(wrong, &zone(wrong), 400, "invalid_parameter", Some("timezone"));
    }
    assert_eq!(zone("Asia/Kolkata").status, 200, "nothing is recorded yet");
    tenant.recorded(&json!({"name": "a", "user_id": "ada"}));
    assert_refused("after an event", &zone("UTC"), 409, "timezone_fixed", None);
    assert_eq!(zone("Asia/Kolkata").status, 200, "the same one changes nothing");
    assert_eq!(tenant.get("/organization").ok(200)["timezone"], "Asia/Kolkata");
}

#[test]
fn types_and_encodings_that_are_not_ascii_are_415() {
    let tenant = Tenant::new();
    let event = json!({"name": "a"}).to_string();
    for value in ["application/jsön", "ü", "application/json; charset=\u{201c}utf-8\u{201d}"] {
        let public = tenant.send(Call::post("/i").key(&tenant.key).text(value, &*event));
        assert_refused(value, &public, 415, "unsupported_media_type", None);
        let made = tenant.send(Call::post("/projects").bearer(&tenant.token).text(value, "{\"name\": \"a\"}"));
        assert_refused(value, &made, 415, "unsupported_media_type", None);
        let encoded = Call::post("/i").key(&tenant.key).header("content-encoding", value).text("application/json", &*event);
        assert_refused(value, &tenant.send(encoded), 415, "unsupported_media_type", None);
    }
}

#[test]
fn refusals_are_logged_once_with_their_id() {
    let server = std::sync::Arc::new(crate::server::TestServer::start_with(&["--log", "debug"]));
    let tenant = Tenant::on(&server);
    let calls = [
        ("refused-1", Call::post("/i").key(&tenant.key).json(&json!({})), "missing_parameter"),
        ("refused-2", Call::get("/nothing"), "not_found"),
        ("refused-3", Call::get("/organization"), "invalid_credential"),
        ("refused-4", Call::new("PUT", "/organization"), "method_not_allowed"),
    ];
    for (id, call, _) in &calls {
        assert!(tenant.send(call.clone().header("x-request-id", *id)).status >= 400);
    }
    assert_eq!(tenant.send(Call::get("/healthz").header("x-request-id", "taken-1")).status, 200);
    for address in ["203.0.113.9", "203.0.113.10"] {
        tenant.send(Call::post("/i").key(&tenant.key).header("x-forwarded-for", address).json(&json!({"name": "a"})));
    }
    assert!(server.stop().success());
    let log = server.log();
    for (id, _, code) in calls {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(id)).collect();
        assert!(lines.len() == 1 && lines[0].contains(code) && lines[0].contains("DEBUG"), "{lines:?}");
    }
    assert!(!log.contains("taken-1"));
    assert_eq!(log.lines().filter(|line| line.contains("X-Forwarded-For")).count(), 1, "{log}");
}
