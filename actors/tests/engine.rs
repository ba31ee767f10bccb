//! The embedded engine, from outside: open, track, ask, stop and start again, in a plain tokio
//! program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::money::Amount;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};

fn window(first: &str, last: &str) -> Window {
    Window { start: Day::parse(first).unwrap(), end: Day::parse(last).unwrap() }
}

const DAY_MS: i64 = 86_400_000;
/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;

fn config(dir: &std::path::Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config
}

fn start(dir: &std::path::Path) -> (Engine, ProjectId) {
    let engine = Engine::open(config(dir)).unwrap();
    let project = if engine.registry().is_empty() {
        engine.registry().initialize(engine.clock().now()).unwrap().project_id
    } else {
        let organization = engine.registry().organizations()[0].id;
        engine.registry().projects(organization).unwrap()[0].id
    };
    (engine, project)
}

async fn fill(engine: &Engine, project: ProjectId) {
    let visit = NewEvent::new("pageview").anonymous("a1").at_ms(BASE_MS);
    assert_eq!(engine.track(project, &visit).await.unwrap().status, Status::Recorded);
    let order = NewEvent::new("order").user("ada").external_id("o-1").at_ms(BASE_MS + DAY_MS).value("12.50").unwrap();
    let first = engine.track(project, &order).await.unwrap();
    let again = engine.track(project, &order).await.unwrap();
    assert_eq!(again.status, Status::Duplicate);
    assert_eq!((again.id, again.position), (first.id, first.position));
    let sign_in = NewEvent::new("identify").anonymous("a1").user("ada").at_ms(BASE_MS + 2 * DAY_MS);
    let batch = engine.track_batch(project, &[sign_in, NewEvent::new("")]).await.unwrap();
    assert_eq!((batch.recorded, batch.errors.len(), batch.errors[0].0), (1, 1, 1));
}

async fn check(engine: &Engine, project: ProjectId) {
    let users = engine.ask(project, UniqueUsersQuery { window: window("2024-03-01", "2024-03-04") }).await.unwrap();
    assert_eq!(users.series.iter().map(|(_, users)| *users).collect::<Vec<_>>(), [1, 1, 1, 0]);
    assert_eq!(users.total, 1);
    let revenue = engine.ask(project, RevenueMetricsQuery { window: window("2024-03-01", "2024-03-04") }).await.unwrap();
    assert_eq!((revenue.total_revenue, revenue.orders), (Amount::parse("12.5").unwrap(), 1));
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_stop() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = start(dir.path());
    fill(&engine, project).await;
    check(&engine, project).await;
    let before = engine.version(project, &Depends::Everything).await.unwrap();
    engine.close().await;
    drop(engine);
    let (engine, project) = start(dir.path());
    check(&engine, project).await;
    assert_eq!(
        engine.version(project, &Depends::Everything).await.unwrap(),
        before,
        "a stop changes no answer, so no tag either"
    );
    let again = NewEvent::new("order").external_id("o-1").value("99").unwrap();
    assert_eq!(engine.track(project, &again).await.unwrap().status, Status::Duplicate);
    check(&engine, project).await;
    engine.close().await;
}

#[tokio::test]
async fn the_store_is_rebuilt_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = start(dir.path());
    fill(&engine, project).await;
    let before = engine.version(project, &Depends::Everything).await.unwrap();
    engine.close().await;
    drop(engine);
    std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    let (engine, project) = start(dir.path());
    check(&engine, project).await;
    assert_ne!(engine.version(project, &Depends::Everything).await.unwrap(), before, "a rebuild is a new incarnation");
    engine.close().await;
}

#[tokio::test]
async fn a_directory_has_one_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = start(dir.path());
    let second = Engine::open(config(dir.path())).map(drop).unwrap_err().to_string();
    assert!(second.contains("use"), "{second}");
    engine.close().await;
    drop(engine);
    start(dir.path()).0.close().await;
}

#[tokio::test]
async fn an_event_that_panics_twice_is_set_aside_and_the_others_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut faulty = config(dir.path());
    faulty.probe = Some(std::sync::Arc::new(|event: &headcount_actors::domain::intake::event::Event| {
        assert!(&*event.name != "poison", "planted");
    }));
    let engine = Engine::open(faulty).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    fill(&engine, project).await;
    let poison = NewEvent::new("poison").user("eve").at_ms(BASE_MS);
    let after = NewEvent::new("order").user("ada").at_ms(BASE_MS + DAY_MS).value("1").unwrap();
    let batch = engine.track_batch(project, &[poison, after]).await.unwrap();
    assert_eq!(batch.recorded, 2);
    assert_eq!(engine.vitals().dead_letters, 1);
    let revenue = engine.ask(project, RevenueMetricsQuery { window: window("2024-03-01", "2024-03-04") }).await.unwrap();
    assert_eq!(revenue.orders, 2);
    engine.close().await;
    drop(engine);
    // Without the store everything is replayed, and the event stays a dead letter although nothing
    // panics now.
    std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    let (engine, project) = start(dir.path());
    let users = engine.ask(project, UniqueUsersQuery { window: window("2024-03-01", "2024-03-04") }).await.unwrap();
    assert_eq!(users.total, 1);
    engine.close().await;
}

#[tokio::test]
async fn a_panic_that_goes_away_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut faulty = config(dir.path());
    let panics = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = std::sync::Arc::clone(&panics);
    faulty.probe = Some(std::sync::Arc::new(move |event: &headcount_actors::domain::intake::event::Event| {
        let first = &*event.name == "order" && counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        assert!(!first, "planted");
    }));
    let engine = Engine::open(faulty).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    fill(&engine, project).await;
    check(&engine, project).await;
    assert!(panics.load(std::sync::atomic::Ordering::SeqCst) > 1);
    assert_eq!(engine.vitals().dead_letters, 0);
    engine.close().await;
}

#[tokio::test]
async fn an_engine_that_is_only_dropped_lets_go_of_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = start(dir.path());
    fill(&engine, project).await;
    drop(engine);
    let (engine, project) = start(dir.path());
    check(&engine, project).await;
    engine.close().await;
}
