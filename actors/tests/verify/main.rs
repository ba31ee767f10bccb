//! Verification finds and names stored values that differ from the events, and damage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod external_ids;
mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headcount_actors::domain::cells::packed::Packed;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::rollups::STORED_ROWS;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::verify::{DifferingCell, VerifyError, VerifyReport, VerifyStatus};
use headcount_actors::{Engine, EngineConfig, verify_directory};
use headcount_common::{PARTITIONS, partition_of};
use headcount_control::NewProject;
use headcount_storage::codec;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store, StoreOptions};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const HOUR_MS: i64 = 3_600_000;
const PROJECTS: usize = 3;
const EVENTS: usize = 4_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 64 << 10;
    config.archive.file_rows = Some(500);
    config.probe = Some(Arc::new(|event| assert!(&*event.name != "poison", "a planted panic")));
    config
}

fn verified(dir: &Path) -> VerifyReport {
    verified_as(&config(dir), false)
}

/// On a busy machine, the lock of an engine that was closed is free a moment later.
fn verified_as(config: &EngineConfig, quick: bool) -> VerifyReport {
    for _ in 0..1_000 {
        match verify_directory(config, quick, &Arc::default()) {
            Err(VerifyError::Directory(why)) if why.contains("in use") => std::thread::sleep(Duration::from_millis(10)),
            verified => return verified.unwrap(),
        }
    }
    panic!("the directory stays in use");
}

fn clean(report: &VerifyReport, projects: usize, events: u64) {
    assert_eq!((report.status(), report.differing), (VerifyStatus::Clean, 0), "{:?} {:?}", report.cells, report.damaged);
    assert_eq!(report.projects.len(), projects);
    assert_eq!(report.projects.values().map(|project| project.events).sum::<u64>(), events);
    assert!(report.projects.values().all(|project| (project.events > 0) == (project.cells > 0)), "{:?}", report.projects);
}

/// An event of a history with companies, teams, links, refunds, late events and some people with
/// long lists.
fn event(number: usize) -> NewEvent {
    // A browser with a long history. The user who signs in on it keeps the history.
    if number < 1_500 && number.is_multiple_of(10) || number == 1_501 {
        let at_ms = BASE_MS + i64::try_from(number).unwrap() * HOUR_MS;
        let event = NewEvent::new("pageview").anonymous("long").at_ms(at_ms).with(Field::Url, "https://s.example/");
        let event = event.with(Field::GroupId, "t1").with(Field::GroupType, "team");
        return if number == 1_501 { event.user("newcomer") } else { event };
    }
    let n = |below: usize, salt: usize| (number.wrapping_mul(2_654_435_761) >> (7 + salt)) % below;
    let late = if n(5, 1) == 0 { 40 * 24 * HOUR_MS } else { 0 };
    let at_ms = BASE_MS + i64::try_from(number).unwrap() * HOUR_MS / 2 - late;
    let mut event = match n(8, 2) {
        0 => NewEvent::new("refund").value("-3.25").unwrap(),
        1 | 2 => NewEvent::new("order").value("19.99").unwrap(),
        _ => NewEvent::new("pageview"),
    };
    event = event.at_ms(at_ms).with(Field::Url, format!("https://s.example/{}?utm_source=s{}", n(40, 3), n(5, 4)));
    event = match n(4, 5) {
        0 => event.user("busy"),
        1 => event.user(format!("u{}", n(300, 6))).anonymous(format!("a{}", n(400, 7))),
        2 => event.anonymous(format!("a{}", n(400, 8))),
        _ => event.user(format!("member {number}")),
    };
    event = match n(5, 9) {
        0 => event.with(Field::GroupId, format!("acct_{}", n(30, 10))),
        1 if n(4, 2) == 3 => NewEvent::new("group")
            .at_ms(at_ms)
            .user(format!("u{}", n(300, 6)))
            .with(Field::GroupId, format!("acct_{}", n(30, 10)))
            .metadata(&serde_json::json!({ "domain": format!("firm{}.example", n(9, 12)) }))
            .unwrap(),
        1 => event.with(Field::GroupId, "acme.com"),
        2 => event.with(Field::GroupId, "t1").with(Field::GroupType, "team"),
        3 => event.user(format!("p{}@firm{}.example", n(50, 11), n(9, 12))),
        _ => event,
    };
    if n(3, 13) == 0 { event.external_id(format!("id {}", n(900, 14))) } else { event }
}

