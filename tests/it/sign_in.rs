//! `/session`: browsers that sign in, and the requests in which their cookie counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::live::{Stream, bye};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};

/// How long something may take that takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Signs in, again while the tests of this machine try too often together.
#[track_caller]
pub(crate) fn sign_in(tenant: &Tenant, body: &Value) -> Answer {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = tenant.send(Call::post("/session").json(body));
        if answer.status != 429 {
            return answer;
        }
        assert!(Instant::now() < until, "{}", answer.text());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The cookie that a sign-in gives, as a browser sends it.
#[track_caller]
pub(crate) fn cookie(tenant: &Tenant, body: &Value) -> String {
    let answer = sign_in(tenant, body);
    assert_eq!((answer.status, answer.body.len()), (204, 0), "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let set = answer.header("set-cookie").expect("a cookie");
    let (pair, attributes) = set.split_once("; ").expect("attributes");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=1209600");
    assert!(pair.starts_with("headcount=s"), "{pair}");
    pair.to_owned()
}

/// A request of the page itself.
pub(crate) fn by_page(call: Call, cookie: &str) -> Call {
    call.header("cookie", cookie).header("sec-fetch-site", "same-origin")
}

/// An operation of the document: method, path with the tenant's ids, and whether a cookie may stand
/// for a token.
pub(crate) fn documented(tenant: &Tenant) -> Vec<(&'static str, String, String, bool)> {
    let document = tenant.send(Call::get("/openapi.json")).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let security = operation.get("security").unwrap_or(&document["security"]);
            let takes_cookie = security.as_array().expect("a list").contains(&json!({"session": []}));
            let method = ["GET", "POST", "PATCH", "DELETE", "PUT"].into_iter().find(|known| known.eq_ignore_ascii_case(method));
            operations.push((method.expect("a known method"), path.clone(), filled(path, tenant), takes_cookie));
        }
    }
    assert!(operations.iter().filter(|operation| operation.3).count() > 60, "most take a cookie");
    operations
}

/// The path with an id in the place of each parameter.
fn filled(path: &str, tenant: &Tenant) -> String {
    let ids = [
        ("{project_id}", &*tenant.project),
        ("{public_key}", "pk_00000000000000000000000000000000"),
        ("{company_id}", "co_0000000000000000000000"),
        ("{run_id}", "run_0000000000000000"),
        ("{profile_id}", "cp_0000000000000000"),
        ("{member_id}", "mem_0000000000000000"),
        ("{request_id}", "pr_0000000000000000"),
        ("{token_id}", "tok_0000000000000000"),
        ("{webhook_id}", "wh_0000000000000000"),
        ("{share_id}", "shr_0000000000000000"),
        ("{segment_id}", "segment_0000000000000000"),
        ("{goal_id}", "goal_0000000000000000"),
        ("{funnel_id}", "funnel_0000000000000000"),
        ("{channel_id}", "channel_0000000000000000"),
        ("{alert_id}", "alert_0000000000000000"),
        ("{mail_token}", "0"),
        ("{annotation_id}", "annotation_0000000000000000"),
    ];
    let path = ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
    assert!(!path.contains('{'), "a parameter of {path} has no value here");
    path
}

