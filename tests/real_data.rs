//! Real data through the front door: imported with the program, and asked from the engine that it filled.
//!
//! `cdnow_master.txt`: every purchase of 23,570 CDNOW customers, January 1997 to June 1998, the classic set of customer-base
//! analysis (Fader & Hardie). `apache_access.log`: 10,000 requests to a real site in May 2015 (from elastic/examples).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use headcount::domain::ids::ProjectId;
use headcount::domain::money::Amount;
use headcount::domain::time::{Day, Window};
use headcount::{Engine, EngineConfig};

#[path = "../examples/cdnow_events.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "an example, whose main is not called here")]
mod cdnow_events;

fn headcount(data_dir: &Path, arguments: &[&str]) -> Output {
    let (command, rest) = arguments.split_first().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .arg(command)
        .args(["--data-dir", data_dir.to_str().unwrap(), "--min-free-bytes", "1048576"])
        .args(rest)
        .output()
        .unwrap();
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    run
}

fn open(data_dir: &Path) -> (Engine, ProjectId) {
    let engine = Engine::open(EngineConfig::new(data_dir)).unwrap();
    let organization = engine.registry().organizations()[0].id;
    let project = engine.registry().projects(organization).unwrap()[0].id;
    (engine, project)
}

fn window(first: &str, last: &str) -> Window {
    Window { start: Day::parse(first).unwrap(), end: Day::parse(last).unwrap() }
}

#[tokio::test]
async fn cdnow_to_the_cent() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    headcount(&data, &["init"]);
    let packed = std::fs::File::open("tests/data/cdnow_master.txt.gz").unwrap();
    let lines = BufReader::new(GzDecoder::new(packed)).lines();
    let events: Vec<String> =
        lines.enumerate().filter_map(|(number, line)| cdnow_events::event(number + 1, &line.unwrap())).collect();
    assert_eq!(events.len(), 69_659);
    let file = dir.path().join("cdnow.ndjson");
    std::fs::write(&file, events.join("\n")).unwrap();
    headcount(&data, &["import", file.to_str().unwrap()]);
    // A second time changes nothing: each has its external_id.
    headcount(&data, &["import", "--again", file.to_str().unwrap()]);
    let (engine, project) = open(&data);
    let all = window("1997-01-01", "1998-06-30");
    let revenue = engine.ask(project, move |project| project.revenue_metrics(all)).await.unwrap();
    assert_eq!((revenue.total_revenue, revenue.orders), (Amount::parse("2500315.63").unwrap(), 69_579));
    let users = engine.ask(project, move |project| project.unique_users(all)).await.unwrap();
    assert_eq!(users.total, 23_570);
    engine.close().await;
}

#[tokio::test]
async fn an_access_log_by_visitors() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("all");
    headcount(&data, &["init"]);
    let log = "tests/data/apache_access.log.gz";
    let run = headcount(&data, &["import", "--format", "combined", "--all", "--bots", "record", log]);
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 refused"), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).contains("line 8899"), "{run:?}");
    let (engine, project) = open(&data);
    let days = window("2015-05-17", "2015-05-20");
    let users = engine.ask(project, move |project| project.unique_users(days)).await.unwrap();
    assert_eq!(users.series.iter().map(|(_, users)| *users).collect::<Vec<_>>(), [365, 660, 586, 532]);
    engine.close().await;

    let data = dir.path().join("answered pages of people");
    headcount(&data, &["init"]);
    headcount(&data, &["import", "--format", "combined", log]);
    let (engine, project) = open(&data);
    let people = engine.ask(project, move |project| project.unique_users(days)).await.unwrap();
    assert!(people.total > 100 && people.total < users.total / 2, "crawlers and assets are left out: {}", people.total);
    engine.close().await;
}
