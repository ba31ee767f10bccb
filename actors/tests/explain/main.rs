//! Explanations by the embedded API: how long their pages live, and the cost of one among many
//! events.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod histories;
mod jumps;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;

use headcount_actors::domain::figures::{AttributedTo, ExplainQuestion, ExplainedFigure, Explanation, Reason};
use headcount_actors::domain::filter::Predicate;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::{Dimension, EntityLevel, TouchModel};
use headcount_actors::domain::time::{Day, Instant, Window};
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig, ExplainError};
use headcount_common::clock::FixedClock;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const MINUTE_MS: i64 = 60_000;

fn config(dir: &Path, clock: &FixedClock) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 0;
    config.clock = Arc::new(clock.clone());
    // The minimum, so that sorts go to disk.
    config.memory_bytes = 64 << 20;
    config
}

fn question(figure: ExplainedFigure, limit: usize) -> ExplainQuestion {
    let window = Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-03-10").unwrap() };
    let attributed = AttributedTo {
        model: TouchModel::LastTouch,
        level: EntityLevel::Account,
        dimension: Dimension::Source,
        value: Some("news".into()),
    };
    let attributed = Some(attributed).filter(|_| figure == ExplainedFigure::Attribution);
    ExplainQuestion { figure, attributed, window, predicate: Predicate::default(), limit, place: None }
}

fn event(number: usize) -> NewEvent {
    let at = BASE_MS + i64::try_from(number * 7_919 % 10_007).unwrap() * MINUTE_MS;
    let event = NewEvent::new("order").at_ms(at).user(format!("u{}", number % 5_000)).value("1.5").unwrap();
    let source = if number.is_multiple_of(3) { "news" } else { "other" };
    let url = format!("https://shop.example/?utm_source={source}");
    let event = event.with(Field::Url, url);
    if number.is_multiple_of(2) { event.with(Field::GroupId, format!("c{}", number % 700)) } else { event }
}

async fn send(engine: &Engine, project: ProjectId, count: usize) {
    let events: Vec<NewEvent> = (0..count).map(event).collect();
    for events in events.chunks(1_000) {
        let receipt = engine.track_batch(project, events).await.unwrap();
        assert!(receipt.errors.is_empty(), "{:?}", receipt.errors);
    }
}

#[tokio::test]
async fn pages_live_for_fifteen_minutes_and_not_over_a_start() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(Instant(BASE_MS)));
    let (engine, project) = support::open(config(dir.path(), &clock));
    send(&engine, project, 50).await;
    let first = engine.scans.explain(project, question(ExplainedFigure::Revenue, 10)).await.unwrap();
    let next = |page: &Explanation| ExplainQuestion { place: page.next, ..question(ExplainedFigure::Revenue, 10) };
    send(&engine, project, 70).await;
    clock.set(Instant(BASE_MS + 15 * MINUTE_MS - 1));
    let second = engine.scans.explain(project, next(&first)).await.unwrap();
    assert_eq!((first.result, first.until), (second.result, second.until));
    // It has the time of the first page.
    for now in [BASE_MS + 15 * MINUTE_MS, BASE_MS - 1] {
        clock.set(Instant(now));
        for page in [&first, &second] {
            let expired = engine.scans.explain(project, next(page)).await;
            assert!(matches!(expired, Err(ExplainError::Expired)), "{expired:?}");
        }
    }
    clock.set(Instant(BASE_MS));
    engine.scans.explain(project, next(&first)).await.unwrap();
    engine.close().await;
    let (engine, project) = support::open(config(dir.path(), &clock));
    let expired = engine.scans.explain(project, next(&first)).await;
    assert!(matches!(expired, Err(ExplainError::Expired)), "{expired:?}");
    engine.close().await;
}

/// There are more events than fit into a page, or a sort in memory.
#[tokio::test]
async fn a_page_of_many_events_is_found_by_sorts_on_disk() {
    const COUNT: usize = 30_000;
    let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(Instant(BASE_MS + 20 * 1_440 * MINUTE_MS)));
    let (engine, project) = support::open(config(dir.path(), &clock));
    send(&engine, project, COUNT).await;
    let page = engine.scans.explain(project, question(ExplainedFigure::UniqueUsers, 500)).await.unwrap();
    assert_eq!((page.result.to_string(), page.rows.len(), page.next.is_some()), ("5000".to_owned(), 500, true));
    assert!(page.rows.is_sorted_by(|one, other| one.at > other.at));
    let revenue = engine.scans.explain(project, question(ExplainedFigure::Revenue, 500)).await.unwrap();
    assert_eq!(revenue.result.to_string(), "45000");
    let before = engine.vitals().scan_spilled_bytes;
    let attributed = engine.scans.explain(project, question(ExplainedFigure::Attribution, 500)).await.unwrap();
    assert!(engine.vitals().scan_spilled_bytes > before, "nothing was sorted on disk");
    assert!(attributed.rows.iter().all(|event| event.why == Reason::Touch) && attributed.rows.len() == 500);
    engine.close().await;
}
