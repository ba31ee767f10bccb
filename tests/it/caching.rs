//! `ETag` and `If-None-Match`: a tag changes exactly when the answer can have changed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// The questions about a tenant's first project.
fn questions(tenant: &Tenant) -> Vec<Call> {
    let window = json!({"start_date": "2024-01-01", "end_date": "2024-01-31"});
    let users = tenant.path("analytics/count-unique-users-per-day");
    let query = "start_date=2024-01-01&end_date=2024-01-31";
    let mut filtered = window.clone();
    filtered["event_name"] = json!("order");
    vec![
        Call::post(users.clone()).bearer(&tenant.token).json(&window),
        Call::post(users.clone()).bearer(&tenant.token).json(&filtered),
        Call::post(users).bearer(&tenant.token).json(&json!({})),
        Call::get(tenant.path(&format!("revenue/metrics?{query}"))).bearer(&tenant.token),
        Call::get(tenant.path("revenue/metrics")).bearer(&tenant.token),
        Call::get(tenant.path(&format!("revenue/timeseries?{query}"))).bearer(&tenant.token),
        Call::get(tenant.path(&format!("revenue/by-attribution?{query}"))).bearer(&tenant.token),
        Call::get(tenant.path("revenue/by-attribution?model=last_touch")).bearer(&tenant.token),
        Call::get(tenant.path("revenue/ltv-cohorts")).bearer(&tenant.token),
    ]
}

/// The questions about a whole organization, in which ada of acme.com was recorded.
fn organization_wide(tenant: &Tenant) -> Vec<String> {
    let company = tenant.get("/companies/lookup?domain=acme.com").field("company_id");
    vec![
        "/identities/profile?user_id=ada&start_date=2024-01-01&end_date=2024-01-31".to_owned(),
        "/identities/profile?user_id=ada".to_owned(),
        "/identities/profile?email=ada%40acme.com".to_owned(),
        "/identities/referrers?user_id=ada".to_owned(),
        "/identities/top-pages?user_id=ada".to_owned(),
        "/identities/top".to_owned(),
        "/companies/lookup?domain=acme.com".to_owned(),
        "/companies/top".to_owned(),
        "/companies/top?range_days=7".to_owned(),
        format!("/companies/{company}/metrics"),
        format!("/companies/{company}/top-users"),
        "/groups/metrics?group_type=team&group_key=t1".to_owned(),
        "/groups/top?group_type=team".to_owned(),
    ]
}

fn tags_of(tenant: &Tenant, targets: &[String]) -> Vec<String> {
    targets.iter().map(|target| tenant.get(target)).map(|answer| (answer.ok(200), answer.etag()).1).collect()
}

fn tags(tenant: &Tenant) -> Vec<String> {
    questions(tenant).into_iter().map(|call| tenant.send(call)).map(|answer| (answer.ok(200), answer.etag()).1).collect()
}

#[track_caller]
fn assert_not_modified(what: &str, answer: &Answer, tag: &str) {
    assert_eq!((answer.status, answer.body.len()), (304, 0), "{what}: {}", answer.text());
    assert_eq!(answer.header("etag").map(plain), Some(plain(tag)), "{what}");
}

/// A tag without its mark of weakness.
fn plain(tag: &str) -> &str {
    tag.trim_start_matches("W/")
}

#[test]
fn questions_are_answered_304_while_nothing_changed() {
    away_from_midnight();
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "order", "user_id": "zoe", "value": 5, "timestamp": "2024-01-05T10:00:00Z"}));
    for call in questions(&tenant) {
        let what = format!("{call:?}");
        let tag = tenant.send(call.clone()).etag();
        assert!(plain(&tag).starts_with('"') && plain(&tag).ends_with('"'), "{tag}");
        // Not a name that hexadecimal digits spell by chance.
        assert!(!tag.contains("zoe"), "{tag}");
        let ask = |known: &str| tenant.send(call.clone().header("if-none-match", known));
        for known in
            [tag.clone(), format!("W/{}", plain(&tag)), format!("\"other\", {tag}"), format!("{tag},\"other\""), "*".to_owned()]
        {
            assert_not_modified(&what, &ask(&known), &tag);
        }
        for known in ["\"other\"", "", plain(&tag).trim_matches('"'), "\"\""] {
            assert_eq!(ask(known).status, 200, "{what} with {known:?}");
        }
        let twice = tenant.send(call.clone().header("if-none-match", "\"a\"").header("if-none-match", &*tag));
        assert_not_modified("in the second header", &twice, &tag);
    }
}