#[test]
fn a_browser_signs_in_by_token_and_code_and_out_again() {
    let tenant = Tenant::new();
    let code = tenant.post("/session/codes", &json!({})).ok(201);
    let url = code["url"].as_str().expect("a URL");
    assert_eq!(url, format!("http://headcount.test/#code={}", code["code"].as_str().expect("a code")));
    for body in [json!({"token": tenant.token}), json!({"code": code["code"]})] {
        let cookie = cookie(&tenant, &body);
        let shown = tenant.send(by_page(Call::get("/session"), &cookie)).ok(200);
        assert_eq!((&shown["role"], &shown["share"], &shown["timezone"]), (&json!("owner"), &json!(false), &json!("UTC")));
        assert_eq!(shown["projects"][0]["project_id"], tenant.project.as_str());
        assert_eq!(shown["scopes"].as_array().expect("scopes").len(), 11);
        assert!(shown["expires_at"].is_string());
        assert_eq!(tenant.send(by_page(Call::get("/organization"), &cookie)).status, 200);
        let made = tenant.send(by_page(Call::post("/projects"), &cookie).json(&json!({"name": "by the page"})));
        assert_eq!(made.status, 201, "{}", made.text());
        let out = tenant.send(by_page(Call::delete("/session"), &cookie));
        assert_eq!(out.status, 204, "{}", out.text());
        assert_eq!(out.header("set-cookie"), Some("headcount=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"));
        let after = tenant.send(by_page(Call::get("/organization"), &cookie));
        assert_refused("after signing out", &after, 401, "invalid_credential", None);
    }
    let again = sign_in(&tenant, &json!({"code": code["code"]}));
    assert_refused("a used code", &again, 401, "invalid_credential", None);
    // A token says who it is, too, and has no session to end.
    assert_eq!(tenant.get("/session").ok(200)["expires_at"], Value::Null);
    assert_refused("no cookie", &tenant.delete("/session"), 401, "invalid_credential", None);
}

/// The page asks for no days that are gone.
#[test]
fn a_session_says_since_when_its_projects_keep_events() {
    away_from_midnight();
    let tenant = Tenant::new();
    let share = tenant.post(&tenant.path("shares"), &json!({"name": "board"})).ok(201);
    let secret = share["url"].as_str().and_then(|url| url.split_once("#share=")).expect("a secret").1;
    let kept = |secret: &str| {
        let shown = tenant.send(Call::get("/session").bearer(secret)).ok(200);
        ["retention_days", "retention_floor"].map(|name| shown["projects"][0][name].clone())
    };
    let set =
        |days: Value| drop(tenant.patch(&format!("/projects/{}", tenant.project), &json!({"retention_days": days})).ok(200));
    let first = json!(rfc3339(now_ms() - 29 * 86_400_000)[..10]);
    for secret in [tenant.token.as_str(), secret] {
        assert_eq!(kept(secret), [Value::Null, Value::Null]);
    }
    for (days, expected) in [(json!(30), first.clone()), (json!(400), first.clone()), (Value::Null, first)] {
        set(days.clone());
        for secret in [tenant.token.as_str(), secret] {
            assert_eq!(kept(secret), [days.clone(), expected.clone()], "a floor never falls");
        }
    }
}

