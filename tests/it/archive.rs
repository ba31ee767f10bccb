//! Sealing on a running server: answers stay what they were, and other programs read the files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::Tenant;

const QUERY: &str = r#"
import duckdb, json, sys
db = duckdb.connect()
db.execute("SET VARIABLE f = (SELECT list(u.name) FROM (SELECT unnest(files) u FROM 'manifest.json'))")
rows = db.execute("""
SELECT day, sum(value_in_project), count(*) FILTER (value > 0) FROM read_parquet(getvariable('f'), union_by_name = true)
WHERE value_counted AND NOT set_aside AND value_in_project IS NOT NULL GROUP BY day
""").fetchall()
print(json.dumps(sorted([str(day), float(revenue), orders] for day, revenue, orders in rows)))
"#;

/// Seals whenever it can, while a test runs.
pub(crate) struct KeepSealing {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl KeepSealing {
    pub(crate) fn on(server: &Arc<TestServer>) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (server, stopped) = (Arc::clone(server), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut events = 0;
            while !stopped.load(Ordering::Acquire) {
                // The server may be restarting.
                let sealed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| seal(&server)));
                events += sealed.ok().flatten().map_or(0, |(_, events)| events);
                std::thread::sleep(Duration::from_millis(100));
            }
            events
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops, and returns how many events were sealed.
    pub(crate) fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map_or(0, |thread| thread.join().expect("it ends"))
    }
}

/// Seals everything. Returns the position, and the number of events; `None` if the server could
/// not.
pub(crate) fn seal(server: &TestServer) -> Option<(u64, u64)> {
    let answer = server.send(&Call::post("/admin/archive/seal").bearer(&server.operator()));
    let body: Value = serde_json::from_str(&answer.text()).ok()?;
    Some((body["sealed_until"].as_u64()?, body["events"].as_u64()?))
}

fn send(tenant: &Tenant, numbers: std::ops::Range<usize>) {
    let event = |number: usize| {
        let value = if number.is_multiple_of(10) { json!(-2.5) } else { json!(10.05 + number as f64) };
        let timestamp = format!("2026-0{}-03T12:00:00Z", 1 + number % 6);
        json!({"name": "order", "user_id": format!("u{}", number % 30), "external_id": format!("o{number}"), "value": value,
               "timestamp": timestamp, "metadata": {"plan": if number.is_multiple_of(2) { "pro" } else { "free" }}})
    };
    let events: Vec<Value> = numbers.map(event).collect();
    let sent = tenant.post(&format!("/projects/{}/batch", tenant.project), &json!({ "events": events }));
    assert_eq!(sent.status, 202, "{}", sent.text());
}

fn answers(tenant: &Tenant) -> Vec<String> {
    let window = "start_date=2026-01-01&end_date=2026-06-30";
    let body = json!({"start_date": "2026-01-01", "end_date": "2026-06-30", "event_name": "order",
                      "filters": [{"field": "metadata.plan", "operator": "is", "value": "pro"}]});
    let counted = tenant.post(&format!("/projects/{}/analytics/count-unique-users-per-day", tenant.project), &body);
    let series = tenant.get(&format!("/projects/{}/revenue/timeseries?{window}", tenant.project));
    assert_eq!((counted.status, series.status), (200, 200), "{} {}", counted.text(), series.text());
    vec![counted.text(), series.text()]
}

fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("HEADCOUNT_ARCHIVE_PYTHON")?);
    let works = Command::new(&python).args(["-c", "import duckdb"]).status().is_ok_and(|status| status.success());
    assert!(works, "{} has no duckdb", python.display());
    Some(python)
}

#[test]
fn what_is_sealed_is_answered_as_before_and_read_by_other_programs() {
    let server = Arc::new(TestServer::start_with(&["--seal-after", "1h"]));
    let tenant = Tenant::on(&server);
    send(&tenant, 0..200);
    let before = answers(&tenant);
    let (until, events) = seal(&server).expect("it seals");
    assert_eq!(events, 200);
    assert_eq!(answers(&tenant), before);
    // Duplicates of sealed events are recognized, and the archive has each event once.
    send(&tenant, 100..300);
    let after = answers(&tenant);
    let printed: Value = serde_json::from_str(&server.run("archive", &["seal", "--json"])).expect("JSON");
    assert_eq!(printed["events"], 100, "{printed}");
    assert!(printed["sealed_until"].as_u64().is_some_and(|now| now > until), "{printed}");
    assert_eq!(answers(&tenant), after);
    server.restart();
    assert_eq!(answers(&tenant), after);
    let metrics = tenant.send(Call::get("/metrics").header("host", "localhost")).text();
    assert!(
        metrics.contains("\nheadcount_archive_damaged_files 0\n") && metrics.contains("\nheadcount_seal_lag_seconds 0\n"),
        "{metrics}"
    );

    let folder = server.data_dir().join("archive").join(format!("project={}", tenant.project));
    let listed: Value = serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).expect("a list")).expect("JSON");
    let rows: u64 = listed["files"].as_array().expect("files").iter().filter_map(|file| file["rows"].as_u64()).sum();
    assert_eq!((rows, &listed["sealed_until"]), (300, &listed["sealed_until"]));
    match python() {
        Some(python) => assert_eq!(queried(&python, &folder), series(&after[1])),
        None => {
            eprintln!("SKIPPED: HEADCOUNT_ARCHIVE_PYTHON names no Python with duckdb, so that nobody else has read the archive")
        }
    }

    // Without the file, the answer is an error that names it; the rollups answer.
    let name = listed["files"][0]["name"].as_str().expect("a name");
    let (file, aside) = (folder.join(name), server.data_dir().join("aside"));
    std::fs::rename(&file, &aside).expect("it moves");
    let body = json!({"start_date": "2026-01-01", "end_date": "2026-06-29", "event_name": "order"});
    let path = format!("/projects/{}/analytics/count-unique-users-per-day", tenant.project);
    let refused = tenant.post(&path, &body);
    let base = Path::new(name).file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(refused.text().contains("archive_damaged") && refused.text().contains(base), "{}", refused.text());
    assert!(!refused.text().contains("month="), "{}", refused.text());
    std::fs::rename(&aside, &file).expect("it moves back");
    assert_eq!(tenant.post(&path, &body).status, 200);
}

/// The days with money, as the documented query gives them.
fn queried(python: &Path, folder: &Path) -> Vec<(String, f64, u64)> {
    let output = Command::new(python).args(["-c", QUERY]).current_dir(folder).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The days with money, as the server gives them.
fn series(answer: &str) -> Vec<(String, f64, u64)> {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    let days = answer["series"].as_array().expect("a series").iter();
    let day = |day: &Value| {
        let text = day["day"].as_str().or(day["date"].as_str()).expect("a day").to_owned();
        (text, day["revenue"].as_f64().expect("revenue"), day["orders"].as_u64().expect("orders"))
    };
    days.map(day).filter(|(_, revenue, orders)| *revenue != 0.0 || *orders > 0).collect()
}
