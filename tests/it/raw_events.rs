//! Lists of events: order, pages, cursors, and what they cost.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{Tenant, now_ms};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const WINDOW: &str = "start_date=2024-02-01&end_date=2024-04-01";

fn encoded(filters: &Value) -> String {
    form_urlencoded::byte_serialize(filters.to_string().as_bytes()).collect()
}

/// Sends events whose order in time is another one than that of recording; some have equal times,
/// some are duplicates.
fn send(tenant: &Tenant, count: i64) {
    let event = |number: i64| {
        let at = BASE_MS + number * 7_919 % 97 * 60_000;
        json!({"name": if number % 3 == 0 { "order" } else { "pageview" }, "timestamp": at, "anonymous_id": format!("a{}", number % 9),
               "external_id": format!("e{}", number - number % 7 / 6), "metadata": {"number": number}})
    };
    let events: Vec<Value> = (0..count).map(event).collect();
    for events in events.chunks(50) {
        let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"events": events})));
        assert_eq!(sent.status, 202, "{}", sent.text());
    }
}

/// All pages of a question.
fn pages(tenant: &Tenant, query: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = tenant.get(&tenant.path(&format!("events?{query}{cursor}"))).ok(200);
        pages.push(page["events"].as_array().expect("events").clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

fn key(event: &Value) -> (String, u64) {
    (event["timestamp"].as_str().expect("an instant").to_owned(), event["position"].as_u64().expect("a position"))
}

/// Row groups of other days are skipped, and no event of the pages with them.
#[test]
fn sealing_changes_no_page() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let day_ms = 86_400_000;
    let window = "start_date=2024-03-03&end_date=2024-03-05";
    let filters = encoded(&json!([{"field": "metadata.number", "operator": "gte", "value": 11}]));
    let queries = [WINDOW, window, &format!("{window}&event_name=order"), &format!("{WINDOW}&filters={filters}")];
    let all = |limit: usize| -> Vec<Vec<Value>> {
        let pages = |query: &&str| pages(&tenant, &format!("{query}&limit={limit}")).concat();
        queries.iter().map(pages).collect()
    };
    // Each file has events of two days, and some of a day long before.
    for file in 0..6 {
        let event = |number: i64| {
            let day = if number % 10 == 9 { 1 } else { file + number % 2 };
            json!({"name": if number % 3 == 0 { "order" } else { "pageview" }, "timestamp": BASE_MS + day * day_ms + number / 3 * 1_000,
                   "anonymous_id": format!("a{}", number % 4), "metadata": {"file": file, "number": number}})
        };
        let events: Vec<Value> = (0..30).map(event).collect();
        let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"events": events})));
        assert_eq!(sent.status, 202, "{}", sent.text());
        let logged = all(7);
        assert!(crate::archive::seal(&server).is_some());
        assert_eq!((all(7), all(1_000)), (logged.clone(), logged), "file {file}");
    }
    let found = all(1_000);
    assert!((20..180).contains(&found[1].len()) && found[0].len() == 180, "{} and {}", found[1].len(), found[0].len());
}

/// The latest events are read from the end, up to where no event of the page can be.
#[test]
fn a_page_of_the_latest_events_reads_no_file_of_earlier_ones() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for file in 0..5 {
        let event = |number: i64| {
            let at = BASE_MS + file * 3 * 86_400_000 + number * 1_000;
            json!({"name": "order", "timestamp": at, "anonymous_id": "a", "metadata": {"number": number}})
        };
        let events: Vec<Value> = (0..30).map(event).collect();
        let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"events": events})));
        assert_eq!(sent.status, 202, "{}", sent.text());
        assert!(crate::archive::seal(&server).is_some());
    }
    let number = encoded(&json!([{"field": "metadata.number", "operator": "is", "value": 7}]));
    let queries = [format!("{WINDOW}&limit=20"), format!("{WINDOW}&limit=1&filters={number}")];
    let first_pages = || queries.each_ref().map(|query| tenant.get(&tenant.path(&format!("events?{query}"))));
    let expected = first_pages().map(|page| page.ok(200));
    let folder = server.data_dir().join("archive").join(format!("project={}", tenant.project));
    let listed: Value = serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).expect("a list")).expect("JSON");
    let files = listed["files"].as_array().expect("files");
    assert_eq!(files.len(), 5);
    for file in &files[..3] {
        std::fs::remove_file(folder.join(file["name"].as_str().expect("a name"))).expect("it is there");
    }
    assert_eq!(first_pages().map(|page| page.ok(200)), expected);
    let cursor = expected[0]["next"].as_str().expect("a next page");
    let second = tenant.get(&tenant.path(&format!("events?{}&cursor={cursor}", queries[0]))).ok(200);
    assert_eq!(second["events"].as_array().map(Vec::len), Some(20));
    let whole = tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=1000")));
    assert_eq!(whole.status, 500, "{}", whole.text());
}

