//! Counting days in another timezone.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

const ZONE: &str = "Pacific/Auckland";

/// Sends the events of three days around midnight of several timezones, in a random order of time,
/// with orders, links and companies.
fn send(tenant: &Tenant) {
    for number in 0..240_i64 {
        let hour = number * 37 % 72;
        let event = json!({
            "name": if number % 3 == 0 { "order" } else { "pageview" }, "anonymous_id": format!("a{}", number % 17),
            "user_id": (number % 5 == 0).then(|| format!("u{}@acme{}.com", number % 7, number % 3)),
            "timestamp": format!("2024-03-{:02}T{:02}:{:02}:00Z", 1 + hour / 24, hour % 24, number % 60),
            "value": (number % 3 == 0).then_some(number), "external_id": format!("e{}", number % 200),
            "url": format!("https://shop.example/{}?utm_source=s{}", number % 4, number % 3),
            "group_type": "team", "group_id": format!("t{}", number % 4),
        });
        assert_eq!(tenant.track(&event).status, 202);
    }
}

/// The answers to questions by day, by window and of all time.
fn answers(tenant: &Tenant) -> Vec<(String, Value)> {
    let window = "start_date=2024-03-02&end_date=2024-03-03";
    let range = json!({"start_date": "2024-03-01", "end_date": "2024-03-04"});
    let filtered = json!({
        "start_date": "2024-03-02", "end_date": "2024-03-03", "filters": [{"field": "path", "operator": "is", "value": "/1"}]
    });
    let grouped = json!({"start_date": "2024-03-02", "end_date": "2024-03-02", "group_by": "utm_source"});
    let mut answers = Vec::new();
    for path in ["revenue/metrics", "revenue/timeseries", "revenue/by-attribution", "revenue/ltv-cohorts"] {
        answers.push((path.to_owned(), tenant.get(&tenant.path(&format!("{path}?{window}"))).ok(200)));
    }
    for path in ["/identities/profile?user_id=u5@acme2.com&", "/identities/top-pages?user_id=u5@acme2.com&"] {
        let mut answer = tenant.get(&format!("{path}{window}")).ok(200);
        // Each data directory has ids of its own.
        answer["identity_id"] = Value::Null;
        answers.push((path.to_owned(), answer));
    }
    for (path, body) in [
        ("analytics/count-unique-users-per-day", &range),
        ("analytics/count-unique-users-per-day", &filtered),
        ("analytics/aggregate", &grouped),
    ] {
        answers.push((format!("{path} {body}"), tenant.post(&tenant.path(path), body).ok(200)));
    }
    answers
}

fn reindex(dir: &Path, tenant: &Tenant, zone: &str) -> std::process::Output {
    let arguments = ["--timezone", zone, "--organization", &tenant.organization];
    command("reindex", dir).args(arguments).output().expect("the program runs")
}

#[test]
fn days_are_counted_as_if_the_timezone_had_always_been_another() {
    let [server, other] = [(); 2].map(|()| Arc::new(TestServer::start()));
    let [tenant, expected] = [&server, &other].map(Tenant::on);
    let neighbour = Tenant::on(&server);
    assert_eq!(expected.patch("/organization", &json!({"timezone": ZONE})).status, 200);
    for tenant in [&tenant, &expected, &neighbour] {
        send(tenant);
    }
    let (before, neighbours) = (answers(&tenant), answers(&neighbour));
    let asked = || Call::get(tenant.path("revenue/metrics?start_date=2024-03-02&end_date=2024-03-03")).bearer(&tenant.token);
    let tag = tenant.send(asked()).header("etag").expect("a tag").to_owned();
    assert_eq!(tenant.send(asked().header("if-none-match", tag.clone())).status, 304);
    assert_ne!(before, answers(&expected), "the days differ");

    let refused = reindex(server.data_dir(), &tenant, ZONE);
    assert_eq!(refused.status.code(), Some(1), "beside a running server");
    server.stopped(|dir| {
        let refused = reindex(dir, &tenant, "Nowhere/Else");
        assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
        // As after a cut in its middle: nothing else opens the directory.
        std::fs::write(dir.join("REINDEXING"), format!("{} Asia/Tokyo\n", neighbour.organization)).expect("it is written");
        for name in ["verify", "export", "archive"] {
            let arguments: &[&str] = if name == "archive" { &["seal"] } else { &[] };
            let refused = command(name, dir).args(arguments).output().expect("the program runs");
            assert!(!refused.status.success(), "{name}");
        }
        let refused = reindex(dir, &tenant, ZONE);
        assert_eq!(refused.status.code(), Some(1), "another organization's is not finished");
        std::fs::remove_file(dir.join("REINDEXING")).expect("it is removed");
        let done = reindex(dir, &tenant, ZONE);
        let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && text.contains("200 events"), "{text}");
        assert!(!dir.join("REINDEXING").exists());
        let again = reindex(dir, &tenant, ZONE);
        assert!(String::from_utf8_lossy(&again.stdout).contains("0 events"), "it is done already");
    });
    assert_eq!(tenant.get("/organization").ok(200)["timezone"], ZONE);
    assert_eq!((answers(&tenant), answers(&neighbour)), (answers(&expected), neighbours));
    assert_eq!(tenant.send(asked().header("if-none-match", tag)).status, 200, "a tag from before names another answer");
    // And so are events from now on.
    let late = json!({"name": "order", "value": 7, "user_id": "new", "timestamp": "2024-03-02T11:30:00Z"});
    for tenant in [&tenant, &expected] {
        assert_eq!(tenant.track(&late).status, 202);
    }
    assert_eq!(answers(&tenant), answers(&expected));
    let log = tenant.get("/audit-log").ok(200);
    let entry =
        log["entries"].as_array().and_then(|entries| entries.iter().find(|entry| !entry["changes"]["timezone"].is_null()));
    let entry = entry.expect("the change is in the audit log");
    assert_eq!((&entry["changes"]["timezone"]["to"], &entry["actor"]["kind"]), (&json!(ZONE), &json!("cli")), "{entry}");
    server.run("verify", &[]);
}