/// Any page can have a browser open an address with a code.
#[test]
fn a_session_is_replaced_by_that_of_another_token_only_on_demand() {
    let (tenant, other) = (Tenant::new(), Tenant::new());
    let name = |tenant: &Tenant| tenant.get("/organization").field("name");
    let mine = cookie(&tenant, &json!({"token": tenant.token}));
    let member = tenant.token("member", &["analytics:read"], None);
    let code = |tenant: &Tenant, token: &str| {
        tenant.send(Call::post("/session/codes").bearer(token).json(&json!({}))).ok(201)["code"].clone()
    };
    let share = other.post(&other.path("shares"), &json!({"name": "s"})).ok(201)["url"].as_str().unwrap().to_owned();
    let (_, share) = share.split_once("#share=").unwrap();
    let others = code(&other, &other.token);
    let table = [
        (json!({"code": others}), &other, "owner"),
        (json!({"token": other.token}), &other, "owner"),
        (json!({"share": share}), &other, "member"),
        (json!({"code": code(&tenant, &member)}), &tenant, "member"),
    ];
    let again = |body: &Value, cookie: &str| loop {
        let answer = tenant.send(by_page(Call::post("/session"), cookie).json(body));
        if answer.status != 429 {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    for (body, whose, role) in &table {
        for _ in 0..2 {
            let answer = again(body, &mine);
            assert_refused(&body.to_string(), &answer, 409, "signed_in", None);
            let expected = format!("{:?}; it would be signed in to {:?} as {role} instead", name(&tenant), name(whose));
            assert!(answer.text().contains(&json!(expected).to_string()[1..]), "{expected} in {}", answer.text());
            assert_eq!(answer.header("set-cookie"), None);
        }
    }
    let shown = tenant.send(by_page(Call::get("/session"), &mine)).ok(200);
    assert_eq!(shown["projects"][0]["project_id"], tenant.project.as_str());
    // What is refused anyway says so. The same token begins another session, and one that has ended
    // is replaced by any.
    assert_refused("an unknown code", &again(&json!({"code": "lc_0"}), &mine), 401, "invalid_credential", None);
    assert_eq!(again(&json!({"token": tenant.token}), &mine).status, 204);
    assert_refused("the former session", &tenant.send(by_page(Call::get("/session"), &mine)), 401, "invalid_credential", None);
    let mine = cookie(&tenant, &json!({"token": tenant.token}));
    let replaced = again(&json!({"code": others, "replace": true}), &mine);
    assert_eq!(replaced.status, 204, "the code was not used up: {}", replaced.text());
    assert_refused("it has ended", &tenant.send(by_page(Call::get("/session"), &mine)), 401, "invalid_credential", None);
    assert_eq!(again(&json!({"token": other.token}), &mine).status, 204);
    // From the page of a share, which may be in a frame, nobody signs in.
    let of_share = by_page(Call::post("/session"), &mine).header("referer", "http://headcount.test/ui/share/shr_1");
    assert_refused("a share", &tenant.send(of_share.json(&json!({"token": tenant.token}))), 403, "cross_site", None);
}

#[test]
fn sign_ins_are_checked() {
    let tenant = Tenant::new();
    let unknown = |prefix: &str| format!("{prefix}_{}", "0".repeat(32));
    let table = [
        (json!({}), 400, "missing_parameter", Some("token")),
        (json!({"token": tenant.token, "code": unknown("lc")}), 400, "invalid_parameter", Some("token")),
        (json!({"password": "x"}), 400, "unknown_parameter", Some("password")),
        (json!({"token": 5}), 400, "invalid_parameter", Some("token")),
        (json!({"token": unknown("sk")}), 401, "invalid_credential", None),
        (json!({"token": tenant.key}), 401, "invalid_credential", None),
        (json!({"token": tenant.server.initial("root_token")}), 401, "invalid_credential", None),
        (json!({"code": tenant.token}), 401, "invalid_credential", None),
        (json!({"code": unknown("lc")}), 401, "invalid_credential", None),
        (json!({"share": unknown("sh")}), 401, "invalid_credential", None),
        (json!({"share": tenant.token}), 401, "invalid_credential", None),
        (json!({"token": "x".repeat(5_000)}), 413, "body_too_large", None),
    ];
    for (body, status, code, param) in table {
        let answer = sign_in(&tenant, &body);
        let what: String = body.to_string().chars().take(60).collect();
        assert_refused(&what, &answer, status, code, param);
        assert_eq!(answer.header("set-cookie"), None);
        assert!(!answer.text().contains(&tenant.token));
    }
    // A page of another site can't sign a browser in, whatever it sends.
    let body = json!({"token": tenant.token});
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let answer = tenant.send(Call::post("/session").header(name, value).json(&body));
        assert_refused(&format!("{name}: {value}"), &answer, 403, "cross_site", None);
    }
    // A code is made with a token, and not with a cookie.
    let cookie = cookie(&tenant, &body);
    let by_cookie = tenant.send(by_page(Call::post("/session/codes"), &cookie).json(&json!({})));
    assert_refused("a code by cookie", &by_cookie, 401, "invalid_credential", None);
}

/// What a request of another site, or of none, says about itself.
const STRANGERS: [&[(&str, &str)]; 11] = [
    // A form.
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("origin", "https://evil.example")],
    &[("sec-fetch-site", "same-site"), ("origin", "https://other.headcount.test")],
    // A fetch, and an EventSource.
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
    &[("sec-fetch-site", "cross-site"), ("accept", "text/event-stream"), ("origin", "https://evil.example")],
    // An address that was typed, or followed from a mail.
    &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
    // The page of a share, which pages of other sites may frame.
    &[("sec-fetch-site", "same-origin"), ("referer", "http://headcount.test/ui/share/shr_0000000000000000")],
    &[
        ("sec-fetch-site", "same-origin"),
        ("origin", "http://headcount.test"),
        ("referer", "http://headcount.test/ui/share/shr_1/live"),
    ],
    // Browsers without `Sec-Fetch-Site`.
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
    &[("referer", "https://evil.example/headcount.test")],
    &[],
];

