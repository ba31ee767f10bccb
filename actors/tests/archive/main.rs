//! Sealing: recorded events stay, whether they are in the archive or in the log.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

#[path = "../support/copies.rs"]
mod copies;
mod floors;
mod golden;
mod idle;
mod removal;
mod resting;
mod retention;
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use copies::copy;
use headcount_actors::domain::fault::FaultKind;
use headcount_actors::domain::filter::Predicate;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Instant, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{AskError, Engine, EngineConfig};
use headcount_common::clock::FixedClock;
use headcount_common::{PARTITIONS, partition_of};
use headcount_control::NewProject;
use headcount_storage::files::switch::{Errno, Plan, Switch};
use headcount_storage::store::{DiskStore, Store, StoreOptions};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const DAY_MS: i64 = 86_400_000;
const PROJECTS: usize = 30;
const EVENTS: usize = 1_200;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 0;
    config.log.segment_bytes = 64 << 10;
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 40 * DAY_MS)));
    config.archive.file_rows = Some(200);
    config.probe = Some(Arc::new(|event| assert!(&*event.name != "poison", "a planted panic")));
    config
}

fn open(dir: &Path) -> Engine {
    Engine::open(config(dir)).unwrap()
}

async fn new(config: EngineConfig) -> (Engine, Vec<ProjectId>) {
    let engine = Engine::open(config).unwrap();
    let initial = engine.registry().initialize(engine.clock().now()).unwrap();
    let mut projects = vec![initial.project_id];
    for number in 1..PROJECTS {
        let new = NewProject { name: format!("p{number}"), ..NewProject::default() };
        projects.push(engine.registry().create_project(initial.organization_id, new, engine.clock().now()).unwrap().id);
    }
    (engine, projects)
}

/// Most events are of the first two projects. Some are late, sign in, are refunds, or are sent
/// again, even after they were sealed.
fn event(number: usize) -> NewEvent {
    let day = i64::try_from(number * 7 % 40).unwrap();
    let original = if number % 9 == 8 { number / 2 } else { number };
    let event = NewEvent::new(if number.is_multiple_of(3) { "order" } else { "pageview" })
        .at_ms(BASE_MS + day * DAY_MS + 1_000 * i64::try_from(number).unwrap());
    let event = event.anonymous(format!("a{}", original % 200)).external_id(format!("o{original}"));
    let event = if original.is_multiple_of(5) { event.user(format!("u{}", original % 70)) } else { event };
    if original.is_multiple_of(3) {
        event.value(if original.is_multiple_of(30) { "-1.5" } else { "12.25" }).unwrap()
    } else {
        event
    }
}

async fn send(engine: &Engine, projects: &[ProjectId], numbers: std::ops::Range<usize>) {
    for from in numbers.clone().step_by(40) {
        let batch: Vec<usize> = (from..numbers.end.min(from + 40)).collect();
        for (place, project) in projects.iter().enumerate() {
            let of_project = |number: &&usize| place < 2 || *number % PROJECTS == place;
            let events: Vec<NewEvent> = batch.iter().filter(of_project).map(|number| event(*number)).collect();
            if !events.is_empty() {
                let receipt = engine.track_batch(*project, &events).await.unwrap();
                assert!(receipt.errors.is_empty(), "{:?}", receipt.errors);
            }
        }
    }
}

