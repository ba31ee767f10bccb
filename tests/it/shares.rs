//! Shares: what their readers see, and that they see nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::bodies::compressed;
use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::live::Stream;
use crate::server::TestServer;
use crate::sign_in::{by_page, cookie, documented};
use crate::tenant::{Tenant, now_ms, rfc3339};

/// Makes a share. Returns the answer and the secret.
fn share(tenant: &Tenant, body: &Value) -> (Value, String) {
    let made = tenant.post(&tenant.path("shares"), body).ok(201);
    let url = made["url"].as_str().expect("a URL").to_owned();
    let id = made["share_id"].as_str().expect("an id");
    let secret = url.strip_prefix(&format!("http://headcount.test/ui/share/{id}#share=")).expect("the link of the share");
    (made.clone(), secret.to_owned())
}

/// What a share may ask for, with a body that it may send.
const FIGURES: [(&str, &str); 7] = [
    ("analytics/count-unique-users-per-day", r#"{"filters": [{"field": "url", "operator": "is_set"}]}"#),
    ("analytics/aggregate", r#"{"start_date": "2024-03-01", "group_by": "browser"}"#),
    ("analytics/report", "{}"),
    ("analytics/breakdown", r#"{"dimension": "source"}"#),
    ("analytics/goals", "{}"),
    ("analytics/funnel", r#"{"steps": [{"event_name": "a"}, {"page": "/b"}]}"#),
    ("analytics/journeys", "{}"),
];
/// The same, read with GET.
const READ_FIGURES: [&str; 4] = ["analytics/traffic", "analytics/retention", "segments", "funnels"];
const MONEY: [&str; 4] = ["revenue/metrics", "revenue/timeseries", "revenue/by-attribution", "revenue/ltv-cohorts"];

#[test]
fn a_share_may_read_figures_of_its_project_and_nothing_else() {
    let tenant = Tenant::new();
    tenant.peopled();
    for revenue in [false, true] {
        let (_, secret) = share(&tenant, &json!({"name": "board", "revenue": revenue}));
        let cookie = cookie(&tenant, &json!({"share": secret}));
        let as_reader = |call: Call| [tenant.send(by_page(call.clone(), &cookie)), tenant.send(call.bearer(&secret))];
        for (path, body) in FIGURES {
            for answer in as_reader(Call::post(tenant.path(path)).text("application/json", body)) {
                answer.ok(200);
            }
        }
        for path in READ_FIGURES {
            for answer in as_reader(Call::get(tenant.path(path))) {
                answer.ok(200);
            }
        }
        let report = tenant.send(Call::post(tenant.path("analytics/report")).bearer(&secret).json(&json!({}))).ok(200);
        assert_eq!(report["totals"].get("revenue").is_some(), revenue, "{report}");
        for path in MONEY {
            for answer in as_reader(Call::get(tenant.path(path))) {
                match revenue {
                    true => drop(answer.ok(200)),
                    false => assert_refused(path, &answer, 403, "share_forbidden", None),
                }
            }
        }
        let shown = as_reader(Call::get("/session"))[0].ok(200);
        assert_eq!((&shown["share"], &shown["projects"][0]["project_id"]), (&json!(true), &json!(tenant.project)));
        assert_eq!(shown["projects"].as_array().expect("projects").len(), 1);
        // Everything else of the document.
        let is_allowed = |path: &str| {
            let rest = path.strip_prefix("/projects/{project_id}/").unwrap_or_default();
            FIGURES.iter().any(|(figures, _)| *figures == rest)
                || MONEY.contains(&rest)
                || READ_FIGURES.contains(&rest)
                || rest == "live"
        };
        let mut refused = 0;
        for (method, name, path, takes_cookie) in documented(&tenant) {
            let is_change = method != "GET" && READ_FIGURES.iter().any(|path| name.ends_with(path));
            if !takes_cookie && name != "/session/codes" || is_allowed(&name) && !is_change || name == "/session" {
                continue;
            }
            let call = Call::new(method, path);
            let call = if method == "GET" { call } else { call.json(&json!({})) };
            for (way, answer) in ["cookie", "bearer"].iter().zip(as_reader(call)) {
                let what = format!("{method} {name} by {way}");
                if name == "/session/codes" && *way == "cookie" {
                    assert_refused(&what, &answer, 401, "invalid_credential", None);
                } else {
                    assert_refused(&what, &answer, 403, "share_forbidden", None);
                    refused += 1;
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }
}

#[test]
fn a_share_names_no_people_and_no_companies() {
    let tenant = Tenant::new();
    tenant.peopled();
    let (_, secret) = share(&tenant, &json!({"name": "board", "revenue": true}));
    let ask = |path: &str, body: Value| tenant.send(Call::post(tenant.path(path)).bearer(&secret).json(&body));
    let aggregate = |more: Value| {
        let mut body = json!({"start_date": "2024-03-01"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        ask("analytics/aggregate", body)
    };
    let filter = |field: &str| json!([{"field": "url", "operator": "is_set"}, {"field": field, "operator": "is_set"}]);
    let steps = |more: Value| json!({"steps": [{"event_name": "a"}, more]});
    let table: [(Answer, &str); 15] = [
        (ask("analytics/breakdown", json!({"dimension": "user_id"})), "dimension"),
        (ask("analytics/breakdown", json!({"dimension": "metadata.email"})), "dimension"),
        (ask("analytics/report", json!({"filters": filter("user_id")})), "filters[1].field"),
        (ask("analytics/goals", json!({"filters": [{"any": [filter("url"), filter("user_id")]}]})), "filters[0].any[1][1].field"),
        (ask("analytics/funnel", steps(json!({"page": "/", "filters": filter("user_id")}))), "steps[1].filters[1].field"),
        (ask("analytics/funnel", json!({"steps": [{"event_name": "a"}, {"page": "/"}], "breakdown": "user_id"})), "breakdown"),
        (ask("analytics/journeys", json!({"filters": filter("metadata.email")})), "filters[1].field"),
        (aggregate(json!({"group_by": "user_id"})), "group_by"),
        (aggregate(json!({"group_by": "group_id"})), "group_by"),
        (aggregate(json!({"metadata_field": "email"})), "metadata_field"),
        (aggregate(json!({"group_by": "browser", "sum_metadata_field": "total"})), "sum_metadata_field"),
        (aggregate(json!({"group_by": "browser", "filters": filter("user_id")})), "filters[1].field"),
        (ask("analytics/count-unique-users-per-day", json!({"filters": filter("metadata.email")})), "filters[1].field"),
        (ask("analytics/count-unique-users-per-day", json!({"filters": filter("user_id")})), "filters[1].field"),
        (ask("analytics/count-unique-users-per-day", json!({"filters": filter("group_id")})), "filters[1].field"),
    ];
    for (answer, param) in table {
        assert_refused(param, &answer, 403, "share_forbidden", Some(param));
    }
    // Another project, known or not.
    let other = tenant.project(&json!({"name": "other"}));
    let path = format!("/projects/{}/revenue/metrics", other.id);
    assert_refused("a sibling", &tenant.send(Call::get(path).bearer(&secret)), 403, "project_forbidden", None);
    let unknown = tenant.send(Call::get("/projects/prj_00000000000/revenue/metrics").bearer(&secret));
    assert_refused("no project", &unknown, 404, "not_found", None);
}

/// A share lists what its readers may ask for.
#[test]
fn a_share_lists_definitions_that_name_no_people_and_no_companies() {
    let tenant = Tenant::new();
    let (_, secret) = share(&tenant, &json!({"name": "board"}));
    let filters = |field: &str| json!([{"field": field, "operator": "is_set"}]);
    let alternatives = json!([{"any": [filters("url"), filters("user_id")]}]);
    let steps = |filters: Value| json!([{"event_name": "a"}, {"page": "/b", "filters": filters}]);
    let plain = steps(filters("url"));
    let people = |field: &str| json!([{"did": {"event_name": "a", "filters": filters(field)}}]);
    let made = [
        ("segments", json!({"filters": filters("url"), "people": people("location_country")}), true),
        ("segments", json!({"filters": filters("metadata.email")}), false),
        ("segments", json!({"filters": alternatives}), false),
        ("segments", json!({"people": people("user_id")}), false),
        ("funnels", json!({"steps": plain, "breakdown": "source", "filters": filters("url"), "people": people("url")}), true),
        ("funnels", json!({"steps": steps(filters("group_id"))}), false),
        ("funnels", json!({"steps": plain, "breakdown": "user_id"}), false),
        ("funnels", json!({"steps": plain, "filters": filters("user_id")}), false),
        ("funnels", json!({"steps": plain, "people": people("user_id")}), false),
    ];
    let segment = |filters: Value| {
        let made = tenant.post(&tenant.path("segments"), &json!({"name": "s", "filters": filters})).ok(201);
        json!({"steps": plain, "segment": made["segment_id"]})
    };
    // Who knows the id of a segment can ask for its people.
    let with_segments = [("funnels", segment(filters("url")), true), ("funnels", segment(filters("user_id")), false)];
    for (kind, mut body, is_listed) in made.into_iter().chain(with_segments) {
        body["name"] = json!("kept");
        let kept = tenant.post(&tenant.path(kind), &body).ok(201);
        let lists = |credential: &str| {
            let list = tenant.send(Call::get(tenant.path(kind)).bearer(credential)).ok(200);
            list[kind].as_array().expect("a list").contains(&kept)
        };
        assert_eq!((lists(&tenant.token), lists(&secret)), (true, is_listed), "{body}");
    }
}

/// Questions that a share may not ask: the path, and the fields of the body.
fn forbidden_questions() -> Vec<(&'static str, Value)> {
    let mut questions = vec![
        ("analytics/aggregate", json!({"group_by": "user_id"})),
        ("analytics/aggregate", json!({"group_by": "group_id"})),
        ("analytics/aggregate", json!({"metadata_field": "email"})),
        ("analytics/aggregate", json!({"group_by": "browser", "sum_metadata_field": "seats"})),
        ("analytics/breakdown", json!({"dimension": "user_id"})),
        ("analytics/breakdown", json!({"dimension": "group_id"})),
        ("analytics/breakdown", json!({"dimension": "metadata.email"})),
    ];
    for field in ["user_id", "group_id", "metadata.email"] {
        let filters = json!([{"field": field, "operator": "is_set"}]);
        questions.extend([
            ("analytics/aggregate", json!({"group_by": "browser", "filters": filters})),
            ("analytics/breakdown", json!({"dimension": "source", "filters": filters})),
            ("analytics/report", json!({"filters": filters})),
            ("analytics/count-unique-users-per-day", json!({"filters": filters})),
        ]);
    }
    for (_, question) in &mut questions {
        question["start_date"] = json!("2024-03-01");
    }
    questions
}

/// Writes an object so that it begins with these fields.
fn after(first: &str, question: &Value) -> Vec<u8> {
    question.to_string().replacen('{', &format!("{{{first},"), 1).into_bytes()
}

/// Ways to write a question that another reader of JSON, or of bodies, may not understand as the
/// server does.
fn spellings(question: &Value) -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let text = question.to_string();
    let fields = || question.as_object().expect("an object").iter();
    let joined = |fields: Vec<String>| format!("{{{}}}", fields.join(",")).into_bytes();
    let escaped = |text: &str| text.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<String>();
    let mut hostile = question.clone();
    let mut filters = vec![json!({"field": "url", "operator": "is_not", "value": "LARGE"})];
    filters.extend(question["filters"].as_array().into_iter().flatten().cloned());
    hostile["filters"] = json!(filters);
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let mut spellings = vec![
        ("a number that is too large", after(r#""event_name":1e400,"event_name":null"#, question), None),
        ("half a surrogate pair", after(r#""event_name":"\ud800","event_name":null"#, question), None),
        ("deep brackets", after(&format!(r#""event_name":{nested},"event_name":null"#), question), None),
        ("a filter with a large number", hostile.to_string().replace("\"LARGE\"", "1e400").into_bytes(), None),
        (
            "fields that are given twice",
            joined(fields().map(|(key, value)| format!(r#""{key}":null,"{key}":{value}"#)).collect()),
            None,
        ),
        ("escaped keys", joined(fields().map(|(key, value)| format!(r#""{}":{value}"#, escaped(key))).collect()), None),
        ("keys in capitals", joined(fields().map(|(key, value)| format!(r#""{}":{value}"#, key.to_uppercase())).collect()), None),
        ("an unknown field", after(r#""more":1"#, question), None),
        ("a byte order mark", [b"\xef\xbb\xbf", text.as_bytes()].concat(), None),
        ("UTF-16", utf_16, None),
        (
            "bytes that are no UTF-8",
            [&after(r#""event_name":""#, question)[..15], b"\xff", &after(r#"","event_name":null"#, question)[1..]].concat(),
            None,
        ),
        ("space around it", format!("\n\t {text} \r\n").into_bytes(), None),
        ("another object after it", format!("{text}{{}}").into_bytes(), None),
        ("a zero after it", format!("{text}\0").into_bytes(), None),
        ("a list of it", format!("[{text}]").into_bytes(), None),
        ("no object", b"null".to_vec(), None),
    ];
    for encoding in ["gzip", "br", "zstd"] {
        spellings.push((encoding, compressed(encoding, text.as_bytes()), Some(encoding)));
        spellings.push(("another encoding than it says", text.clone().into_bytes(), Some(encoding)));
    }
    spellings
}

#[test]
fn a_share_is_refused_however_a_question_is_spelled() {
    let tenant = Tenant::new();
    tenant.peopled();
    let (_, secret) = share(&tenant, &json!({"name": "board", "revenue": true}));
    let code = |answer: &Answer| answer.json()["error"]["code"].clone();
    let (mut answered, mut refused) = (BTreeSet::new(), 0);
    for (path, question) in forbidden_questions() {
        for (spelling, body, encoding) in spellings(&question) {
            let ask = |credential: &str| {
                let call = Call::post(tenant.path(path)).bearer(credential);
                let call = encoding.iter().fold(call, |call, encoding| call.header("content-encoding", *encoding));
                tenant.send(call.text("application/json", body.clone()))
            };
            let (owner, reader) = (ask(&tenant.token), ask(&secret));
            let what = format!("{spelling}: {path} {question}");
            if owner.status == 200 {
                assert_eq!((reader.status, code(&reader)), (403, json!("share_forbidden")), "{what}: {}", reader.text());
                answered.insert(spelling);
            } else {
                assert_eq!((reader.status, code(&reader)), (owner.status, code(&owner)), "{what}: {}", reader.text());
                refused += 1;
            }
        }
    }
    assert!(answered.len() >= 9 && refused > 100, "{answered:?} {refused}");
}

#[test]
fn streams_of_shares_have_no_messages_and_end_with_them() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let (made, secret) = share(&tenant, &json!({"name": "board"}));
    let cookie = cookie(&tenant, &json!({"share": secret}));
    let mut by_cookie = Stream::open_with(&tenant, &format!("cookie: {cookie}\r\nsec-fetch-site: same-origin\r\n"));
    let mut by_bearer = Stream::open(&tenant, &secret, None);
    let mut owner = Stream::open(&tenant, &tenant.token, None);
    for stream in [&mut by_cookie, &mut by_bearer, &mut owner] {
        stream.read().expect("a snapshot");
    }
    tenant.recorded(&json!({"name": "signup", "user_id": "ada", "notify": true, "message": "Ada signed up"}));
    owner.read_until(|shown| shown["today"]["events"] == 1);
    server.restart();
    // Sessions and shares are still there.
    let mut streams = [
        Stream::open_with(&tenant, &format!("cookie: {cookie}\r\nsec-fetch-site: same-origin\r\n")),
        Stream::open(&tenant, &secret, None),
    ];
    for stream in &mut streams {
        let shown = stream.read().expect("a snapshot");
        assert!(!format!("{shown:?}").contains("revenue"), "{shown:?}");
    }
    tenant.recorded(&json!({"name": "signup", "user_id": "bob", "notify": true, "message": "Bob signed up"}));
    let path = tenant.path(&format!("shares/{}", made["share_id"].as_str().expect("an id")));
    assert_eq!(tenant.delete(&path).status, 204);
    let revoked = Instant::now();
    for mut stream in streams {
        loop {
            let sent = stream.read().expect("a reason before the end");
            let shown = format!("{sent:?}");
            assert!(!shown.contains("notification") && !shown.contains("Bob"), "{shown}");
            if shown.contains("bye") {
                assert!(shown.contains("unauthorized"), "{shown}");
                break;
            }
        }
    }
    println!("streams of a share ended {} ms after it was revoked", revoked.elapsed().as_millis());
    for answer in [tenant.send(by_page(Call::get("/session"), &cookie)), tenant.send(Call::get("/session").bearer(&secret))] {
        assert_refused("a revoked share", &answer, 401, "invalid_credential", None);
    }
    let again = crate::sign_in::sign_in(&tenant, &json!({"share": secret}));
    assert_refused("a revoked share", &again, 401, "invalid_credential", None);
}

#[test]
fn shares_are_managed_by_admins_and_audited() {
    let tenant = Tenant::new();
    let expires_at = rfc3339(now_ms() + 3_600_000);
    let body = json!({"name": "board", "expires_at": expires_at, "embed_origins": ["https://Acme.com"], "revenue": true});
    let (made, secret) = share(&tenant, &body);
    assert_eq!(made["embed_origins"], json!(["https://acme.com"]));
    let id = made["share_id"].as_str().expect("an id");
    let listed = tenant.get(&tenant.path("shares")).ok(200);
    assert_eq!(listed["shares"][0]["share_id"], id);
    assert!(!listed.to_string().contains(&secret) && listed["shares"][0].get("url").is_none());
    // Who doesn't see money can't share it.
    let admin = tenant.token("admin", &["admin", "analytics:read"], Some(&tenant.project));
    let call = |body: &Value| tenant.send(Call::post(tenant.path("shares")).bearer(&admin).json(body));
    assert_refused("money", &call(&json!({"name": "s", "revenue": true})), 403, "insufficient_scope", None);
    call(&json!({"name": "s"})).ok(201);
    for (body, param) in [
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "s", "expires_at": "2001-01-01T00:00:00Z"}), "expires_at"),
        (json!({"name": "s", "embed_origins": ["https://a.example/b"]}), "embed_origins[0]"),
        (json!({"name": "s", "revenue": "yes"}), "revenue"),
    ] {
        let answer = tenant.post(&tenant.path("shares"), &body);
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!(param)), "{body}");
    }
    assert_eq!(tenant.delete(&tenant.path(&format!("shares/{id}"))).status, 204);
    assert_eq!(tenant.delete(&tenant.path(&format!("shares/{id}"))).status, 404);
    let entries = tenant.get(&format!("/audit-log?target_id={id}")).ok(200);
    let actions: Vec<&Value> = entries["entries"].as_array().expect("entries").iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["share.revoked", "share.created"]);
    assert_eq!(entries["entries"][1]["changes"]["revenue"]["to"], true);
    assert!(!entries.to_string().contains(&secret[3..]));
}

#[test]
fn the_command_line_makes_lists_and_revokes_shares() {
    let server = TestServer::start();
    let made: Value = serde_json::from_str(
        &server.run("share", &["create", "Board", "--revenue", "--embed-origins", "https://a.example", "--json"]),
    )
    .expect("JSON");
    let url = made["url"].as_str().expect("a URL");
    let id = made["share_id"].as_str().expect("an id");
    let secret = url.strip_prefix(&format!("http://{}/ui/share/{id}#share=", server.address())).expect("the link of the share");
    let ask = || server.send(&Call::get("/session").bearer(secret));
    let shown = ask().ok(200);
    assert_eq!((&shown["share"], &shown["scopes"]), (&json!(true), &json!(["analytics:read", "revenue:read"])));
    let listed = server.run("share", &["list"]);
    assert!(listed.contains(id) && listed.contains("Board") && !listed.contains(secret), "{listed}");
    assert!(server.run("share", &["delete", id]).contains("revoked"));
    assert_refused("a revoked share", &ask(), 401, "invalid_credential", None);
}
