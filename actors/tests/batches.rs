//! Every cell is the same however events arrive: one by one, in batches, across stops and
//! checkpoints, or from the log alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::Path;

use std::sync::{Arc, Mutex};

use headcount_actors::domain::fault::Fault;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::limits::Limits;
use headcount_actors::domain::queries::{Query, Reader};
use headcount_actors::domain::records::Source;
use headcount_actors::domain::rollups::Rollups;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig};
use serde::{Deserialize, Serialize};

const DAY_MS: i64 = 86_400_000;
/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const EVENTS: usize = 240;

/// Pseudo-random numbers, the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Visits and orders of a few people, late and early, with links, companies, refunds and repeated
/// keys.
fn events() -> Vec<NewEvent> {
    let mut numbers = Numbers(7);
    let mut event = |number: usize| {
        // Two hours apart on average, often within a session, and a quarter of them late.
        let steady_ms = i64::try_from(number).unwrap() / 3 * DAY_MS / 4;
        let near_ms = i64::try_from(numbers.below(40) * 60_000).unwrap();
        let late_ms = if numbers.below(4) == 0 { i64::try_from(numbers.below(120)).unwrap() * DAY_MS / 24 } else { 0 };
        let at_ms = BASE_MS + steady_ms + near_ms - late_ms;
        let mut event = match numbers.below(10) {
            0..=6 => NewEvent::new("pageview"),
            7 => NewEvent::new("refund").value("-3.25").unwrap(),
            _ => NewEvent::new("order").value("19.99").unwrap(),
        };
        event = event.at_ms(at_ms);
        let (user, anonymous) = (format!("user {}", numbers.below(6)), format!("browser {}", numbers.below(9)));
        event = match numbers.below(8) {
            0 => event.user(user).anonymous(anonymous),
            1..=3 => event.user(user),
            _ => event.anonymous(anonymous),
        };
        event = match numbers.below(12) {
            0 => event.with(Field::GroupId, format!("acct_{}", numbers.below(3))),
            1 => event.with(Field::GroupId, "acme.com"),
            2 => event.with(Field::GroupId, "t1").with(Field::GroupType, "team"),
            3 => event.external_id(format!("key {}", numbers.below(12))),
            _ => event,
        };
        match numbers.below(4) {
            0 => event.with(Field::Url, format!("https://s.example/?utm_source=s{}", numbers.below(5))),
            1 => event.with(Field::Url, "https://s.example/"),
            _ => event,
        }
    };
    (0..EVENTS).map(&mut event).collect()
}

fn open(dir: &Path, checkpoint_events: u64) -> (Engine, ProjectId) {
    let mut config = EngineConfig::new(dir);
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config.checkpoints.events = checkpoint_events;
    let engine = Engine::open(config).unwrap();
    let organization = engine.registry().organizations()[0].id;
    let project = engine.registry().projects(organization).unwrap()[0].id;
    (engine, project)
}

/// The same organization, project and keys, and no events.
fn empty_copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            empty_copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Takes a copy of a project's rollups.
#[derive(Clone, Default, Serialize, Deserialize)]
struct RollupsQuery {
    #[serde(skip)]
    found: Arc<Mutex<Option<Rollups>>>,
}

impl Query for RollupsQuery {
    type Partial = ();

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<(), Fault> {
        *self.found.lock().unwrap() = Some(reader.project.rollups.clone());
        Ok(())
    }
}

async fn rollups(engine: &Engine, project: ProjectId) -> Rollups {
    let query = RollupsQuery::default();
    engine.ask(project, query.clone()).await.unwrap();
    query.found.lock().unwrap().take().unwrap()
}

/// The cells that don't depend on the time of receipt.
fn without_receipts(rollups: Rollups) -> Rollups {
    Rollups { receipts: Rollups::new(&Limits::default()).receipts, ..rollups }
}

/// The cells after all events came in batches of `sizes` repeatedly, with a stop after every `stop`
/// batches.
async fn in_batches(dir: &Path, events: &[NewEvent], sizes: &[usize], stop: usize, checkpoint_events: u64) -> Rollups {
    let (mut engine, mut project) = open(dir, checkpoint_events);
    let mut rest = events;
    for batch in 0.. {
        let (now, later) = rest.split_at(sizes[batch % sizes.len()].min(rest.len()));
        if now.is_empty() {
            break;
        }
        let receipt = engine.track_batch(project, now).await.unwrap();
        assert!(receipt.errors.is_empty(), "{:?}", receipt.errors);
        rest = later;
        if batch % stop == stop - 1 {
            engine.close().await;
            drop(engine);
            (engine, project) = open(dir, checkpoint_events);
        }
    }
    let rollups = rollups(&engine, project).await;
    engine.close().await;
    rollups
}

#[tokio::test]
async fn batching_stops_and_checkpoints_change_no_cell() {
    let dir = tempfile::tempdir().unwrap();
    let (fresh, singly) = (dir.path().join("fresh"), dir.path().join("singly"));
    let engine = Engine::open(EngineConfig::new(&fresh)).unwrap();
    engine.registry().initialize(engine.clock().now()).unwrap();
    engine.close().await;
    drop(engine);

    let events = events();
    empty_copy(&fresh, &singly);
    let (engine, project) = open(&singly, u64::MAX);
    for event in &events {
        engine.track(project, event).await.unwrap();
    }
    let expected = without_receipts(rollups(&engine, project).await);
    assert!(expected.traffic.len() > 5 && expected.revenue.len() > 5, "there is something to compare");
    engine.close().await;
    drop(engine);

    let table: [(&str, &[usize], usize, u64); 4] = [
        ("pairs, and a checkpoint every few events", &[2], usize::MAX, 5),
        ("unequal batches with stops", &[1, 17, 3, 40], 3, 1_000),
        ("stops and checkpoints", &[11], 4, 25),
        ("all at once", &[EVENTS], usize::MAX, 1_000),
    ];
    for (name, sizes, stop, checkpoint_events) in table {
        let copy = dir.path().join(name);
        empty_copy(&fresh, &copy);
        let got = in_batches(&copy, &events, sizes, stop, checkpoint_events).await;
        // The cells from the log alone are the same.
        std::fs::remove_dir_all(copy.join("store")).unwrap();
        let (engine, project) = open(&copy, 1_000);
        assert!(rollups(&engine, project).await == got, "{name}, rebuilt: the cells differ");
        assert!(without_receipts(got) == expected, "{name}: the cells differ");
        engine.close().await;
    }
}