async fn poison(engine: &Engine, project: ProjectId) {
    let poisoned = NewEvent::new("poison").user("u1").external_id("o3").at_ms(BASE_MS);
    let _ = engine.track(project, &poisoned).await;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while engine.version(project, &Depends::Everything).await.is_err() {
        assert!(std::time::Instant::now() < until, "the partition is not rebuilt");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-04-10").unwrap() }
}

/// The answers of each project, from its rollups and by a scan.
async fn answers(engine: &Engine, projects: &[ProjectId]) -> Vec<String> {
    let mut answers = Vec::new();
    for project in projects {
        let users = engine.ask(*project, UniqueUsersQuery { window: window() }).await.unwrap();
        let revenue = engine.ask(*project, RevenueMetricsQuery { window: window() }).await.unwrap();
        let predicate = Predicate::new(Some("pageview"), Vec::new()).unwrap();
        let scanned = engine.scans.unique_users(*project, window(), predicate).await.unwrap();
        answers.push(format!(
            "{users:?} {revenue:?} {scanned:?} {}",
            engine.version(*project, &Depends::Everything).await.unwrap().1
        ));
    }
    answers
}

fn same(found: &[String], expected: &[String], what: &str) {
    let other = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert!(
        other.is_none(),
        "{what}: project {other:?} of {} answers {:?}",
        found.len(),
        other.map(|place| (&found[place], &expected[place]))
    );
}

/// All rollups, records and indexes of a closed data directory.
fn stored(dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (store, _) = DiskStore::open_or_create(&dir.join("store"), StoreOptions::default()).unwrap();
    let mut pairs = BTreeMap::new();
    for partition in 0..PARTITIONS {
        for group in [2_u8, 3, 5] {
            let prefix = [&partition.to_be_bytes()[..], &[group]].concat();
            let mut visit = |key: &[u8], value: &[u8]| {
                pairs.insert(key.to_vec(), value.to_vec());
                ControlFlow::Continue(())
            };
            store.scan(&prefix, &mut visit).unwrap();
        }
    }
    assert!(pairs.len() > 100, "{} pairs", pairs.len());
    pairs
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Removes the derived data, so that the next start rebuilds them.
fn forget(dir: &Path) {
    fs::remove_dir_all(dir.join("store")).unwrap();
    fs::remove_dir_all(dir.join("fingerprints")).unwrap();
}

#[tokio::test]
async fn a_rebuild_from_archive_and_log_gives_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let (logged, sealed) = (dir.path().join("logged"), dir.path().join("sealed"));
    let (engine, projects) = new(config(&logged)).await;
    let partitions: std::collections::BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
    assert!(partitions.len() < PROJECTS, "some share a partition");
    send(&engine, &projects, 0..EVENTS / 2).await;
    poison(&engine, projects[0]).await;
    engine.close().await;
    copy(&logged, &sealed);

    // One keeps its log, the other seals after each part.
    let engine = open(&sealed);
    let first = engine.seal_archive().await.unwrap();
    assert!(first.events > 1_000, "{first:?}");
    assert_eq!(engine.seal_archive().await.unwrap().events, 0, "nothing is sealed twice");
    let segments = files(&sealed.join("log"), "seg").len();
    assert!(segments < files(&logged.join("log"), "seg").len(), "{segments} segments are left");
    for (part, numbers) in [EVENTS / 2..EVENTS * 3 / 4, EVENTS * 3 / 4..EVENTS].into_iter().enumerate() {
        send(&engine, &projects, numbers).await;
        if part == 0 {
            engine.seal_archive().await.unwrap();
        }
    }
    let expected = answers(&engine, &projects).await;
    engine.close().await;
    let engine = open(&logged);
    send(&engine, &projects, EVENTS / 2..EVENTS * 3 / 4).await;
    send(&engine, &projects, EVENTS * 3 / 4..EVENTS).await;
    same(&answers(&engine, &projects).await, &expected, "from the log");
    engine.close().await;

    for dir in [&logged, &sealed] {
        forget(dir);
        let engine = open(dir);
        same(&answers(&engine, &projects).await, &expected, &format!("rebuilt in {}", dir.display()));
        // The index of external ids is complete, too.
        for number in [0, EVENTS / 3, EVENTS - 1] {
            assert_eq!(engine.track(projects[1], &event(number)).await.unwrap().status, Status::Duplicate);
        }
        engine.close().await;
    }
    assert!(stored(&logged) == stored(&sealed), "the states differ");
}

#[tokio::test]
async fn a_damaged_file_is_named_where_it_is_needed_and_heals_when_it_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, projects) = new(config(dir.path())).await;
    send(&engine, &projects, 0..EVENTS).await;
    engine.seal_archive().await.unwrap();
    let expected = answers(&engine, &projects).await;
    let archive = dir.path().join("archive").join(format!("project={}", projects[0]));
    let file = files(&archive, "parquet").swap_remove(0);
    let intact = fs::read(&file).unwrap();
    let mut damaged = intact.clone();
    // A question reads only the columns that it needs. The first half of the file has some that all
    // need.
    damaged[..intact.len() / 2].iter_mut().skip(64).step_by(16).for_each(|byte| *byte ^= 1);
    fs::write(&file, &damaged).unwrap();

    // Not asked before: a kept answer needs no file.
    let everything = || Predicate::new(None, Vec::new()).unwrap();
    let Err(AskError::Lost(fault)) = engine.scans.unique_users(projects[0], window(), everything()).await else {
        panic!("answered from a damaged file")
    };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(fault.kind == FaultKind::DamagedArchive && fault.message.contains(name), "{fault}");
    assert_eq!(engine.vitals().archive_damaged_files, 1);
    engine.scans.unique_users(projects[1], window(), everything()).await.unwrap();
    engine.ask(projects[0], UniqueUsersQuery { window: window() }).await.unwrap();
    engine.close().await;

    // A rebuild needs it.
    forget(dir.path());
    let engine = open(dir.path());
    let Err(AskError::Lost(fault)) = engine.ask(projects[0], UniqueUsersQuery { window: window() }).await else {
        panic!("answered from half of the events")
    };
    assert!(fault.kind == FaultKind::DamagedArchive && fault.message.contains(name), "{fault}");
    let other = projects.iter().position(|project| partition_of(*project) != partition_of(projects[0])).unwrap();
    let users = engine.ask(projects[other], UniqueUsersQuery { window: window() }).await.unwrap();
    assert!(expected[other].starts_with(&format!("{users:?}")));
    fs::write(&file, &intact).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while engine.version(projects[0], &Depends::Everything).await.is_err() {
        assert!(std::time::Instant::now() < until, "it does not heal");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    same(&answers(&engine, &projects).await, &expected, "healed");
    assert_eq!(engine.vitals().archive_damaged_files, 0);
    engine.close().await;
}