#[test]
fn a_cookie_counts_for_nothing_in_requests_of_other_sites() {
    let tenant = Tenant::new();
    let cookie = cookie(&tenant, &json!({"token": tenant.token}));
    for (method, name, path, takes_cookie) in documented(&tenant) {
        if name == "/session" && method == "POST" {
            continue;
        }
        let call = || {
            let call = Call::new(method, path.clone());
            if method == "GET" { call } else { call.text("text/plain", "{}") }
        };
        let json = |call: Call| if method == "GET" { call } else { call.header("x-test", "1") };
        for stranger in STRANGERS {
            let said = |call: Call| stranger.iter().fold(call, |call, (name, value)| call.header(name, *value));
            let with = tenant.send(json(said(call()).header("cookie", cookie.clone())));
            let without = tenant.send(said(call()));
            let what = format!("{method} {name} with {stranger:?}");
            assert_eq!(with.status, without.status, "{what}: {}", with.text());
            if takes_cookie {
                assert_refused(&what, &with, 401, "invalid_credential", None);
            }
        }
    }
}

#[test]
fn a_cookie_counts_in_requests_of_the_page() {
    let tenant = Tenant::new();
    let cookie = cookie(&tenant, &json!({"token": tenant.token}));
    let own: [&[(&str, &str)]; 4] = [
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://headcount.test")],
        &[("origin", "http://headcount.test")],
        &[("referer", "http://headcount.test/ui/live?project=a")],
    ];
    for (method, name, path, takes_cookie) in documented(&tenant) {
        // These would end what the others need.
        let ends = method == "DELETE" && ["/session", "/projects/{project_id}"].contains(&&*name);
        if !takes_cookie || ends {
            continue;
        }
        // A stream has no end; its head has none of it.
        let method = if name.ends_with("/live") { "HEAD" } else { method };
        for headers in own {
            let call = Call::new(method, path.clone()).header("cookie", cookie.clone());
            let call = if ["GET", "HEAD"].contains(&method) { call } else { call.json(&json!({})) };
            let answer = tenant.send(headers.iter().fold(call, |call, (name, value)| call.header(name, *value)));
            // Only reads may have no more than a referer.
            let counts = headers[0].0 != "referer" || ["GET", "HEAD"].contains(&method);
            assert_eq!(answer.status != 401, counts, "{method} {name} with {headers:?}: {}", answer.text());
            assert!(
                !counts || answer.status != 403 || answer.text().contains("capability_required"),
                "{method} {name}: {}",
                answer.text()
            );
        }
    }
}

#[test]
fn a_cookie_beside_a_token_or_another_cookie_is_refused() {
    let tenant = Tenant::new();
    let cookie = cookie(&tenant, &json!({"token": tenant.token}));
    for path in ["/organization", "/session", &tenant.path("revenue/metrics"), &tenant.path("live")] {
        for call in [
            Call::get(path).bearer(&tenant.token).header("cookie", cookie.clone()),
            by_page(Call::get(path), &cookie).bearer(&tenant.token),
            by_page(Call::get(path), "headcount=").bearer(&tenant.token),
            by_page(Call::get(path), &format!("a=b; {cookie}; headcount=ss_x")),
            by_page(Call::get(path).header("cookie", cookie.clone()), &cookie),
        ] {
            assert_refused(&format!("{call:?}"), &tenant.send(call), 400, "duplicate_credentials", None);
        }
        for call in [
            by_page(Call::get(path), "headcount=ss_00000000000000000000000000000000"),
            by_page(Call::get(path), &format!("headcount={}", tenant.token)),
            by_page(Call::get(path), "headcount="),
            by_page(Call::get(path), &cookie.replace("headcount=", "__Host-headcount=")),
            by_page(Call::get(path), "theme=dark; other=headcount=1"),
        ] {
            assert_refused(&format!("{call:?}"), &tenant.send(call), 401, "invalid_credential", None);
        }
    }
    // Other cookies of the host say nothing.
    let with_others = by_page(Call::get("/organization"), &format!("theme=dark; {cookie}; a=b"));
    assert_eq!(tenant.send(with_others).status, 200);
    assert_eq!(tenant.send(Call::get("/organization").bearer(&tenant.token).header("cookie", "theme=dark")).status, 200);
}

