//! Consent, privacy signals, and which pages may send events.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant};

/// An order of ada's, with more fields.
fn order(more: &Value) -> Value {
    let mut event = json!({"name": "order", "user_id": "ada", "anonymous_id": "a1", "value": 5});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

#[test]
fn without_consent_an_event_is_nobodys() {
    let table = [
        // the event's categories, and whether ada was seen
        (json!({}), true),
        (json!({"pc": "analytics"}), true),
        (json!({"pc": "marketing, Analytics"}), true),
        (json!({"pc": "functional, ANALYTICS "}), true),
        (json!({"pc": "marketing"}), false),
        (json!({"pc": "analytics_extended"}), false),
        (json!({"pc": ""}), false),
        (json!({"pc": null}), true),
        (json!({"privacy_categories": "functional"}), false),
        (json!({"privacy_categories": ""}), false),
        (json!({"privacy_categories": "analytics", "pc": "marketing"}), true),
        (json!({"privacy_categories": "marketing", "pc": "analytics"}), false),
        (json!({"privacy_categories": "", "pc": "analytics"}), false),
        (json!({"privacy_categories": null, "pc": "marketing"}), false),
    ];
    for (more, seen) in table {
        let tenant = Tenant::new();
        tenant.recorded(&order(&more));
        assert_eq!(tenant.users(&tenant.project), u64::from(seen), "{more}");
        let metrics = tenant.metrics(&tenant.project);
        assert_eq!((&metrics["orders"], &metrics["total_revenue"]), (&json!(1), &json!(5)), "its money counts: {more}");
        assert_eq!(metrics["arpu"], if seen { json!(5) } else { json!(0) }, "{more}");
    }
}

#[test]
fn without_consent_an_external_id_counts() {
    let tenant = Tenant::new();
    tenant.recorded(&order(&json!({"pc": "", "external_id": "o-1"})));
    assert_eq!(tenant.track(&order(&json!({"external_id": "o-1"}))).ok(202)["status"], "duplicate");
}

type Headers = &'static [(&'static str, &'static str)];

/// Sends an order with these fields and headers to a project of some policy: its answer, and how
/// many users there are.
fn signalled(tenant: &Tenant, policy: &str, more: &Value, headers: Headers) -> (Value, u64) {
    let project = tenant.project(&json!({ "signals_policy": policy }));
    let mut call = Call::post("/track").key(&project.key).agent(BROWSER);
    for (name, value) in headers {
        call = call.header(name, *value);
    }
    let answer = tenant.send(call.json(&order(more))).ok(202);
    (answer, tenant.users(&project.id))
}

#[test]
fn signals_are_treated_by_the_projects_policy() {
    let tenant = Tenant::new();
    let none: Headers = &[];
    let table: [(Value, Headers, bool); 15] = [
        // fields, headers, whether that is a signal
        (json!({}), none, false),
        (json!({}), &[("sec-gpc", "1")], true),
        (json!({}), &[("dnt", "1")], true),
        (json!({}), &[("sec-gpc", "0")], false),
        (json!({}), &[("dnt", "0")], false),
        (json!({"ps": "gpc"}), none, true),
        (json!({"privacy_signals": "dnt"}), none, true),
        (json!({"ps": "gpp:DBAA,gpc"}), none, true),
        (json!({"ps": ""}), none, false),
        (json!({"privacy_signals": "gpp:DBAA", "ps": "gpc"}), none, false),
        (json!({"privacy_signals": "gpc", "ps": "gpp:DBAA"}), none, true),
        (json!({"ps": "gpp:DBAA"}), &[("sec-gpc", "1")], true),
        (json!({"ps": "GPP:DBAA, Gpc "}), none, true),
        (json!({"ps": "gpp:gpc"}), none, false),
        // A grant does not outweigh a signal.
        (json!({"pc": "analytics"}), &[("dnt", "1")], true),
    ];
    for (more, headers, is_signal) in table {
        let what = format!("{more} {headers:?}");
        let (answer, users) = signalled(&tenant, "record", &more, headers);
        assert_eq!((&answer["status"], users), (&json!("recorded"), 1), "{what}");
        let (answer, users) = signalled(&tenant, "anonymize", &more, headers);
        assert_eq!((&answer["status"], users), (&json!("recorded"), u64::from(!is_signal)), "{what}");
        let (answer, users) = signalled(&tenant, "drop", &more, headers);
        let status = if is_signal { "dropped" } else { "recorded" };
        assert_eq!((&answer["status"], users), (&json!(status), u64::from(!is_signal)), "{what}");
        assert_eq!(answer["reason"], if is_signal { json!("consent") } else { Value::Null }, "{what}");
    }
}

/// The headers of a server's request say nothing about its visitors; the event's fields do.
#[test]
fn headers_of_servers_are_no_signals() {
    let tenant = Tenant::new();
    let project = tenant.project(&json!({"signals_policy": "drop"}));
    let send = |event: &Value| {
        let call = Call::post(format!("/projects/{}/track", project.id)).bearer(&tenant.token);
        tenant.send(call.header("sec-gpc", "1").header("dnt", "1").json(event)).ok(202)
    };
    assert_eq!(send(&order(&json!({})))["status"], "recorded");
    let signalled = send(&order(&json!({"ps": "gpc"})));
    assert_eq!((&signalled["status"], &signalled["reason"]), (&json!("dropped"), &json!("consent")));
}

/// Bots come before signals, and what would be dropped takes no external id.
#[test]
fn a_signal_comes_after_a_bot_and_before_a_duplicate() {
    let tenant = Tenant::new();
    let project = tenant.project(&json!({"signals_policy": "drop"}));
    let send = |agent: &str, headers: Headers| {
        let call = headers
            .iter()
            .fold(Call::post("/track").key(&project.key).agent(agent), |call, (name, value)| call.header(name, *value));
        let answer = tenant.send(call.json(&order(&json!({"external_id": "o-1"})))).ok(202);
        (answer["status"].clone(), answer["reason"].clone())
    };
    let gpc: Headers = &[("sec-gpc", "1")];
    assert_eq!(send("Googlebot/2.1", gpc), (json!("dropped"), json!("bot")));
    assert_eq!(send(BROWSER, gpc), (json!("dropped"), json!("consent")));
    assert_eq!(send(BROWSER, &[]), (json!("recorded"), Value::Null));
    assert_eq!(send(BROWSER, gpc), (json!("dropped"), json!("consent")));
    assert_eq!(send(BROWSER, &[]).0, "duplicate");
}

#[test]
fn a_change_of_policy_holds_from_the_next_event_on() {
    let tenant = Tenant::new();
    let send = || tenant.send(Call::post("/track").key(&tenant.key).header("sec-gpc", "1").json(&order(&json!({})))).ok(202);
    assert_eq!(send()["status"], "recorded");
    let path = format!("/projects/{}", tenant.project);
    assert_eq!(tenant.patch(&path, &json!({"signals_policy": "drop"})).status, 200);
    assert_eq!(send()["status"], "dropped");
    assert_eq!(tenant.patch(&path, &json!({"signals_policy": "record"})).status, 200);
    assert_eq!(send()["status"], "recorded");
}

const PAGE: &str = "https://shop.example";

fn from_page(tenant: &Tenant, key: &str, path: &str, body: &Value) -> Answer {
    tenant.send(Call::post(path).key(key).header("origin", PAGE).json(body))
}

fn allows(answer: &Answer) -> bool {
    answer.header("access-control-allow-origin").is_some_and(|origin| origin == "*" || origin == PAGE)
}

#[test]
fn pages_ask_before_they_send() {
    let tenant = Tenant::new();
    for path in ["/i", "/track", "/i/batch"] {
        let call = Call::new("OPTIONS", path).header("origin", PAGE);
        let call = call.header("access-control-request-method", "POST");
        let answer = tenant.send(call.header("access-control-request-headers", "content-type, x-service-pk"));
        assert!([200, 204].contains(&answer.status), "{path}: {}", answer.status);
        assert!(allows(&answer), "{path}");
        let methods = answer.header("access-control-allow-methods").unwrap_or_default();
        assert!(methods.contains("POST"), "{path}: {methods}");
        let headers = answer.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
        assert!(headers.contains("content-type") && headers.contains("x-service-pk"), "{path}: {headers}");
        assert!(answer.header("access-control-max-age").is_some(), "{path}");
    }
}

#[test]
fn any_page_may_send_unless_the_project_names_some() {
    let tenant = Tenant::new();
    let bodies =
        [("/i", json!({"name": "a"})), ("/track", json!({"name": "a"})), ("/i/batch", json!({"events": [{"name": "a"}]}))];
    let open = tenant.project(&json!({"allowed_origins": []}));
    let named = tenant.project(&json!({"allowed_origins": ["https://other.example", PAGE]}));
    let closed =
        tenant.project(&json!({"allowed_origins": ["https://other.example", "http://shop.example", "https://www.shop.example"]}));
    for (path, body) in &bodies {
        for key in [&tenant.key, &open.key, &named.key] {
            let answer = from_page(&tenant, key, path, body);
            assert!(answer.status == 202 && allows(&answer), "{path}: {:?}", answer.headers);
            assert!(answer.header("access-control-allow-origin") == Some("*") || answer.header("vary").is_some(), "{path}");
        }
        let answer = from_page(&tenant, &closed.key, path, body);
        assert!(!allows(&answer), "{path}: {:?}", answer.headers);
        assert_eq!(answer.status, 403, "{path}: {}", answer.text());
        let server = tenant.send(Call::post(*path).key(&closed.key).json(body));
        assert_eq!(server.status, 202, "{path}: a client that is not a page names no origin");
    }
    assert_eq!(tenant.users(&closed.id), 1, "nothing of the page was recorded");
    let pixel = tenant.send(Call::get(format!("/i?pk={}&d=eyJuYW1lIjoiYSJ9", named.key)).header("origin", PAGE));
    assert!(pixel.status == 200 && allows(&pixel), "{:?}", pixel.headers);
}

/// A page can't read an answer without the header, and so not why its event was refused.
#[test]
fn pages_can_read_why_an_event_was_refused() {
    let tenant = Tenant::new();
    for (path, body) in [("/i", json!({})), ("/track", json!({"name": [5]})), ("/i/batch", json!({"events": 5}))] {
        let answer = from_page(&tenant, &tenant.key, path, &body);
        assert_eq!(answer.status, 400);
        assert!(allows(&answer), "{path}: {:?}", answer.headers);
    }
}

#[test]
fn other_paths_are_not_for_pages() {
    let tenant = Tenant::new();
    for path in ["/organization", "/projects", "/version", "/nothing", &tenant.path("revenue/metrics")] {
        let answer = tenant.send(Call::get(path).bearer(&tenant.token).header("origin", PAGE));
        let cors = answer.headers.iter().find(|(name, _)| name.starts_with("access-control-"));
        assert_eq!(cors, None, "{path}");
        let preflight = Call::new("OPTIONS", path).header("origin", PAGE).header("access-control-request-method", "GET");
        assert!(!allows(&tenant.send(preflight)), "{path}");
    }
}

/// Only pages of the configured origins, and only what they send a token with.
#[test]
fn pages_of_configured_origins_may_ask() {
    let server = Arc::new(TestServer::start_with(&["--query-origins", "https://Board.example:443, http://localhost:3000"]));
    let tenant = Tenant::on(&server);
    let header = |answer: &Answer, name: &str| answer.header(name).map(str::to_owned);
    for path in ["/organization", "/version", "/nothing", &tenant.path("revenue/metrics")] {
        for (origin, is_allowed) in [
            ("https://board.example", true),
            ("http://localhost:3000", true),
            ("https://board.example.evil.example", false),
            ("null", false),
        ] {
            let allowed = is_allowed.then(|| origin.to_owned());
            let answer = tenant.send(Call::get(path).bearer(&tenant.token).header("origin", origin));
            assert_eq!(header(&answer, "access-control-allow-origin"), allowed, "{path} from {origin}");
            assert!(answer.headers.iter().any(|(name, value)| name == "vary" && value.to_lowercase().contains("origin")));
            assert_eq!(header(&answer, "access-control-allow-credentials"), None);
            let preflight = Call::new("OPTIONS", path).header("origin", origin).header("access-control-request-method", "GET");
            let answer = tenant.send(preflight);
            assert_eq!(header(&answer, "access-control-allow-origin"), allowed, "preflight of {path} from {origin}");
            assert_eq!(answer.status == 204, is_allowed);
            let names = header(&answer, "access-control-allow-headers").unwrap_or_default();
            assert_eq!(names.contains("authorization"), is_allowed);
        }
    }
    let refused = tenant.send(Call::get("/organization").bearer("sk_none").header("origin", "https://board.example"));
    assert_eq!((refused.status, header(&refused, "access-control-allow-origin").is_some()), (401, true), "errors can be read");
    // Events keep their own rules, and the page of the dashboard gets no more of them.
    assert!(allows(&from_page(&tenant, &tenant.key, "/track", &json!({"name": "a"}))));
}

#[test]
fn without_consent_only_what_names_nobody_is_stored() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let gpc = tenant.project(&json!({"signals_policy": "anonymize"}));
    // Texts that nothing else has: `kept…` may be stored, `lost…` may not.
    let event = |mark: &str| {
        json!({
            "name": "pageview", "user_id": format!("lost-user-{mark}"), "anonymous_id": format!("lost-anonymous-{mark}"),
            "url": format!("https://lost-login-{mark}@kept-{mark}.example/kept-page-{mark}?q=lost-query-{mark}&utm_source=lost-source-{mark}#lost-part-{mark}"),
            "referrer": format!("https://kept-{mark}.referrer.example/lost-path-{mark}?lost-search-{mark}"),
            "message": format!("lost-message-{mark}"), "metadata": {"a": format!("lost-metadata-{mark}")},
            "_acOverrides": {"source": format!("lost-override-{mark}")}, "language": format!("kept-language-{mark}"),
            "screen": format!("kept-screen-{mark}"), "group_type": "team", "group_id": format!("kept-group-{mark}"),
            "external_id": format!("kept-key-{mark}"), "consent_source": format!("kept-consent-{mark}"),
        })
    };
    let mut refused = event("refused");
    refused["pc"] = json!("");
    let send = |key: &str, event: &Value| {
        let call = Call::post("/track").key(key).agent("LostBrowser/5.0").header("sec-gpc", "1");
        assert_eq!(tenant.send(call.json(event)).ok(202)["status"], "recorded");
    };
    send(&tenant.key, &refused);
    send(&gpc.key, &event("signalled"));
    send(&tenant.key, &event("granted"));
    for project in [&tenant.project, &gpc.id] {
        let asked = json!({"start_date": "2020-01-01", "filters": [{"field": "utm_source", "operator": "is_not_set"}]});
        let path = format!("/projects/{project}/analytics/count-unique-users-per-day");
        assert_eq!(tenant.post(&path, &asked).ok(200)["total_unique_users"], 0);
    }
    for (project, mark) in [(&tenant.project, "refused"), (&gpc.id, "signalled")] {
        // Decoded, since files are compressed.
        let exported = tenant.get(&format!("/projects/{project}/export")).text();
        let row = exported.lines().find(|line| line.contains(mark)).expect("the event is exported");
        assert!(!row.to_lowercase().contains("lost"), "{row}");
        assert!(row.contains(&format!("https://kept-{mark}.example/kept-page-{mark}\"")), "{row}");
    }
    assert!(server.stop().success());
    let stored: Vec<Vec<u8>> =
        crate::secrets::files(server.data_dir()).iter().map(|path| std::fs::read(path).expect("a file")).collect();
    let is_stored = |text: &str| stored.iter().any(|file| file.windows(text.len()).any(|window| window == text.as_bytes()));
    for lost in ["lost-metadata-granted", "lost-message-granted", "lost-query-granted", "lost-path-granted"] {
        assert!(is_stored(lost), "with consent all of it is stored: {lost}");
    }
    for mark in ["refused", "signalled"] {
        assert!(is_stored(&format!("kept-language-{mark}")), "the event itself is stored");
        let lost = ["user", "login", "anonymous", "query", "source", "part", "path", "search", "message", "metadata", "override"];
        for lost in lost.map(|name| format!("lost-{name}-{mark}")) {
            assert!(!is_stored(&lost), "{lost} is stored");
        }
    }
    assert!(!is_stored("LostBrowser"));
}