#[tokio::test]
async fn what_is_missing_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let (engine, projects) = new(config(&whole)).await;
    send(&engine, &projects, 0..EVENTS / 2).await;
    engine.seal_archive().await.unwrap();
    engine.close().await;
    let refused = |change: &dyn Fn(&Path)| {
        let copied = dir.path().join("copied");
        let _ = fs::remove_dir_all(&copied);
        copy(&whole, &copied);
        change(&copied);
        Engine::open(config(&copied)).map(drop).unwrap_err().to_string()
    };
    let without_log = refused(&|dir| fs::remove_dir_all(dir.join("log")).unwrap());
    assert!(without_log.contains("a part of the log is missing"), "{without_log}");
    let without_catalog = refused(&|dir| {
        forget(dir);
        fs::remove_file(dir.join("archive/sealed.json")).unwrap();
    });
    assert!(without_catalog.contains("neither in the archive nor in the log"), "{without_catalog}");
    let damaged_catalog = refused(&|dir| fs::write(dir.join("archive/sealed.json"), "{}").unwrap());
    assert!(damaged_catalog.contains("sealed.json is damaged"), "{damaged_catalog}");

    // Only the project itself notices that its folder is gone.
    let copied = dir.path().join("copied");
    fs::remove_dir_all(&copied).unwrap();
    copy(&whole, &copied);
    fs::remove_dir_all(copied.join("archive").join(format!("project={}", projects[0]))).unwrap();
    forget(&copied);
    let engine = open(&copied);
    let asked = engine.ask(projects[0], UniqueUsersQuery { window: window() }).await;
    assert!(matches!(&asked, Err(AskError::Lost(fault)) if fault.kind == FaultKind::DamagedArchive), "{asked:?}");
    engine.close().await;
}

/// Copies of the data directory, each at a step of sealing.
type Copies = Arc<std::sync::Mutex<Vec<(&'static str, PathBuf)>>>;

/// A kill leaves the same as a copy at that moment, since the page cache outlives the process.
#[tokio::test]
async fn a_kill_at_each_step_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, copies) = (dir.path().join("whole"), Copies::default());
    let (engine, projects) = new(small(&whole)).await;
    engine.close().await;
    let mut config = small(&whole);
    let (from, to, taken) = (whole.clone(), dir.path().to_owned(), Arc::clone(&copies));
    config.archive_probe = Some(Arc::new(move |step| {
        let mut taken = taken.lock().unwrap();
        // There are enough copies of each step.
        if taken.iter().filter(|(other, _)| *other == step).count() < 2 {
            let copied = to.join(format!("copy-{}", taken.len()));
            copy(&from, &copied);
            taken.push((step, copied));
        }
    }));
    let engine = Engine::open(config).unwrap();
    let projects = &projects[..3];
    for part in 0..4 {
        send(&engine, projects, part * 100..(part + 1) * 100).await;
        engine.seal_archive().await.unwrap();
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !copies.lock().unwrap().iter().any(|(step, _)| *step == "files merged") && std::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    engine.close().await;
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    let steps: std::collections::BTreeSet<&str> = copies.iter().map(|(step, _)| *step).collect();
    let expected = ["catalog replaced", "file begun", "files merged", "log trimmed", "project listed"];
    assert_eq!(steps.into_iter().collect::<Vec<_>>(), expected);
    for (step, copied) in copies {
        let engine = Engine::open(small(&copied)).unwrap();
        // The events sent until then come again.
        let before = answers(&engine, projects).await;
        engine.seal_archive().await.unwrap();
        same(&answers(&engine, projects).await, &before, step);
        engine.close().await;
        forget(&copied);
        let engine = Engine::open(small(&copied)).unwrap();
        same(&answers(&engine, projects).await, &before, step);
        for part in 0..4 {
            send(&engine, projects, part * 100..(part + 1) * 100).await;
        }
        let expected = reference(dir.path(), projects.len()).await;
        let found: Vec<String> = answers(&engine, projects).await.iter().map(|answer| without_position(answer)).collect();
        same(&found, &expected, step);
        engine.close().await;
    }
}