#[test]
fn a_session_lives_over_restarts_and_ends_with_its_token() {
    let server =
        Arc::new(TestServer::start_with(&["--log", "info,headcount=trace,headcount_actors=trace,headcount_storage=trace"]));
    let tenant = Tenant::on(&server);
    let made = tenant.post("/api-tokens", &json!({"name": "t", "role": "member", "scopes": ["analytics:read"]})).ok(201);
    let (id, secret) = (made["token_id"].as_str().expect("an id"), made["token"].as_str().expect("a secret"));
    let code = tenant.send(Call::post("/session/codes").bearer(secret)).ok(201)["code"].as_str().expect("a code").to_owned();
    let sessions: Vec<String> =
        [json!({"token": secret}), json!({"code": code})].iter().map(|body| cookie(&tenant, body)).collect();
    let ask = |cookie: &str| {
        let path = tenant.path("analytics/count-unique-users-per-day");
        tenant.send(by_page(Call::post(path), cookie).json(&json!({}))).status
    };
    for restart in [TestServer::restart, TestServer::kill] {
        restart(&server);
        assert_eq!(sessions.iter().map(|cookie| ask(cookie)).collect::<Vec<_>>(), [200, 200]);
    }
    let head = |cookie: &str| format!("cookie: {cookie}\r\nsec-fetch-site: same-origin\r\n");
    let mut stream = Stream::open_with(&tenant, &head(&sessions[0]));
    stream.read().expect("a snapshot");
    assert_eq!(tenant.delete(&format!("/api-tokens/{id}")).status, 204);
    let revoked = Instant::now();
    assert_eq!(sessions.iter().map(|cookie| ask(cookie)).collect::<Vec<_>>(), [401, 401], "from the next request on");
    assert_eq!(bye(&mut stream).0, "unauthorized");
    println!("the stream of a session ended {} ms after its token was revoked", revoked.elapsed().as_millis());
    server.restart();
    assert_eq!(ask(&sessions[0]), 401);

    // Who signs out ends the streams of that session alone.
    let [first, second] = [0, 1].map(|_| cookie(&tenant, &json!({"token": tenant.token})));
    let [mut ended, mut other] = [&first, &second].map(|cookie| Stream::open_with(&tenant, &head(cookie)));
    ended.read().expect("a snapshot");
    assert_eq!(tenant.send(by_page(Call::delete("/session"), &first)).status, 204);
    assert_eq!(bye(&mut ended).0, "unauthorized");
    other.read().expect("a snapshot");

    assert!(server.stop().success());
    let log = server.log();
    let secrets = sessions.iter().chain([&first, &second]).map(|pair| pair.split_once('=').expect("a pair").1);
    for secret in secrets.chain([&*code, secret]) {
        let line = log.lines().find(|line| line.contains(secret) || line.contains(&secret[3..]));
        assert_eq!(line, None, "a secret is in the log");
        let file = crate::secrets::files(server.data_dir())
            .into_iter()
            .find(|path| String::from_utf8_lossy(&std::fs::read(path).expect("a file")).contains(&secret[3..]));
        assert_eq!(file, None, "a secret is on disk");
    }
}