async fn new(config: EngineConfig, projects: usize) -> (Engine, Vec<ProjectId>) {
    let engine = Engine::open(config).unwrap();
    let initial = engine.registry().initialize(engine.clock().now()).unwrap();
    let mut ids = vec![initial.project_id];
    for number in 1..projects {
        let new = NewProject { name: format!("p{number}"), ..NewProject::default() };
        ids.push(engine.registry().create_project(initial.organization_id, new, engine.clock().now()).unwrap().id);
    }
    (engine, ids)
}

/// Returns the number of events that were not recorded before.
async fn send(engine: &Engine, projects: &[ProjectId], numbers: std::ops::Range<usize>) -> u64 {
    let mut recorded = 0;
    for from in numbers.clone().step_by(200) {
        for (place, project) in projects.iter().enumerate() {
            let wanted = |number: &usize| place == 0 || number % projects.len() == place;
            let events: Vec<NewEvent> = (from..numbers.end.min(from + 200)).filter(wanted).map(event).collect();
            let receipt = engine.track_batch(*project, &events).await.unwrap();
            assert!(receipt.errors.is_empty(), "{:?}", receipt.errors);
            recorded += receipt.recorded as u64;
        }
    }
    recorded
}

/// A stopped data directory with sealed and unsealed events, written by several processes. Returns
/// the number of events that count.
async fn filled(dir: &Path) -> (Vec<ProjectId>, u64) {
    let (engine, projects) = new(config(dir), PROJECTS).await;
    let mut events = send(&engine, &projects, 0..EVENTS / 4).await;
    engine.seal_archive().await.unwrap();
    events += send(&engine, &projects, EVENTS / 4..EVENTS / 2).await;
    engine.close().await;
    let engine = Engine::open(config(dir)).unwrap();
    events += send(&engine, &projects, EVENTS / 2..EVENTS * 3 / 4).await;
    engine.seal_archive().await.unwrap();
    events += send(&engine, &projects, EVENTS * 3 / 4..EVENTS).await;
    engine.close().await;
    (projects, events)
}

async fn poison(engine: &Engine, project: ProjectId) {
    let _ = engine.track(project, &NewEvent::new("poison").user("busy").at_ms(BASE_MS)).await;
    while engine.version(project, &headcount_actors::domain::versions::Depends::Everything).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn open_store(dir: &Path) -> DiskStore {
    DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap()
}

/// The stored pairs of projects.
fn pairs(dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (store, mut pairs) = (open_store(dir), BTreeMap::new());
    for partition in 0..PARTITIONS {
        for group in [2_u8, 3, 5] {
            let visit = &mut |key: &[u8], value: &[u8]| {
                pairs.insert(key.to_vec(), value.to_vec());
                ControlFlow::Continue(())
            };
            store.scan(&[&partition.to_be_bytes()[..], &[group]].concat(), visit).unwrap();
        }
    }
    pairs
}

fn set(dir: &Path, key: &[u8], value: Option<&[u8]>) {
    let store = open_store(dir);
    let mut checkpoint = store.begin(PartitionId::of_key(key).unwrap()).unwrap();
    match value {
        Some(value) => checkpoint.put(key, value).unwrap(),
        None => checkpoint.delete(key).unwrap(),
    }
    checkpoint.commit().unwrap();
}

/// Returns a value that differs in one cell, or one byte.
fn flipped(key: Key, value: &[u8]) -> Vec<u8> {
    if let Key::Cells { .. } = key {
        let mut part: Packed = codec::decode(1, value).unwrap();
        let at = part.count() / 2;
        let mut columns = part.columns(at);
        columns[0] ^= 2;
        part.set(at, &columns);
        return codec::encode(1, &part).unwrap();
    }
    let mut value = value.to_vec();
    // The last byte of a project says whether it has a floor, which would follow.
    let at = value.len() - if key.space_name() == Some("project") { 2 } else { 1 };
    value[at] ^= 1;
    value
}

/// The name of rows or of a record.
fn name_of(key: &Key) -> Option<&'static str> {
    match key {
        Key::Cells { tag, .. } => STORED_ROWS.iter().find(|rows| rows.tag == *tag).map(|rows| rows.name),
        _ => key.space_name(),
    }
}

/// A pair of each kind of rows and records, by name.
fn kinds(dir: &Path) -> BTreeMap<&'static str, (Vec<u8>, Vec<u8>)> {
    let mut kinds: BTreeMap<&'static str, (Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for (key, value) in pairs(dir) {
        let decoded = Key::decode(&key).unwrap();
        if !matches!(decoded, Key::Record { project: 0, .. }) {
            kinds.entry(name_of(&decoded).unwrap()).or_insert((key, value));
        }
    }
    let found: BTreeSet<&str> = kinds.keys().copied().collect();
    for kind in [
        "unique_users",
        "active_accounts",
        "revenue",
        "first_touch_by_identity",
        "last_touch_by_identity",
        "first_touch_by_account",
        "last_touch_by_account",
        "cohorts_by_identity",
        "cohorts_by_account",
        "traffic",
        "day_versions",
        "receipts",
        "group_activity",
        "company_links",
        "group_numbers",
        "group_names",
        "member_aliases",
        "identity",
        "identity_page",
        "account",
        "group",
        "company_id",
        "email",
        "name_number",
        "name_text",
        "project",
    ] {
        assert!(found.contains(kind), "no {kind} among {found:?}");
    }
    kinds
}