#[test]
fn pages_are_the_whole_in_order() {
    let tenant = Tenant::new();
    send(&tenant, 300);
    let whole = pages(&tenant, &format!("{WINDOW}&limit=1000")).concat();
    assert!(whole.is_sorted_by(|one, other| key(one) > key(other)), "the latest is first");
    assert_eq!(whole.len(), 258, "without duplicates");
    for limit in [1, 7, 100, 258] {
        let pages = pages(&tenant, &format!("{WINDOW}&limit={limit}"));
        assert_eq!(pages.len(), whole.len().div_ceil(limit), "{limit}");
        assert_eq!(pages.concat(), whole, "{limit}");
    }
    let filters = encoded(&json!([{"field": "metadata.number", "operator": "gte", "value": 100}]));
    let some: Vec<Value> = whole
        .iter()
        .filter(|event| event["name"] == "order" && event["metadata"]["number"].as_u64() >= Some(100))
        .cloned()
        .collect();
    assert!(some.len() > 20);
    assert_eq!(pages(&tenant, &format!("{WINDOW}&limit=9&event_name=order&filters={filters}")).concat(), some);
    let mut recorded = Vec::new();
    let mut after = 0;
    loop {
        let page = tenant.get(&tenant.path(&format!("events?after_position={after}&limit=50"))).ok(200);
        assert_eq!((&page["next"], &page["start_date"]), (&Value::Null, &Value::Null));
        let events = page["events"].as_array().expect("events").clone();
        let Some(last) = events.last() else { break };
        after = last["position"].as_u64().expect("a position");
        recorded.extend(events);
    }
    let mut by_position = whole;
    by_position.sort_by_key(|event| event["position"].as_u64());
    assert_eq!(recorded, by_position);
}

#[test]
fn later_events_are_in_no_page_and_cursors_outlive_a_restart() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    send(&tenant, 40);
    let whole = pages(&tenant, &format!("{WINDOW}&limit=1000")).concat();
    let path = tenant.path(&format!("events?{WINDOW}&limit=10"));
    let first = tenant.get(&path).ok(200);
    let late = json!({"name": "late", "timestamp": BASE_MS, "anonymous_id": "a1", "user_id": "ada"});
    let late = tenant.recorded(&late)["position"].clone();
    server.restart();
    let next = first["next"].as_str().expect("a next page").to_owned();
    let second = tenant.get(&format!("{path}&cursor={next}")).ok(200);
    assert_eq!(second["position"], first["position"]);
    let ids = |events: &[Value]| events.iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
    let both = [first["events"].as_array().unwrap().clone(), second["events"].as_array().unwrap().clone()].concat();
    assert_eq!(ids(&both), ids(&whole[..20]));
    let linked = |event: &&Value| event["anonymous_id"] == "a1";
    let identity = |events: &Value| events.as_array().unwrap().iter().find(linked).map(|event| event["identity_id"].clone());
    let now = tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=1000"))).ok(200);
    assert!(now["events"].as_array().unwrap().iter().any(|event| event["position"] == late));
    assert_ne!(
        identity(&now["events"]),
        whole.iter().find(linked).map(|event| event["identity_id"].clone()),
        "links are each page's"
    );
}