#[test]
fn a_tag_is_its_questions() {
    let (tenant, other) = (Tenant::new(), Tenant::new());
    let tags = tags(&tenant);
    let distinct: std::collections::BTreeSet<_> = tags.iter().chain(&self::tags(&other)).cloned().collect();
    assert_eq!(distinct.len(), 2 * tags.len(), "each question has its own tag");
    let all = tags.join(", ");
    let call = Call::get(tenant.path("revenue/metrics?start_date=2024-02-01&end_date=2024-02-02")).bearer(&tenant.token);
    assert_eq!(tenant.send(call.header("if-none-match", all)).status, 200, "none of the others");
}

/// Whether the tag of each of [`questions`] changes: those about January 2024, about the last 31
/// days, and about all time.
type Changes = [bool; 9];

const NONE: Changes = [false; 9];
/// An order of January 2024 changes all that its window or all time concerns.
const THEN: Changes = [true, true, false, true, false, true, true, false, true];
/// An order of today leaves the closed window alone.
const TODAY: Changes = [false, false, true, false, true, false, false, true, true];

fn changes(before: &[String], after: &[String]) -> Vec<bool> {
    before.iter().zip(after).map(|(before, after)| before != after).collect()
}

#[test]
fn a_recorded_event_changes_the_tags_of_its_day() {
    away_from_midnight();
    let tenant = Tenant::new();
    let other = tenant.project(&json!({"currency": "EUR"}));
    let mut before = tags(&tenant);
    let mut changed = |what: &str, expected: Changes, act: &dyn Fn() -> Answer| {
        let answer = act();
        let after = tags(&tenant);
        assert_eq!(changes(&before, &after), expected, "{what}: {}", answer.text());
        before = after;
        answer
    };
    let order = json!({"name": "order", "user_id": "ada", "value": 5, "external_id": "o-1", "timestamp": "2024-01-05T10:00:00Z"});
    let status = |answer: Answer| answer.json()["status"].as_str().unwrap_or_default().to_owned();
    assert_eq!(status(changed("an event", THEN, &|| tenant.track(&order))), "recorded");
    assert_eq!(status(changed("a duplicate", NONE, &|| tenant.track(&order))), "duplicate");
    assert_eq!(changed("a refused event", NONE, &|| tenant.track(&json!({"name": [5]}))).status, 400);
    let crawler = || {
        let call = Call::post("/track").key(&tenant.key).agent("Googlebot/2.1 (+http://www.google.com/bot.html)");
        tenant.send(call.json(&json!({"name": "pageview"})))
    };
    assert_eq!(status(changed("a dropped event", NONE, &crawler)), "dropped");
    let elsewhere = || tenant.send(Call::post("/track").key(&other.key).json(&order));
    assert_eq!(status(changed("another project's event", NONE, &elsewhere)), "recorded");
    let batch = |events: Value| tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({ "events": events })));
    assert_eq!(changed("a batch of duplicates", NONE, &|| batch(json!([order, order]))).json()["duplicates"], 2);
    assert_eq!(changed("an empty batch", NONE, &|| batch(json!([]))).status, 202);
    let today = || batch(json!([order, {"name": "order", "user_id": "ben", "value": 1}]));
    assert_eq!(changed("a batch", TODAY, &today).json()["recorded"], 1);
    changed("another token", NONE, &|| tenant.post("/api-tokens", &json!({"name": "t", "role": "member", "scopes": ["admin"]})));
    assert_eq!(changed("nothing", NONE, &|| tenant.get("/organization")).status, 200);
}