/// Browsers send no origin with an image.
#[test]
fn pixels_are_checked_by_the_page_that_shows_them() {
    let tenant = Tenant::new();
    let named = tenant.project(&json!({"allowed_origins": [PAGE, "https://port.example:8443"]}));
    let pixel = |key: &str| Call::get(format!("/i?pk={key}&d=eyJuYW1lIjoiYSJ9"));
    for page in ["https://shop.example", "https://shop.example/", "https://SHOP.example/a/b?c#d", "https://port.example:8443/x"] {
        assert_eq!(tenant.send(pixel(&named.key).header("referer", page)).status, 200, "{page}");
        assert_eq!(tenant.send(pixel(&tenant.key).header("referer", page)).status, 200, "{page}: a project that names none");
    }
    let others =
        ["https://shop.example.evil.example/", "http://shop.example/", "https://shop.example:1/", "https://a@shop.example/"];
    for page in
        others.into_iter().chain(["https://port.example/", "shop.example", "", "https://evil.example/https://shop.example"])
    {
        let answer = tenant.send(pixel(&named.key).header("referer", page));
        assert_refused(page, &answer, 403, "origin_forbidden", None);
    }
    assert_refused("no page", &tenant.send(pixel(&named.key)), 403, "origin_forbidden", None);
    // The origin goes before the page's address.
    let by_origin = pixel(&named.key).header("origin", PAGE).header("referer", "https://evil.example/");
    assert_eq!(tenant.send(by_origin).status, 200);
    let by_origin = pixel(&named.key).header("origin", "https://evil.example").header("referer", PAGE);
    assert_eq!(tenant.send(by_origin).status, 403);
    assert_eq!(tenant.send(pixel(&tenant.key)).status, 200, "a project that names none");
}

/// `sendBeacon` with a JSON blob asks first, with credentials; browsers then want an origin by
/// name, and leave for credentials.
#[test]
fn beacons_of_json_are_let_through() {
    let tenant = Tenant::new();
    let preflight = Call::new("OPTIONS", "/i").header("origin", PAGE).header("access-control-request-method", "POST");
    let asked = tenant.send(preflight.header("access-control-request-headers", "content-type"));
    let path = format!("/i?pk={}", tenant.key);
    let sent = from_page(&tenant, &tenant.key, &path, &json!({"name": "a"}));
    let refused = from_page(&tenant, &tenant.key, &path, &json!({}));
    for answer in [&asked, &sent, &refused] {
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{answer:?}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{answer:?}");
        assert!(answer.header("vary").is_some_and(|vary| vary.to_ascii_lowercase().contains("origin")), "{answer:?}");
    }
    assert_eq!((asked.status, sent.status, refused.status), (204, 202, 400));
}