#[tokio::test]
async fn each_kind_of_cell_and_record_that_is_flipped_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (_, events) = filled(dir.path()).await;
    clean(&verified(dir.path()), PROJECTS, events);
    let kinds = kinds(dir.path());
    let named = |report: &VerifyReport| -> BTreeSet<String> {
        assert_eq!(report.status(), VerifyStatus::Differs, "{:?}", report.damaged);
        report.cells.iter().map(|cell| format!("{} {}", cell.project, cell.rollup)).collect()
    };
    let expected: BTreeSet<String> = kinds
        .iter()
        .map(|(kind, (key, _))| match Key::decode(key).unwrap() {
            Key::Cells { project, .. } | Key::Record { project, .. } => format!("{} {kind}", ProjectId(project)),
            other => panic!("{other:?}"),
        })
        .collect();
    for (key, value) in kinds.values() {
        set(dir.path(), key, Some(&flipped(Key::decode(key).unwrap(), value)));
    }
    let report = verified(dir.path());
    assert_eq!(named(&report), expected);
    assert_eq!((report.differing, report.cells.len()), (kinds.len() as u64, kinds.len()), "{:?}", report.cells);
    for cell in &report.cells {
        assert!(cell.stored.is_some() && cell.recomputed.is_some() && cell.stored != cell.recomputed, "{cell:?}");
    }
    for (key, _) in kinds.iter().filter(|(kind, _)| **kind != "project").map(|(_, pair)| pair) {
        set(dir.path(), key, None);
    }
    let report = verified(dir.path());
    // All rows of the removed parts differ. The first thousand are named.
    assert!(report.differing > 1_000 && report.cells.len() == 1_000, "{}", report.differing);
    assert!(named(&report).is_subset(&expected), "{:?}", named(&report));
    let is_of_project = |cell: &&DifferingCell| cell.rollup == "project";
    assert_eq!(report.cells.iter().filter(is_of_project).count(), 1);
    let removed = report.cells.iter().filter(|cell| !is_of_project(cell));
    assert!(removed.clone().all(|cell| cell.stored.is_none() && cell.recomputed.is_some()), "{:?}", report.cells);
    for (key, value) in kinds.values() {
        set(dir.path(), key, Some(value));
    }
    clean(&verified(dir.path()), PROJECTS, events);
}

#[tokio::test]
async fn a_cell_that_should_not_be_there_is_found() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let pairs = pairs(dir.path());
    for kind in ["unique_users", "identity"] {
        let is_kind = |(key, _): &(&Vec<u8>, &Vec<u8>)| name_of(&Key::decode(key).unwrap()) == Some(kind);
        let (key, value) = pairs.iter().rfind(is_kind).unwrap();
        let (other, copied) = match Key::decode(key).unwrap() {
            Key::Cells { partition, project, room, tag, .. } => {
                let part = Packed::new(8, &[200; 24], &[3, 0, 0, 0]);
                (Key::Cells { partition, project, room, tag, part: 9_999 }.encode(), codec::encode(1, &part).unwrap())
            }
            Key::Record { partition, project, space, id } => {
                (Key::Record { partition, project, space, id: !id }.encode(), value.clone())
            }
            other => panic!("{other:?}"),
        };
        set(dir.path(), &other, Some(&copied));
        let report = verified(dir.path());
        let [cell] = &report.cells[..] else { panic!("{:?}", report.cells) };
        assert_eq!((cell.rollup.as_str(), &cell.recomputed), (kind, &None), "{cell:?}");
        set(dir.path(), &other, None);
    }
}