/// What can concern a closed window changes the tags of the answers that it concerns, whenever it
/// arrives.
#[test]
fn a_closed_window_keeps_its_tags_while_events_flow() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let then = |body: Value| {
        let mut body = body;
        body["timestamp"] = json!(body.get("at").map_or("2024-01-05T10:00:00Z", |at| at.as_str().expect("a time")));
        body.as_object_mut().map(|fields| fields.remove("at"));
        tenant.recorded(&body)
    };
    then(json!({"name": "order", "user_id": "ada", "value": 5}));
    then(json!({"name": "pageview", "anonymous_id": "a1"}));
    then(json!({"name": "pageview", "user_id": "ben"}));
    then(
        json!({"name": "pageview", "user_id": "ben", "at": "2024-01-05T10:50:00Z", "url": "https://shop.example/?utm_source=x"}),
    );
    let closed: Vec<Call> = questions(&tenant).into_iter().zip(THEN).filter(|(_, then)| *then).map(|(call, _)| call).collect();
    let mut closed = closed;
    let last = closed.pop().expect("cohorts");
    assert!(format!("{last:?}").contains("ltv-cohorts"));
    let entries = json!({
        "start_date": "2024-01-01", "end_date": "2024-01-31",
        "filters": [{"field": "name", "operator": "is", "value": "pageview"}],
    });
    let path = tenant.path("analytics/count-unique-users-per-day");
    closed.push(Call::post(path).bearer(&tenant.token).json(&entries));
    let tags = || closed.iter().map(|call| tenant.send(call.clone()).etag()).collect::<Vec<_>>();
    let mut before = tags();
    // Users, orders, metrics, timeseries, attribution, pageviews.
    let mut changed = |what: &str, expected: [bool; 6], act: &dyn Fn()| {
        act();
        let after = tags();
        assert_eq!(changes(&before, &after), expected, "{what}");
        for (call, (tag, changed)) in closed.iter().zip(before.iter().zip(expected)) {
            let answer = tenant.send(call.clone().header("if-none-match", &**tag));
            assert_eq!(answer.status, if changed { 200 } else { 304 }, "{what}");
        }
        before = after;
    };
    let now = |body: Value| drop(tenant.recorded(&body));
    changed("new and known users of today", [false; 6], &|| {
        now(json!({"name": "pageview", "user_id": "zoe"}));
        now(json!({"name": "pageview", "user_id": "zoe"}));
        now(json!({"name": "order", "user_id": "ben", "value": 7}));
        now(json!({"name": "order", "value": 7, "privacy_categories": ""}));
        now(json!({"name": "pageview", "user_id": "cleo", "anonymous_id": "a9"}));
    });
    server.restart();
    changed("a restart", [false; 6], &|| ());
    changed("a first touch of who bought then", [false, false, false, false, true, false], &|| {
        now(json!({"name": "pageview", "user_id": "ada", "url": "https://shop.example/?utm_source=newsletter"}));
    });
    changed("a company of who was active then", [false, false, true, false, true, false], &|| {
        now(json!({"name": "pageview", "user_id": "ada", "group_type": "company", "group_id": "acme.com"}));
        now(json!({"name": "pageview", "user_id": "ben", "group_type": "company", "group_id": "acme.com"}));
    });
    changed("a link of who was active then", [true, true, true, false, false, true], &|| {
        now(json!({"name": "login", "user_id": "ada", "anonymous_id": "a1"}));
    });
    changed("a late event that joins two sessions, of which one had a source", [false, true, false, false, false, true], &|| {
        then(json!({"name": "click", "user_id": "ben", "at": "2024-01-05T10:25:00Z"}));
    });
    changed("late money of nobody", [false, true, true, true, true, true], &|| {
        then(json!({"name": "order", "value": 7, "privacy_categories": ""}));
    });
    server.kill();
    changed("a crash", [false; 6], &|| ());
}

/// A floor concerns what reads events, and only on the days that it passes; what is summed up stays
/// as it is, and so do its tags.
#[test]
fn a_floor_changes_the_tags_of_what_reads_events() {
    const DAY_MS: i64 = 86_400_000;
    away_from_midnight();
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5, "timestamp": "2024-01-05T10:00:00Z"}));
    tenant.recorded(&json!({"name": "order", "user_id": "ben", "value": 5, "timestamp": "2023-12-30T10:00:00Z"}));
    let project = format!("/projects/{}", tenant.project);
    // The number of days that are kept if those from a day on are, given as the days since
    // 2024-01-01.
    let today = now_ms() / DAY_MS - 19_723;
    let rise = |to: i64| tenant.patch(&project, &json!({"retention_days": today - to + 1})).ok(200)["retention_floor"].clone();
    let mut before = tags(&tenant);
    let mut changed = |what: &str, is_changed: bool, to: i64, floor: &str| {
        assert_eq!(rise(to), floor, "{what}");
        let after = tags(&tenant);
        let expected: Changes = std::array::from_fn(|question| is_changed && question == 1);
        assert_eq!(changes(&before, &after), expected, "{what}");
        for (call, tag) in questions(&tenant).into_iter().zip(&after) {
            assert_not_modified(what, &tenant.send(call.header("if-none-match", &**tag)), tag);
        }
        before = after;
    };
    changed("a first floor", true, -400, "2022-11-27");
    changed("a floor below the window", false, -350, "2023-01-16");
    changed("one that rises far", true, -2, "2023-12-30");
    changed("the day before the window", false, -1, "2023-12-31");
    changed("the window's first day", true, 0, "2024-01-01");
    // What can't be answered any more is refused, however well its former answer is known.
    let filtered = questions(&tenant).swap_remove(1);
    let tag = tenant.send(filtered.clone()).etag();
    assert_eq!(rise(1), "2024-01-02");
    let answer = tenant.send(filtered.header("if-none-match", &*tag));
    assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (400, Some("before_retention")), "{}", answer.text());
    let users = questions(&tenant).swap_remove(0);
    assert_eq!(tenant.send(users).etag(), before[0], "unique users stay");
}

