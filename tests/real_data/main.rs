//! Imports real data with the program, and verifies the answers of the engine.
//!
//! `cdnow_master.txt`: every purchase of 23,570 CDNOW customers, January 1997 to June 1998, the
//! classic data set of customer-base analysis (Fader & Hardie). `apache_access.log`: 10,000
//! requests to a real site in May 2015 (from elastic/examples).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use headcount::domain::ids::ProjectId;
use headcount::domain::money::Amount;
use headcount::domain::queries::{Cohort, CohortsQuery, EntityLevel, RevenueMetricsQuery, UniqueUsersQuery};
use headcount::domain::time::{Day, Window};
use headcount::{Engine, EngineConfig};

mod access_log;
mod served;

#[path = "../../examples/cdnow_events.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example, whose `main` is not called here")]
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

/// Cohorts by month of the first purchase, newest first: month, customers, revenue, lifetime value.
const COHORTS: [(&str, i64, &str, &str); 3] = [
    ("1997-03", 7_248, "726546.26", "100.24093"),
    ("1997-02", 8_476, "886611.81", "104.60262"),
    ("1997-01", 7_846, "887157.56", "113.071318"),
];

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
    // A second import changes nothing, since each event has an external_id.
    headcount(&data, &["import", "--again", file.to_str().unwrap()]);
    let (engine, project) = open(&data);
    let all = window("1997-01-01", "1998-06-30");
    let revenue = engine.ask(project, RevenueMetricsQuery { window: all }).await.unwrap();
    assert_eq!((revenue.total_revenue, revenue.orders), (Amount::parse("2500315.63").unwrap(), 69_579));
    let users = engine.ask(project, UniqueUsersQuery { window: all }).await.unwrap();
    assert_eq!(users.total, 23_570);
    for level in [EntityLevel::Identity, EntityLevel::Account] {
        let answer = engine.ask(project, CohortsQuery { level, limit: 24 }).await.unwrap();
        assert!(!answer.cohorts.truncated && answer.unconverted.is_empty());
        let shown = |cohort: &Cohort| (cohort.month.clone(), cohort.entities, cohort.revenue.to_string(), cohort.ltv.to_string());
        let expected = COHORTS.map(|(month, entities, revenue, ltv)| (month.into(), entities, revenue.into(), ltv.into()));
        assert_eq!(answer.cohorts.rows.iter().map(shown).collect::<Vec<_>>(), expected, "{level}");
        let orders: i64 = answer.cohorts.rows.iter().map(|cohort| cohort.orders).sum();
        assert_eq!(orders, revenue.orders, "{level}");
    }
    engine.close().await;
    drop(engine);
    cohorts_over_http(&data, project);
}

/// Verifies the cohorts over HTTP, with a server on the same data.
fn cohorts_over_http(data: &Path, project: ProjectId) {
    let server = served::Server::start(data);
    for target in ["revenue/ltv-cohorts", "revenue/ltv-cohorts?level=identity", "revenue/ltv-cohorts?level=account&limit=3"] {
        let answer = server.get(&format!("/projects/{project}/{target}"));
        let field = |row: &serde_json::Value, name: &str| row[name].to_string().trim_matches('"').to_owned();
        let rows = answer["cohorts"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let got: Vec<_> = rows.iter().map(|row| ["cohort", "entities", "revenue", "ltv"].map(|name| field(row, name))).collect();
        let expected =
            COHORTS.map(|(month, entities, revenue, ltv)| [month.into(), entities.to_string(), revenue.into(), ltv.into()]);
        assert_eq!(got, expected, "{target}");
        assert_eq!(answer["truncated"], false);
    }
    let newest = server.get(&format!("/projects/{project}/revenue/ltv-cohorts?limit=1"));
    assert_eq!((&newest["truncated"], &newest["cohorts"][0]["cohort"]), (&true.into(), &"1997-03".into()));
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
    let users = engine.ask(project, UniqueUsersQuery { window: days }).await.unwrap();
    assert_eq!(users.series.iter().map(|(_, users)| *users).collect::<Vec<_>>(), [365, 660, 586, 532]);
    engine.close().await;

    let data = dir.path().join("successful page requests");
    headcount(&data, &["init"]);
    headcount(&data, &["import", "--format", "combined", log]);
    let (engine, project) = open(&data);
    let people = engine.ask(project, UniqueUsersQuery { window: days }).await.unwrap();
    assert!(people.total > 100 && people.total < users.total / 2, "crawlers and assets must be excluded: {}", people.total);
    engine.close().await;
}
