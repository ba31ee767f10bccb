//! Counting days in another timezone, interrupted at any operation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

#[path = "support/copies.rs"]
mod copies;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use copies::copy;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Instant, Timezone, Window};
use headcount_actors::ingest::NewEvent;
use headcount_actors::{Engine, EngineConfig, Reindexed, reindex};
use headcount_common::clock::FixedClock;
use headcount_control::NewOrganization;
use headcount_storage::files::switch::{Errno, Plan, Switch};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const HOUR_MS: i64 = 3_600_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 0;
    config.log.segment_bytes = 64 << 10;
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 1_000 * HOUR_MS)));
    config.archive.file_rows = Some(40);
    config
}

fn auckland() -> Timezone {
    Timezone::parse("Pacific/Auckland").unwrap()
}

async fn send(engine: &Engine, project: ProjectId) {
    for number in 0..120_i64 {
        let event = NewEvent::new("order").user(format!("u{}", number % 9)).at_ms(BASE_MS + number * HOUR_MS / 2);
        let event = event.value(&number.to_string()).unwrap().external_id(format!("e{number}"));
        engine.track(project, &event).await.unwrap();
    }
}

async fn answers(engine: &Engine, project: ProjectId) -> String {
    let window = Window { start: Day::parse("2024-03-02").unwrap(), end: Day::parse("2024-03-03").unwrap() };
    let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap();
    let revenue = engine.ask(project, RevenueMetricsQuery { window }).await.unwrap();
    format!("{users:?} {revenue:?}")
}

/// Creates a closed directory whose organization counts days in `timezone`. Returns its answers.
async fn made(dir: &Path, timezone: Timezone) -> (OrganizationId, ProjectId, String) {
    let engine = Engine::open(config(dir)).unwrap();
    let new = NewOrganization { timezone: Some(timezone), ..NewOrganization::default() };
    let initial = engine.registry().initialize_as(new, engine.clock().now()).unwrap();
    send(&engine, initial.project_id).await;
    let answers = answers(&engine, initial.project_id).await;
    engine.close().await;
    (initial.organization_id, initial.project_id, answers)
}

#[tokio::test]
async fn a_reindex_that_fails_anywhere_is_finished_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let (organization, project, old) = made(&before, Timezone::UTC).await;
    let (_, _, new) = made(&after, auckland()).await;
    assert_ne!(old, new);
    let (mut failed, mut interrupted) = (0, 0);
    // Most operations on the whole directory belong to opening and sealing.
    for (area, step) in [("archive", 13), ("", 229)] {
        // A failed write of a log ends the process, so the steps avoid those.
        for at in (1..).step_by(step) {
            let data = dir.path().join("data");
            let _ = fs::remove_dir_all(&data);
            copy(&before, &data);
            let errno = if at % 2 == 0 { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&data.join(area), Plan { at, errno, ..Plan::default() });
            let first = reindex(config(&data), organization, auckland(), Instant(BASE_MS).into()).await;
            let is_over = switch.failed().is_empty();
            switch.clear();
            if first.is_err() {
                failed += 1;
                // Either nothing has changed, or nothing opens it.
                match Engine::open(config(&data)) {
                    Ok(engine) => {
                        let found = answers(&engine, project).await;
                        engine.close().await;
                        assert!(found == old || found == new, "{area} {at}: {found}");
                    }
                    Err(error) => {
                        interrupted += 1;
                        assert!(error.to_string().contains("headcount reindex"), "{area} {at}: {error}");
                    }
                }
                let _done: Reindexed = reindex(config(&data), organization, auckland(), Instant(BASE_MS).into()).await.unwrap();
            }
            let engine = Engine::open(config(&data)).unwrap();
            assert_eq!(answers(&engine, project).await, new, "{area} {at}");
            assert_eq!(engine.registry().organization(organization).unwrap().timezone, auckland());
            engine.close().await;
            if is_over {
                break;
            }
        }
    }
    assert!(failed >= 6 && interrupted >= 3, "{failed} failed, {interrupted} were interrupted");
}