#[test]
fn what_a_question_is_answered_in_changes_its_tag() {
    let tenant = Tenant::new();
    let before = tags(&tenant);
    let top = ["/companies/top".to_owned()];
    let of_organization = tags_of(&tenant, &top);
    assert_eq!(tenant.patch("/organization", &json!({"timezone": "Asia/Kolkata"})).status, 200);
    let after = tags(&tenant);
    assert_ne!(before[0], after[0], "the answer names the timezone");
    assert_ne!(tags_of(&tenant, &top), of_organization, "its days are others");
    let of_organization = tags_of(&tenant, &top);
    assert_eq!(tenant.patch("/organization", &json!({"currency": "EUR"})).status, 200);
    assert_ne!(tags_of(&tenant, &top), of_organization, "its money is in another currency");
    assert_eq!(tenant.patch(&format!("/projects/{}", tenant.project), &json!({"currency": "EUR"})).status, 200);
    assert_ne!(tags(&tenant)[3], after[3], "the answer names the currency");
}

#[test]
fn tags_survive_a_restart_and_a_crash() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for number in 0..50 {
        tenant.recorded(&json!({"name": "order", "user_id": format!("user {number}"), "value": 1}));
    }
    let management = |tenant: &Tenant| ["/organization", "/projects", "/api-tokens"].map(|path| tenant.get(path).etag());
    let (before, managed) = (tags(&tenant), management(&tenant));
    server.restart();
    assert_eq!(tags(&tenant), before, "after a restart");
    assert_eq!(management(&tenant), managed);
    server.kill();
    assert_eq!(tags(&tenant), before, "after a crash");
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 1}));
    let after = tags(&tenant);
    assert_eq!(changes(&before, &after), TODAY);
    server.restart();
    assert_eq!(tags(&tenant), after);
}

#[test]
fn a_compressed_answer_has_the_same_tag() {
    let tenant = Tenant::new();
    let target = tenant.path("revenue/timeseries?start_date=2024-01-01&end_date=2024-12-31");
    let call = Call::get(target).bearer(&tenant.token);
    let tag = tenant.send(call.clone()).etag();
    let gzip = call.clone().header("accept-encoding", "gzip");
    let compressed = tenant.send(gzip.clone());
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert_eq!(plain(&compressed.etag()), plain(&tag));
    for known in [&tag, &compressed.etag()] {
        assert_not_modified("compressed", &tenant.send(gzip.clone().header("if-none-match", &**known)), &tag);
        assert_not_modified("plain", &tenant.send(call.clone().header("if-none-match", &**known)), &tag);
    }
}

/// What is shown of the organization and the program has tags too.
#[test]
fn every_get_has_a_tag() {
    let tenant = Tenant::new();
    let project = format!("/projects/{}", tenant.project);
    let change = json!({"name": "renamed"});
    let ask = |path: &str, known: &str| tenant.send(Call::get(path).bearer(&tenant.token).header("if-none-match", known));
    for path in ["/organization", "/projects", &project, "/api-tokens", "/version", "/openapi.json"] {
        let tag = tenant.get(path).etag();
        assert_not_modified(path, &ask(path, &tag), &tag);
        assert_eq!(ask(path, "\"other\"").status, 200, "{path}");
    }
    for (path, changed) in [("/organization", "/organization"), (&project, "/projects"), (&project, &project)] {
        let tag = tenant.get(changed).etag();
        assert_eq!(tenant.patch(path, &change).status, 200);
        let is_same = tenant.get(changed).etag() == tag;
        assert_eq!(is_same, changed == project, "{changed}: {}", tenant.get(changed).text());
    }
    let tag = tenant.get("/api-tokens").etag();
    tenant.token("member", &["admin"], None);
    assert_ne!(tenant.get("/api-tokens").etag(), tag);
}

/// Who may not ask learns nothing, with the right tag neither.
#[test]
fn a_tag_is_no_credential() {
    let tenant = Tenant::new();
    let member = tenant.token("member", &["analytics:read"], None);
    for call in questions(&tenant) {
        let tag = tenant.send(call).etag();
        let anonymous = Call::get(tenant.path("revenue/metrics")).header("if-none-match", &*tag);
        assert_eq!(tenant.send(anonymous.clone()).status, 401);
        assert_eq!(tenant.send(anonymous.bearer(&member)).status, 403);
    }
}