#[tokio::test]
async fn a_running_engine_is_clean_while_events_flow_and_finds_a_flipped_cell() {
    let dir = tempfile::tempdir().unwrap();
    let (projects, _) = filled(dir.path()).await;
    let engine = Engine::open(config(dir.path())).unwrap();
    poison(&engine, projects[1]).await;
    let done = Arc::new(AtomicBool::new(false));
    let verifying = tokio::spawn({
        let (engine, done) = (engine.clone(), Arc::clone(&done));
        async move {
            let report = engine.verify(false, &Arc::default()).await.unwrap();
            done.store(true, Ordering::Relaxed);
            report
        }
    });
    let mut sent = EVENTS;
    while !done.load(Ordering::Relaxed) {
        send(&engine, &projects, sent..sent + 200).await;
        sent += 200;
        if sent.is_multiple_of(1_000) {
            engine.seal_archive().await.unwrap();
        }
        // Events arrive, but leave processors for the test.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let report = verifying.await.unwrap();
    assert_eq!(report.status(), VerifyStatus::Clean, "{:?} {:?}", report.cells, report.damaged);
    assert_eq!(report.projects.len(), PROJECTS);
    assert!(!dir.path().join("verify-tmp").exists());
    let expected = engine.verify(false, &Arc::default()).await.unwrap();
    engine.close().await;
    // The stopped directory, and a start, have the same differences.
    let stopped = verified(dir.path());
    assert_eq!(stopped, expected);
    let (key, value) =
        pairs(dir.path()).into_iter().find(|(key, _)| name_of(&Key::decode(key).unwrap()) == Some("revenue")).unwrap();
    set(dir.path(), &key, Some(&flipped(Key::decode(&key).unwrap(), &value)));
    let engine = Engine::open(config(dir.path())).unwrap();
    send(&engine, &projects, sent..sent + 50).await;
    let report = engine.verify(false, &Arc::default()).await.unwrap();
    assert_eq!((report.status(), report.differing), (VerifyStatus::Differs, 1), "{report:?}");
    assert_eq!(report.cells[0].rollup, "revenue");
    assert!(report.cells[0].key.starts_with("2024-"), "{:?}", report.cells);
    engine.close().await;
    assert!(matches!(engine.verify(false, &Arc::default()).await, Err(VerifyError::Stopped)));
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

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_flipped_byte_in_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let name = |path: &Path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
    for (folder, extension) in [("archive", "parquet"), ("log", "seg"), ("store", "sst"), ("fingerprints", "sst")] {
        let path = files(&dir.path().join(folder), extension).into_iter().next().unwrap_or_else(|| panic!("{folder}"));
        // In the first block of a segment or table, and in the middle of a Parquet file.
        let at = if extension == "parquet" {
            fs::metadata(&path).unwrap().len() as usize / 2
        } else if folder == "log" {
            4_200
        } else {
            100
        };
        flip(&path, at);
        for quick in [false, true] {
            let report = verified_as(&config(dir.path()), quick);
            assert_eq!(report.status(), VerifyStatus::Damaged, "{}", name(&path));
            assert_eq!(report.damaged.iter().map(|damaged| damaged.file.clone()).collect::<Vec<_>>(), [name(&path)]);
            assert_eq!(report.differing, 0);
        }
        flip(&path, at);
        assert_eq!(verified(dir.path()).status(), VerifyStatus::Clean, "{}", name(&path));
    }
}

#[tokio::test]
async fn an_empty_instance_and_a_hundred_projects_are_clean() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = new(config(&dir.path().join("empty")), 1).await;
    clean(&engine.verify(false, &Arc::default()).await.unwrap(), 1, 0);
    engine.close().await;
    clean(&verified(&dir.path().join("empty")), 1, 0);

    let many = dir.path().join("many");
    let (engine, projects) = new(config(&many), 100).await;
    let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
    assert!(partitions.len() > 20);
    let mut events = send(&engine, &projects[..90], 0..1_000).await;
    engine.seal_archive().await.unwrap();
    events += send(&engine, &projects[..90], 1_000..1_500).await;
    clean(&engine.verify(false, &Arc::default()).await.unwrap(), 100, events);
    // One project is deleted. Its remaining data are not compared.
    let gone = engine.verify(false, &Arc::default()).await.unwrap().projects[&projects[1]].events;
    engine.delete_project(engine.registry().organizations()[0].id, projects[1], engine.clock().now()).unwrap();
    clean(&engine.verify(false, &Arc::default()).await.unwrap(), 99, events - gone);
    engine.close().await;
    clean(&verified(&many), 99, events - gone);
}

#[tokio::test]
async fn what_is_no_data_directory_can_not_be_verified() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |dir: &Path| verify_directory(&config(dir), false, &Arc::default()).unwrap_err().to_string();
    assert!(refused(dir.path()).contains("not a data directory"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is created");
    let (engine, _) = new(config(dir.path()), 1).await;
    assert!(refused(dir.path()).contains("in use"));
    engine.close().await;
    let stop = Arc::new(AtomicBool::new(true));
    assert!(matches!(verify_directory(&config(dir.path()), false, &stop), Err(VerifyError::Stopped)));
}
