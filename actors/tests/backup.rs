//! Backups of an engine: each operation on its files fails, one at a time, and the result is a data
//! directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::{Path, PathBuf};

use headcount_actors::backup::{BackupFailure, BackupSnapshot};
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::RevenueMetricsQuery;
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use headcount_common::DOCUMENT_KINDS;
use headcount_common::clock::{Clock, SystemClock};
use headcount_common::local::kind_dir;
use headcount_storage::backup::{Backup, BackupFolder, restore};
use headcount_storage::files::switch::{Errno, Plan, Switch};

mod support;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 32 << 10;
    config
}

fn order(number: u64) -> NewEvent {
    // Hardly compressible, so that the log gets several segments.
    let id = format!("o-{number}-{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    NewEvent::new("order").user(format!("u{number}")).external_id(id).at_ms(BASE_MS).value("2").unwrap()
}

async fn fill(engine: &Engine, project: ProjectId, orders: std::ops::Range<u64>) {
    let orders: Vec<_> = orders.map(order).collect();
    for batch in orders.chunks(100) {
        assert_eq!(engine.track_batch(project, batch).await.unwrap().recorded, batch.len());
    }
}

async fn orders(engine: &Engine, project: ProjectId) -> u64 {
    let day = Day::parse("2024-03-01").unwrap();
    let metrics = engine.ask(project, RevenueMetricsQuery { window: Window { start: day, end: day } }).await.unwrap();
    u64::try_from(metrics.orders).unwrap()
}

fn write(snapshot: BackupSnapshot, dir: &Path) -> Result<(), BackupFailure> {
    snapshot.write(&mut BackupFolder::create(dir, None)?)?;
    Ok(())
}

/// Adds files that an engine writes only sometimes.
fn add_rare_files(data: &Path) {
    for dir in ["imports", "archive"] {
        std::fs::create_dir_all(data.join(dir)).unwrap();
    }
    std::fs::write(data.join("dead-letters.ndjson"), "\n").unwrap();
    DOCUMENT_KINDS.iter().for_each(|kind| std::fs::create_dir_all(kind_dir(data, kind)).unwrap());
    std::fs::write(data.join("imports/1.ndjson"), "").unwrap();
}

/// Restores the backup, and checks that it has these orders and knows their ids.
async fn check(dir: &Path, count: u64) {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("data");
    restore(&Backup::open(dir).unwrap(), &to).unwrap();
    let (engine, project) = support::open(config(&to));
    assert_eq!(orders(&engine, project).await, count);
    for number in [0, count / 2, count - 1] {
        assert_eq!(engine.track(project, &order(number)).await.unwrap().status, Status::Duplicate, "order {number}");
    }
    assert_eq!(engine.track(project, &order(count)).await.unwrap().status, Status::Recorded);
    engine.close().await;
}

/// The names of all files except those of the store and the index, with their contents.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_derived = ["store", "fingerprints"].iter().any(|name| path.ends_with(name));
        match path.is_dir() {
            true if is_derived => {}
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

/// Makes every operation under `data` fail once, in each way, and returns how many failed.
async fn each_failure(data: &Path, orders: u64, begin: impl Fn() -> Result<BackupSnapshot, BackupFailure>) -> usize {
    let place = tempfile::tempdir().unwrap();
    let switch = Switch::arm(data, Plan::default());
    let (mut failures, mut unnoticed) = (0, Vec::new());
    for (errno, done) in [(Errno::NoSpace, false), (Errno::Io, true)] {
        for at in 1.. {
            let dir = place.path().join("backup");
            let _ = std::fs::remove_dir_all(&dir);
            switch.rearm(Plan { at, errno, done, ..Plan::default() });
            let outcome = begin().and_then(|snapshot| write(snapshot, &dir));
            let has_failed = switch.failed().len() > failures;
            switch.clear();
            let failed = switch.failed().last().cloned().unwrap_or_default();
            match outcome {
                Ok(()) => Backup::open(&dir).and_then(|backup| backup.check()).unwrap(),
                Err(error) => {
                    assert!(has_failed, "{error}");
                    assert!(!dir.join("manifest.json").exists(), "{failed}: {error}");
                }
            }
            if !has_failed {
                check(&dir, orders).await;
                break;
            }
            // The control log of the backup has the entries that could not be copied to the audit
            // log.
            let in_audit_log = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "audit");
            if dir.join("manifest.json").exists() && !switch.failed_paths().last().is_some_and(in_audit_log) {
                // A thread of the engine may read the log meanwhile. Then nothing is missing.
                if ["Open ", "Read "].iter().any(|operation| failed.starts_with(operation)) && failed.ends_with(".seg") {
                    check(&dir, orders).await;
                } else {
                    unnoticed.push(failed);
                }
            }
            failures += 1;
        }
    }
    // The next attempt removes leftovers, and side indexes are optional.
    let is_harmless = |failed: &String| failed == "Remove backup.tmp" || failed.ends_with(".idx");
    assert!(unnoticed.iter().all(is_harmless), "{unnoticed:?}");
    failures
}

#[tokio::test]
async fn any_failure_while_it_runs_leaves_no_backup_and_the_engine_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut config = config(&data);
    // Otherwise a thread of the log changes the directory meanwhile.
    config.log.prepare_ahead = false;
    let (engine, project) = support::open(config);
    fill(&engine, project, 0..1_000).await;
    add_rare_files(&data);
    let before = contents(&data);
    assert!(each_failure(&data, 1_000, || engine.begin_backup()).await > 50);
    assert_eq!(contents(&data), before);
    fill(&engine, project, 1_000..1_100).await;
    assert_eq!(orders(&engine, project).await, 1_100);
    engine.close().await;
}

