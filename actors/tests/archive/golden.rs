//! Bases of each version stay loadable, since no events could rebuild them.

use std::path::PathBuf;

use headcount_actors::domain::figures::{ComparedWindows, ReportQuery};
use headcount_actors::domain::queries::TrafficQuery;
use headcount_actors::domain::rollups::SUMS;
use headcount_actors::domain::time::Interval;
use headcount_archive::{Archive, BaseItem, BaseReader, BaseWriter};
use headcount_storage::keyspace::Key;
use serde_json::json;

use super::retention::{DROPPED, RETENTION_DAYS, floor, removed, set_retention, verified};
use super::*;

/// If set, and no fixture has the current types, writes a fixture.
const UPDATE: &str = "HEADCOUNT_UPDATE_FIXTURES";
const EXPECTED: &str = "expected.json";
/// The first half of them is in the base.
const GOLDEN_EVENTS: usize = 160;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/bases")
}

/// Data directories, with their answers.
fn fixtures() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The archive of the only project of a data directory.
fn archive(dir: &Path) -> (ProjectId, Archive) {
    let folder = fs::read_dir(dir.join("archive")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let project = folder.filter_map(|name| name.strip_prefix("project=").map(|id| id.parse().unwrap())).next().unwrap();
    (project, Archive::existing(&dir.join("archive"), project).unwrap())
}

/// The stored types of the only base of a data directory.
fn types(dir: &Path) -> Vec<String> {
    let (project, archive) = archive(dir);
    let base = archive.manifest().base().unwrap();
    BaseReader::open(archive.dir(), project, base).unwrap().header().stored_types.clone()
}

/// Changes the only base of a data directory into one of a version without some rollups.
fn take_from_base(dir: &Path, rollups: &[&str]) {
    let (project, mut archive) = archive(dir);
    let base = archive.manifest().base().unwrap();
    let mut reader = BaseReader::open(archive.dir(), project, base).unwrap();
    let mut header = reader.header().clone();
    header.stored_types.retain(|line| !rollups.iter().any(|name| line.contains(&format!(" {name} version"))));
    let tags: Vec<u8> = SUMS.iter().filter(|rows| rollups.contains(&rows.name)).map(|rows| rows.tag).collect();
    let is_taken =
        |key: &[u8]| matches!(Key::decode(&[&[0, 0], key].concat()), Ok(Key::Cells { tag, .. }) if tags.contains(&tag));
    let mut writer = BaseWriter::create(archive.dir(), &header, base.next_name(base.position())).unwrap();
    let mut taken = 0;
    while let Some(item) = reader.next().unwrap() {
        match item {
            BaseItem::Pair(key, _) if is_taken(&key) => taken += 1,
            BaseItem::Pair(key, value) => writer.push_pair(&key, &value).unwrap(),
            BaseItem::Id(fingerprint, position) => writer.push_id(fingerprint, position).unwrap(),
        }
    }
    assert!(taken >= rollups.len(), "{taken}");
    archive.set_base(writer.finish().unwrap()).unwrap();
}

/// The figures of all days. The early ones are frozen.
async fn figures(engine: &Engine, project: ProjectId) -> String {
    let users = engine.ask(project, UniqueUsersQuery { window: window() }).await.unwrap();
    let revenue = engine.ask(project, RevenueMetricsQuery { window: window() }).await.unwrap();
    let windows = ComparedWindows { window: window(), previous: None };
    let report = engine.ask(project, ReportQuery { windows, interval: Interval::Month }).await.unwrap();
    let traffic = engine.ask(project, TrafficQuery { window: window(), limit: 100 }).await.unwrap();
    let floor = engine.floor(project).await.unwrap();
    let figures = json!({ "floor": floor, "users": users, "revenue": revenue, "report": report, "traffic": traffic });
    serde_json::to_string_pretty(&figures).unwrap() + "\n"
}

/// Creates a data directory with a project whose early events are gone, without derived data.
/// Returns its figures.
async fn make(dir: &Path) -> String {
    let mut config = config(dir);
    config.log.segment_bytes = 4 << 10;
    let engine = Engine::open(config).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    send(&engine, &[project], 0..GOLDEN_EVENTS / 2).await;
    set_retention(&engine, project, Some(RETENTION_DAYS));
    assert_eq!(engine.ingest.apply_retention(project).await.unwrap(), Some(floor()));
    removed(&engine, dir, project).await;
    send(&engine, &[project], GOLDEN_EVENTS / 2..GOLDEN_EVENTS).await;
    engine.seal_archive().await.unwrap();
    let figures = figures(&engine, project).await;
    engine.close().await;
    forget(dir);
    figures
}

/// A change that raises the version of a stored type must convert the bases of the former version.
#[tokio::test]
async fn bases_of_each_version_are_loaded() {
    let made = tempfile::tempdir().unwrap();
    let expected = make(made.path()).await;
    let today = types(made.path());
    if std::env::var_os(UPDATE).is_some() && !fixtures().iter().any(|dir| types(dir) == today) {
        let dir = root().join(format!("v{}", fixtures().len() + 1));
        copy(made.path(), &dir);
        fs::write(dir.join(EXPECTED), &expected).unwrap();
    }
    let are_kept = |types: Vec<String>| types.iter().all(|name| today.contains(name));
    assert!(
        fixtures().iter().any(|dir| are_kept(types(dir))),
        "no fixture has bases with today's types, except rollups that are newer: {UPDATE}=1 writes one. Bases of former types must be \
         converted when they are loaded, or their fixture be removed, if no release has written such bases"
    );
    for fixture in fixtures() {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixture, dir.path());
        let engine = open(dir.path());
        let organization = engine.registry().organizations()[0].id;
        let project = engine.registry().projects(organization).unwrap()[0].id;
        assert_eq!(figures(&engine, project).await, fs::read_to_string(fixture.join(EXPECTED)).unwrap(), "{}", fixture.display());
        assert_eq!(engine.floor(project).await.unwrap(), Some(floor()));
        // The external ids of removed events are taken, and one of their users is known.
        let again = event(7).at_ms(BASE_MS + 35 * DAY_MS);
        assert_eq!(engine.track(project, &again).await.unwrap().status, Status::Duplicate);
        assert_eq!(engine.track(project, &event(0)).await.unwrap().status, DROPPED);
        verified(&engine, "loaded").await;
        engine.close().await;
    }
}

/// A rollup is added to the program. It counts the contributions of facts in a base, and of later
/// events.
#[tokio::test]
async fn a_base_that_lacks_a_rollup_is_loaded_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let expected = make(dir.path()).await;
    take_from_base(dir.path(), &["unique_users", "active_accounts", "revenue", "cohorts_by_identity"]);
    let engine = open(dir.path());
    let organization = engine.registry().organizations()[0].id;
    let project = engine.registry().projects(organization).unwrap()[0].id;
    assert_eq!(figures(&engine, project).await, expected);
    verified(&engine, "filled").await;
    engine.close().await;
}
