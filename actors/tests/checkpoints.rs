//! Checkpoints that can't be written: the work that fails with them, the work that continues, and
//! the events that are safe.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::ingest::{NewEvent, Refusal};
use headcount_actors::{Engine, EngineConfig, TrackError};
use headcount_common::partition_of;
use headcount_control::NewProject;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const RECORDS: usize = 1 << 20;
const BATCH: usize = 250;
/// The number of batches for the other project.
const OTHERS: usize = 80;
/// The time that suffices for a slow machine.
const LONG: Duration = Duration::from_secs(120);

fn open(dir: &Path) -> Engine {
    let mut config = EngineConfig::new(dir);
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config.shards = 1;
    config.records = Some(RECORDS);
    config.checkpoints.events = 2_000;
    Engine::open(config).unwrap()
}

/// Two projects in different partitions of the single shard.
fn two_projects(engine: &Engine) -> (ProjectId, ProjectId) {
    let now = engine.clock().now();
    let initial = engine.registry().initialize(now).unwrap();
    let one = initial.project_id;
    let another = || {
        let new = NewProject { name: "other".into(), ..NewProject::default() };
        engine.registry().create_project(initial.organization_id, new, now).unwrap().id
    };
    let other = std::iter::repeat_with(another).find(|other| partition_of(*other) != partition_of(one)).unwrap();
    (one, other)
}

/// A batch of new users, each with an external id.
fn batch(number: usize) -> Vec<NewEvent> {
    let event = |user: usize| {
        NewEvent::new("order").user(format!("u{user}")).external_id(format!("o{user}")).at_ms(BASE_MS).value("1").unwrap()
    };
    (number * BATCH..(number + 1) * BATCH).map(event).collect()
}

async fn send(engine: &Engine, project: ProjectId, number: usize) -> Result<(), Refusal> {
    let receipt = engine.track_batch(project, &batch(number)).await?;
    assert_eq!(receipt.recorded, BATCH);
    Ok(())
}

async fn counted(engine: &Engine, project: ProjectId) -> (u64, u64) {
    let window = Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-03-02").unwrap() };
    let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap().total;
    let orders = engine.ask(project, RevenueMetricsQuery { window }).await.unwrap().orders;
    (users, u64::try_from(orders).unwrap())
}

/// The tables that a partition's next checkpoints write.
fn tables(dir: &Path, project: ProjectId) -> impl Iterator<Item = PathBuf> {
    let (dir, partition) = (dir.join("store/tables"), partition_of(project));
    (1..1_000).map(move |id| dir.join(format!("{partition:05}-{id:016x}.sst")))
}

/// Makes a partition unwritable. Even root can't open a directory as a table.
fn block(dir: &Path, project: ProjectId) {
    tables(dir, project).for_each(|table| std::fs::create_dir(table).unwrap());
}

fn unblock(dir: &Path, project: ProjectId) {
    tables(dir, project).for_each(|table| std::fs::remove_dir(table).unwrap());
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let began = Stopwatch::now();
    while !is_so().await {
        assert!(began.elapsed() < LONG, "it did not come");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_partition_that_can_not_be_written_stops_its_own_projects_only() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let (stuck, other) = two_projects(&engine);
    block(dir.path(), stuck);
    let mut sent = 0;
    let refusal = loop {
        match send(&engine, stuck, sent).await {
            Ok(()) => sent += 1,
            Err(refusal) => break refusal,
        }
        assert!(sent < 200, "{:?}", engine.vitals());
    };
    assert!(matches!(refusal, Refusal::Track(TrackError::Unavailable(_))), "{refusal:?}: nothing was logged");
    let vitals = engine.vitals();
    assert_eq!((vitals.checkpoints_failing, vitals.partitions_refusing), (1, 1));
    assert!(engine.ready().await.is_err(), "an operator must hear of it");
    let logged = vitals.log_position;
    assert!(send(&engine, stuck, sent).await.is_err() && engine.vitals().log_position == logged);
    for number in 0..OTHERS {
        send(&engine, other, number).await.unwrap();
        // Without evictions it would be more than twice as much. A slow machine evicts less at a
        // time.
        assert!(engine.vitals().record_bytes < 6 * RECORDS, "{number}: {:?}", engine.vitals());
    }
    assert_eq!(counted(&engine, stuck).await, ((sent * BATCH) as u64, (sent * BATCH) as u64), "it still answers");
    assert_eq!(counted(&engine, other).await, ((OTHERS * BATCH) as u64, (OTHERS * BATCH) as u64));

    unblock(dir.path(), stuck);
    until(async || engine.ready().await.is_ok()).await;
    send(&engine, stuck, sent).await.unwrap();
    sent += 1;
    engine.close().await;
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(counted(&engine, stuck).await.0, (sent * BATCH) as u64);
    assert_eq!(counted(&engine, other).await.0, (OTHERS * BATCH) as u64);
    engine.close().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_what_can_not_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let (stuck, other) = two_projects(&engine);
    block(dir.path(), stuck);
    send(&engine, stuck, 0).await.unwrap();
    send(&engine, other, 0).await.unwrap();
    let began = Stopwatch::now();
    engine.close().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    drop(engine);
    unblock(dir.path(), stuck);
    let engine = open(dir.path());
    for project in [stuck, other] {
        let again = engine.track_batch(project, &batch(0)).await.unwrap();
        assert_eq!((again.recorded, again.duplicates), (0, BATCH));
        assert_eq!(counted(&engine, project).await, (BATCH as u64, BATCH as u64));
    }
    engine.close().await;
}
