//! Imports of what other products export, killed without warning.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Call;
use crate::server::{TestServer, command};

const PATIENCE: Duration = Duration::from_secs(60);
/// More than two batches.
const ROWS: usize = 12_000;
const VISITORS: usize = 3_000;
/// How often an import is killed at most.
const MAX_KILLS: usize = 5;

fn umami() -> String {
    let mut csv = "event_id,session_id,created_at,event_type,event_name,url_path,revenue,currency\n".to_owned();
    for row in 0..ROWS {
        writeln!(csv, "e{row},s{},2023-06-02 14:55:06.5+00,2,order,/{row},1.0000,USD", row % VISITORS).unwrap();
    }
    csv
}

fn goatcounter() -> String {
    let mut csv =
        "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,Location,FirstVisit,Date\n"
            .to_owned();
    for row in 0..ROWS {
        writeln!(csv, "/{row},,false,,,,{:x},0,,,\"0,0,1\",,true,2023-06-02T14:55:06Z", row % VISITORS + 1).unwrap();
    }
    csv
}

/// What the journals say.
fn journals(data_dir: &Path) -> String {
    let Ok(journals) = fs::read_dir(data_dir.join("imports")) else { return String::new() };
    journals.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
}

/// Repeats an import until it ends by itself, and kills it before, some time after its journal has
/// changed. Returns how often it was killed.
fn import_with_kills(data_dir: &Path, arguments: &[&str]) -> usize {
    let since = Instant::now();
    let mut kills = 0;
    loop {
        let before = journals(data_dir);
        let mut import = command("import", data_dir);
        import.args(arguments).args(["--min-free-bytes", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = import.spawn().unwrap();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return kills;
            }
            if kills < MAX_KILLS && journals(data_dir) != before {
                std::thread::sleep(Duration::from_millis(5 * kills as u64));
                break;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
}

/// Checks events, visitors and money of the month that the file is about.
fn assert_counts(server: &TestServer, revenue: usize) {
    let path = format!("/projects/{}/analytics/report", server.initial("project_id"));
    let body = json!({"start_date": "2023-06-01", "end_date": "2023-06-30", "interval": "month"});
    let report = server.send(&Call::post(path).bearer(server.initial("api_token")).json(&body)).ok(200);
    let totals = &report["totals"];
    let found = ["events", "unique_users", "revenue", "orders"].map(|figure| totals[figure].as_f64().unwrap());
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let expected = [ROWS, VISITORS, revenue, revenue].map(|count| count as f64);
    assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 0.5), "{totals}");
}

#[test]
fn a_killed_import_of_umami_counts_what_the_file_has() {
    let server = TestServer::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("website_event.csv");
    fs::write(&file, umami()).unwrap();
    let arguments = ["--format", "umami", file.to_str().unwrap()];
    // Through the server.
    assert!(import_with_kills(server.data_dir(), &arguments) > 0, "it was never killed");
    assert_counts(&server, ROWS);
    // Into the data directory: everything is there already, whatever the file's name.
    assert!(server.stop().success());
    let copy = dir.path().join("copy.csv");
    fs::copy(&file, &copy).unwrap();
    import_with_kills(server.data_dir(), &["--format", "umami", copy.to_str().unwrap()]);
    server.kill();
    assert_counts(&server, ROWS);
}

#[test]
fn a_killed_import_of_goatcounter_counts_what_the_file_has() {
    let server = TestServer::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("export.csv");
    fs::write(&file, goatcounter()).unwrap();
    assert!(server.stop().success());
    let arguments = ["--format", "goatcounter", "--hostname", "a.example", file.to_str().unwrap()];
    assert!(import_with_kills(server.data_dir(), &arguments) > 0, "it was never killed");
    server.kill();
    assert_counts(&server, 0);
}

#[test]
fn only_an_import_says_what_is_known_about_a_visitor() {
    let server = TestServer::start();
    let project = server.initial("project_id");
    let event = |id: &str, import: serde_json::Value| json!({"name": "pageview", "anonymous_id": id, "_import": import});
    let known = json!({"location_country": "CH", "browser": "Firefox", "device": "tablet"});
    let token = server.initial("api_token");
    let public = Call::post("/i").header("x-service-pk", server.initial("public_key")).json(&event("public", known.clone()));
    server.send(&public).ok(202);
    let track = Call::post(format!("/projects/{project}/track")).bearer(token).json(&event("server", known.clone()));
    server.send(&track).ok(202);
    let events =
        json!({"events": [event("a", known), event("b", json!({"device": "bot"})), event("c", json!({"device": "phone"}))]});
    let import = Call::post(format!("/projects/{project}/import")).bearer(token).json(&events);
    let answer = server.send(&import).ok(202);
    assert_eq!((&answer["recorded"], &answer["dropped"]), (&json!(2), &json!(1)), "{answer}");
    let warning = &answer["warnings"][0];
    assert_eq!((&warning["index"], &warning["param"]), (&json!(2), &json!("_import.device")), "{answer}");
    for (field, expected) in [("location_country", "CH"), ("browser", "Firefox"), ("device", "tablet")] {
        let body = json!({"start_date": "2023-06-01", "group_by": field});
        let aggregate = Call::post(format!("/projects/{project}/analytics/aggregate")).bearer(token).json(&body);
        let answer = server.send(&aggregate).ok(200);
        let rows = answer["rows"].as_array().unwrap();
        let count = rows.iter().find(|row| row["value"] == expected).map(|row| &row["count"]);
        assert_eq!(count, Some(&json!(1)), "{field}: {answer}");
    }
}