#[test]
fn a_row_has_every_column() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({
        "name": "order", "user_id": "ada", "value": 12.5, "currency": "usd", "group_id": "acme.com", "external_id": "o1",
        "url": "https://shop.example/a?utm_source=news#x", "metadata": {"email": "ada@acme.com", "text": "a\nb \u{1f600}"},
        "notify": true, "pc": "analytics", "timestamp": BASE_MS
    }));
    let answer = tenant.recorded(&json!({"name": "quiet", "pc": "", "value": 3, "timestamp": BASE_MS + 1}));
    let page = tenant.get(&tenant.path(&format!("events?{WINDOW}"))).ok(200);
    let [quiet, order] = &page["events"].as_array().unwrap()[..] else { panic!("two events: {page}") };
    let expected = json!({
        "timestamp": "2024-03-01T10:00:00.000Z", "day": "2024-03-01", "name": "order", "consented": true, "user_id": "ada",
        "external_id": "o1", "url": "https://shop.example/a?utm_source=news#x", "value": 12.5, "value_in_project": 12.5,
        "value_in_organization": 12.5, "value_counted": true, "currency": "USD", "project_currency": "USD", "organization_currency": "USD",
        "email": "ada@acme.com", "company": "acme.com", "email_company": "acme.com", "browser": "Chrome", "device": "desktop",
        "event_source": "news", "metadata": {"email": "ada@acme.com", "text": "a\nb \u{1f600}"}, "notify": true,
        "entry_url": "https://shop.example/a", "group_type": "company", "visitor_id": null
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&order[name], value, "{name}: {order}");
    }
    assert!(order["identity_id"].as_str().is_some_and(|id| id.starts_with("id_")));
    assert_eq!((&quiet["id"], &quiet["position"]), (&answer["id"], &answer["position"]));
    for name in ["identity_id", "acquisition_channel", "entry_url", "user_id", "browser", "event_source", "metadata"] {
        assert_eq!(quiet.get(name), Some(&Value::Null), "{name}");
    }
    assert_eq!((&quiet["consented"], &quiet["value"]), (&json!(false), &json!(3)));
}

#[test]
fn wrong_parameters_are_named() {
    let tenant = Tenant::new();
    send(&tenant, 30);
    let next = tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=3"))).ok(200)["next"].as_str().unwrap().to_owned();
    let long = encoded(&json!([{"field": "name", "operator": "is", "value": "x".repeat(16 << 10)}]));
    let table = [
        (format!("{WINDOW}&limit=0"), "invalid_parameter", "limit"),
        (format!("{WINDOW}&limit=1001"), "invalid_parameter", "limit"),
        ("start_date=soon".to_owned(), "invalid_parameter", "start_date"),
        ("event_name=".to_owned(), "invalid_parameter", "event_name"),
        ("filters=%7B%7D".to_owned(), "invalid_parameter", "filters"),
        ("filters=%5B5%5D".to_owned(), "invalid_parameter", "filters[0]"),
        (format!("filters={long}"), "invalid_parameter", "filters"),
        ("after_position=-1".to_owned(), "invalid_parameter", "after_position"),
        ("after_position=9223372036854775808".to_owned(), "invalid_parameter", "after_position"),
        ("after_position=".to_owned(), "invalid_parameter", "after_position"),
        (format!("{WINDOW}&cursor=abc"), "invalid_parameter", "cursor"),
        (format!("{WINDOW}&cursor={}", &next[1..]), "invalid_parameter", "cursor"),
        (format!("start_date=2024-02-02&end_date=2024-04-01&cursor={next}"), "invalid_parameter", "cursor"),
        (format!("{WINDOW}&event_name=order&cursor={next}"), "invalid_parameter", "cursor"),
        (format!("after_position=1&cursor={next}"), "invalid_parameter", "cursor"),
        ("order=asc".to_owned(), "unknown_parameter", "order"),
    ];
    for (query, code, param) in table {
        assert_refused(&query, &tenant.get(&tenant.path(&format!("events?{query}"))), 400, code, Some(param));
    }
    let sibling = tenant.project(&json!({}));
    let other = tenant.get(&format!("/projects/{}/events?{WINDOW}&cursor={next}", sibling.id));
    assert_refused("another project's", &other, 400, "invalid_parameter", Some("cursor"));
    assert_eq!(tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=9&cursor={next}"))).status, 200, "another limit is fine");
}

/// A cursor of the present, and what the page that it names answers.
fn cursor(tenant: &Tenant) -> String {
    let page = tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=10"))).ok(200);
    page["next"].as_str().expect("a next page").to_owned()
}

#[track_caller]
fn assert_expired(tenant: &Tenant, cursor: &str, expired: bool) {
    let answer = tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=10&cursor={cursor}")));
    if expired {
        assert_refused("a cursor of replaced data", &answer, 410, "cursor_expired", Some("cursor"));
    } else {
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[test]
fn kills_and_rebuilds_expire_no_cursor() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    send(&tenant, 40);
    let path = tenant.path(&format!("events?{WINDOW}&limit=10"));
    let mut cursors = vec![cursor(&tenant)];
    let page = tenant.get(&format!("{path}&cursor={}", cursors[0])).ok(200)["events"].clone();
    server.kill();
    send(&tenant, 20);
    cursors.push(cursor(&tenant));
    server.stopped(|dir| {
        std::fs::remove_dir_all(dir.join("store")).expect("the store is removed");
    });
    cursors.push(cursor(&tenant));
    server.restart();
    for cursor in &cursors {
        assert_expired(&tenant, cursor, false);
    }
    assert_eq!(tenant.get(&format!("{path}&cursor={}", cursors[0])).ok(200)["events"], page);
}

/// Also where other events have its positions by now.
#[test]
fn a_restore_expires_every_cursor_of_the_data_that_it_replaced() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    send(&tenant, 40);
    let before = cursor(&tenant);
    let place = tempfile::tempdir().expect("a directory");
    let backup = place.path().join("backup");
    server.run("backup", &[backup.to_str().expect("a path in text")]);
    send(&tenant, 80);
    let after = cursor(&tenant);
    server.replace_by(&backup);
    for cursor in [&before, &after] {
        assert_expired(&tenant, cursor, true);
    }
    let restored = cursor(&tenant);
    send(&tenant, 120);
    server.restart();
    for (cursor, expired) in [(&before, true), (&after, true), (&restored, false)] {
        assert_expired(&tenant, cursor, expired);
    }
}

#[test]
fn an_earlier_copy_of_the_directory_expires_the_cursors_that_it_lacks() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let place = tempfile::tempdir().expect("a directory");
    let saved = place.path().join("saved");
    send(&tenant, 40);
    let before = cursor(&tenant);
    server.stopped(|dir| copy(dir, &saved));
    send(&tenant, 80);
    let after = cursor(&tenant);
    server.stopped(|dir| {
        std::fs::remove_dir_all(dir).expect("the data is removed");
        copy(&saved, dir);
    });
    assert_expired(&tenant, &after, true);
    send(&tenant, 120);
    assert_expired(&tenant, &after, true);
    assert_expired(&tenant, &before, false);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it is listed") {
        let entry = entry.expect("an entry");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(path, target).expect("it is copied");
        }
    }
}