#[tokio::test]
async fn any_failure_on_a_stopped_directory_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let (engine, project) = support::open(config(&data));
    fill(&engine, project, 0..1_000).await;
    engine.close().await;
    add_rare_files(&data);
    let before = contents(&data);
    assert!(each_failure(&data, 1_000, || BackupSnapshot::of_directory(&data, SystemClock.now())).await > 50);
    assert_eq!(contents(&data), before);
    let (engine, project) = support::open(config(&data));
    assert_eq!(orders(&engine, project).await, 1_000);
    let in_use = BackupSnapshot::of_directory(&data, SystemClock.now()).unwrap_err();
    assert!(matches!(in_use, BackupFailure::InUse(_)), "{in_use}");
    engine.close().await;
}

#[tokio::test]
async fn a_snapshot_is_what_was_there_when_it_was_taken() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let (engine, project) = support::open(config(&data));
    fill(&engine, project, 0..500).await;
    let snapshot = engine.begin_backup().unwrap();
    assert!(matches!(engine.begin_backup(), Err(BackupFailure::Running)));
    fill(&engine, project, 500..1_500).await;
    let dir = place.path().join("backup");
    write(snapshot, &dir).unwrap();
    check(&dir, 500).await;
    let later = place.path().join("later");
    write(engine.begin_backup().unwrap(), &later).unwrap();
    check(&later, 1_500).await;
    engine.close().await;
}

#[tokio::test]
async fn an_empty_directory_can_be_backed_up() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let (engine, _) = support::open(config(&data));
    let dirs = ["running", "stopped"].map(|name| place.path().join(name));
    write(engine.begin_backup().unwrap(), &dirs[0]).unwrap();
    engine.close().await;
    write(BackupSnapshot::of_directory(&data, SystemClock.now()).unwrap(), &dirs[1]).unwrap();
    for (number, dir) in dirs.iter().enumerate() {
        let to = place.path().join(number.to_string());
        restore(&Backup::open(dir).unwrap(), &to).unwrap();
        let (engine, project) = support::open(config(&to));
        fill(&engine, project, 0..10).await;
        assert_eq!(orders(&engine, project).await, 10);
        engine.close().await;
    }
}