fn small(dir: &Path) -> EngineConfig {
    let mut config = config(dir);
    config.shards = 1;
    config.log.segment_bytes = 8 << 10;
    config.archive.month_files = Some(2);
    config
}

fn without_position(answer: &str) -> String {
    answer.rsplit_once(' ').map_or(String::new(), |(answer, _)| answer.to_owned())
}

/// The answers of another data directory with the same events, which was never sealed.
async fn reference(dir: &Path, count: usize) -> Vec<String> {
    let dir = dir.join("reference");
    let _ = fs::remove_dir_all(&dir);
    let (engine, projects) = new(small(&dir)).await;
    for part in 0..4 {
        send(&engine, &projects[..count], part * 100..(part + 1) * 100).await;
    }
    let expected = answers(&engine, &projects[..count]).await.iter().map(|answer| without_position(answer)).collect();
    engine.close().await;
    expected
}

#[tokio::test]
async fn every_operation_on_files_fails_once_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (engine, projects) = new(small(&data)).await;
    engine.close().await;
    let engine = Engine::open(small(&data)).unwrap();
    let projects = &projects[..3];
    let mut number = 0;
    for area in ["archive", "log"] {
        let mut failures = 0;
        for at in 1..60_u64 {
            send(&engine, projects, number..number + 40).await;
            number += 40;
            let before = answers(&engine, projects).await;
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&data.join(area), Plan { at, failures: 1, errno, done: false });
            let outcome = engine.seal_archive().await;
            let failed = switch.failed().first().cloned();
            drop(switch);
            let what = format!("{area} {errno:?} at {at}: {failed:?}, {outcome:?}");
            same(&answers(&engine, projects).await, &before, &what);
            if failed.is_none() {
                break;
            }
            failures += 1;
        }
        assert!(failures >= if area == "log" { 3 } else { 15 }, "{area}: {failures} failures");
        engine.seal_archive().await.unwrap();
    }
    let before = answers(&engine, projects).await;
    engine.close().await;
    forget(&data);
    let engine = Engine::open(small(&data)).unwrap();
    same(&answers(&engine, projects).await, &before, "rebuilt");
    engine.close().await;
}

/// The log has enough events, but their checkpoint comes later. Sealing the events of an earlier
/// one would make two small files.
#[tokio::test]
async fn sealing_waits_for_enough_events_in_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.shards = 1;
    (config.archive.seal_events, config.archive.seal_after) = (100, std::time::Duration::MAX);
    config.checkpoints.events = 60;
    let (engine, projects) = new(config).await;
    let project = &projects[..1];
    let some = |from: usize, to: usize| {
        (from..to).map(|user| NewEvent::new("visit").user(format!("u{user}")).at_ms(BASE_MS)).collect::<Vec<_>>()
    };
    for (from, to) in [(0, 60), (60, 119)] {
        engine.track_batch(project[0], &some(from, to)).await.unwrap();
        // The archive's thread checks every second.
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        assert!(files(&dir.path().join("archive"), "parquet").is_empty(), "after {to} events");
    }
    engine.track_batch(project[0], &some(119, 120)).await.unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let found = loop {
        let found = files(&dir.path().join("archive"), "parquet");
        if !found.is_empty() {
            break found;
        }
        assert!(std::time::Instant::now() < until, "nothing is sealed");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(names, ["00000000000000000001-00000000000000000120.parquet"]);
    engine.close().await;
}