#[test]
fn the_cookie_of_https_is_the_hosts_own() {
    let settings = ["--trusted-proxies", "127.0.0.0/8"];
    let tenant = Tenant::on(&Arc::new(TestServer::start_with(&settings)));
    let body = json!({"token": tenant.token});
    let set = |call: Call| tenant.send(call.json(&body)).header("set-cookie").expect("a cookie").to_owned();
    let secure = set(Call::post("/session").header("x-forwarded-proto", "http, https"));
    assert!(secure.starts_with("__Host-headcount=ss_") && secure.contains("; Secure; SameSite=Strict; Path=/; "), "{secure}");
    assert!(set(Call::post("/session").header("x-forwarded-proto", "https, http")).starts_with("headcount=ss_"));
    let pair = secure.split(';').next().expect("a pair");
    let ask = |pair: &str, proto: &str| {
        tenant.send(by_page(Call::get("/organization"), pair).header("x-forwarded-proto", proto)).status
    };
    assert_eq!((ask(pair, "https"), ask(pair, "http")), (200, 401));
    // Over https, another site of the domain could have set the other name.
    assert_eq!(ask(&pair.replace("__Host-", ""), "https"), 401);

    let tenant = Tenant::on(&Arc::new(TestServer::start_with(&["--public-url", "https://stats.example"])));
    let answer = tenant.send(Call::post("/session").json(&json!({"token": tenant.token})));
    let set = answer.header("set-cookie").expect("a cookie");
    assert!(set.starts_with("__Host-headcount=ss_"), "{set}");
    let pair = set.split(';').next().expect("a pair");
    // A proxy may send another host.
    let ask = |origin: &str| tenant.send(Call::get("/organization").header("cookie", pair).header("origin", origin)).status;
    assert_eq!((ask("https://stats.example"), ask("https://evil.example")), (200, 401));
    assert!(tenant.post("/session/codes", &json!({})).field("url").starts_with("https://stats.example/#code=lc_"));

    // Nobody believes a client.
    let tenant = Tenant::on(&Arc::new(TestServer::start()));
    let answer = tenant.send(Call::post("/session").header("x-forwarded-proto", "https").json(&json!({"token": tenant.token})));
    assert!(answer.header("set-cookie").expect("a cookie").starts_with("headcount=ss_"));
}

#[test]
fn an_address_has_five_tries_a_second() {
    let server = Arc::new(TestServer::start_with(&["--trusted-proxies", "127.0.0.0/8"]));
    let tenant = Tenant::on(&server);
    let attempt = |address: &str| {
        let call = Call::post("/session").header("x-forwarded-for", address);
        tenant.send(call.json(&json!({"token": format!("sk_{}", "0".repeat(32))})))
    };
    let began = Instant::now();
    let statuses: Vec<u16> = (0..20).map(|_| attempt("203.0.113.1").status).collect();
    let most = 5 * (began.elapsed().as_secs() as usize + 1);
    let (tried, refused) =
        (statuses.iter().filter(|status| **status == 401).count(), statuses.iter().filter(|status| **status == 429).count());
    assert!((5..=most).contains(&tried) && tried + refused == 20, "{statuses:?} in {:?}", began.elapsed());
    assert_eq!(attempt("203.0.113.2").status, 401, "another address");
    if began.elapsed() < Duration::from_millis(900) {
        let answer = attempt("203.0.113.1");
        assert_refused("one too many", &answer, 429, "rate_limited", None);
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    std::thread::sleep(Duration::from_millis(1_050));
    assert_eq!(attempt("203.0.113.1").status, 401, "a second later");
}

#[test]
fn login_prints_an_address_that_works_once() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let printed = server.run("login", &[]);
    let url = printed.lines().next().expect("an address");
    let code = url.split_once("/#code=").expect("a code").1;
    assert_eq!(url, format!("http://{}/#code={code}", server.address()));
    let cookie = cookie(&tenant, &json!({"code": code}));
    let shown = tenant.send(by_page(Call::get("/session"), &cookie)).ok(200);
    assert_eq!(shown["projects"][0]["project_id"], server.initial("project_id"));
    assert_eq!(sign_in(&tenant, &json!({"code": code})).status, 401);
    let json: Value = serde_json::from_str(&server.run("login", &["--json", "--token", &tenant.token])).expect("JSON");
    assert!(json["url"].as_str().expect("a URL").ends_with(json["code"].as_str().expect("a code")));
}