#[test]
fn organization_wide_questions_are_answered_304_while_nothing_changed() {
    away_from_midnight();
    let tenant = Tenant::new();
    tenant.peopled();
    let targets = organization_wide(&tenant);
    let tags = tags_of(&tenant, &targets);
    let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
    assert_eq!(distinct.len(), tags.len(), "each question has its own tag");
    for (target, tag) in targets.iter().zip(&tags) {
        let ask = |known: &str| tenant.send(Call::get(&**target).bearer(&tenant.token).header("if-none-match", known));
        for known in [tag.clone(), format!("W/{}", plain(tag)), format!("\"other\", {tag}"), "*".to_owned()] {
            assert_not_modified(target, &ask(&known), tag);
        }
        assert_eq!(ask("\"other\"").status, 200, "{target}");
        let head = Call::new("HEAD", &**target).bearer(&tenant.token);
        assert_eq!(plain(&tenant.send(head).etag()), plain(tag), "{target}");
    }
    for unknown in ["/identities/profile?user_id=zoe", "/companies/lookup?domain=unknown.example"] {
        let call = Call::get(unknown).bearer(&tenant.token).header("if-none-match", "*");
        assert_eq!(tenant.send(call).status, 404, "an unknown project: {unknown}");
    }
}

#[test]
fn an_event_of_any_project_changes_the_tags_of_the_organization() {
    away_from_midnight();
    let (tenant, stranger) = (Tenant::new(), Tenant::new());
    tenant.peopled();
    let sibling = tenant.project(&json!({"name": "sibling"}));
    let targets = organization_wide(&tenant);
    let mut before = tags_of(&tenant, &targets);
    let mut changed = |what: &str, is_changed: bool, act: &dyn Fn() -> Answer| {
        let answer = act();
        let after = tags_of(&tenant, &targets);
        for (target, (before, after)) in targets.iter().zip(before.iter().zip(&after)) {
            assert_eq!(before != after, is_changed, "{what}, {target}: {}", answer.text());
        }
        before = after;
    };
    let event = json!({"name": "order", "user_id": "ben", "value": 5, "external_id": "o-1"});
    let elsewhere = |key: &str| tenant.send(Call::post("/track").key(key).json(&event));
    changed("an event", true, &|| tenant.track(&event));
    changed("a duplicate", false, &|| tenant.track(&event));
    changed("a sibling's event", true, &|| elsewhere(&sibling.key));
    changed("a sibling's duplicate", false, &|| elsewhere(&sibling.key));
    changed("another organization's event", false, &|| elsewhere(&stranger.key));
    changed("a refused event", false, &|| tenant.track(&json!({"name": [5]})));
    changed("a rate", false, &|| tenant.patch("/organization", &json!({"fx_rates": {"EUR": 1.08}})));
}

#[test]
fn tags_of_the_organization_survive_a_restart_and_a_crash() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    tenant.peopled();
    let targets = organization_wide(&tenant);
    let before = tags_of(&tenant, &targets);
    server.restart();
    assert_eq!(tags_of(&tenant, &targets), before, "after a restart");
    server.kill();
    assert_eq!(tags_of(&tenant, &targets), before, "after a crash");
}

#[test]
fn a_repeated_question_has_the_answer_of_now() {
    away_from_midnight();
    let tenant = Tenant::new();
    // In the windows of some questions, and in those that end today.
    let record = |number: u32| {
        for timestamp in [json!("2024-01-05T10:00:00Z"), Value::Null] {
            tenant.recorded(
                &json!({"name": "order", "user_id": "ada", "value": 5, "url": format!("https://shop.example/{number}"),
                "referrer": "https://news.example/", "group_type": "team", "group_id": "t1", "timestamp": timestamp,
                "metadata": {"email": "ada@acme.com"}}),
            );
        }
    };
    record(0);
    let calls: Vec<Call> = questions(&tenant)
        .into_iter()
        .chain(organization_wide(&tenant).into_iter().map(|target| Call::get(target).bearer(&tenant.token)))
        .collect();
    let mut differed = 0;
    let mut before: Option<Vec<Value>> = None;
    for number in 1..5 {
        let mut answers = Vec::new();
        for call in &calls {
            let computed = tenant.send(call.clone().header("cache-control", "no-cache")).ok(200);
            for _ in 0..2 {
                assert_eq!(tenant.send(call.clone()).ok(200), computed, "{call:?} after {number} events");
            }
            answers.push(computed);
        }
        differed += before.iter().flatten().zip(&answers).filter(|(before, now)| before != now).count();
        before = Some(answers);
        record(number);
    }
    assert!(differed >= 3 * 12, "{differed} answers changed");
}