/// A late event becomes the entry of a session while somebody pages: the page shows the session as
/// it is, and not the late event.
#[test]
fn a_page_shows_an_entry_that_came_after_the_first_page() {
    let tenant = Tenant::new();
    let track = |minute: i64, url: &str| {
        let event = json!({"name": "pageview", "timestamp": BASE_MS + minute * 60_000, "user_id": "u", "url": url});
        assert_eq!(tenant.send(Call::post("/track").key(&tenant.key).json(&event)).status, 202);
    };
    track(10, "https://a.example/first");
    track(20, "https://a.example/second");
    let page = |cursor: &str| tenant.get(&tenant.path(&format!("events?{WINDOW}&limit=1{cursor}"))).ok(200);
    let first = page("");
    assert_eq!(first["events"][0]["entry_url"], "https://a.example/first");
    track(0, "https://a.example/late");
    let second = page(&format!("&cursor={}", first["next"].as_str().expect("a next page")));
    assert_eq!((&second["events"][0]["url"], &second["next"]), (&json!("https://a.example/first"), &Value::Null));
    assert_eq!(second["events"][0]["entry_url"], "https://a.example/late");
}

/// The days of a cursor's window are not all kept any more: a page of the others would look like
/// the end of the list.
#[test]
fn a_cursor_below_the_floor_is_gone() {
    let tenant = Tenant::new();
    let now = now_ms();
    for days in [1, 5, 9] {
        let event = json!({"name": "pageview", "timestamp": now - days * 86_400_000, "user_id": "u"});
        assert_eq!(tenant.send(Call::post("/track").key(&tenant.key).json(&event)).status, 202);
    }
    let list = |query: &str| tenant.get(&tenant.path(&format!("events?limit=1{query}")));
    let first = list("").ok(200);
    let cursor = format!("&cursor={}", first["next"].as_str().expect("a next page"));
    assert_eq!(list(&cursor).ok(200)["events"].as_array().map(Vec::len), Some(1));
    let raised = tenant.patch(&format!("/projects/{}", tenant.project), &json!({"retention_days": 3})).ok(200);
    assert!(raised["retention_floor"].is_string(), "{raised}");
    assert_refused("a cursor of days that are gone", &list(&cursor), 410, "cursor_expired", Some("cursor"));
    assert_eq!(list("").ok(200)["next"], Value::Null);
}
