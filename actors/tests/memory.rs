//! Records beyond their share of the memory are read back from the store on demand: answers stay
//! the same, and memory stays bounded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::Path;
use std::time::{Duration, Instant};

use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::queries::{CohortsQuery, EntityLevel, IdentitySelector, Profile, profile};
use headcount_actors::domain::time::Window;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const PEOPLE: usize = 6_000;
const RECORDS: usize = 1 << 20;

fn open(dir: &Path, records: Option<usize>) -> Engine {
    let mut config = EngineConfig::new(dir);
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config.records = records;
    Engine::open(config).unwrap()
}

/// Every user comes twice, in the same order, so that no user is still in memory the second time.
fn batches() -> Vec<Vec<NewEvent>> {
    let event = |number: usize| {
        let person = number % PEOPLE;
        let event = NewEvent::new("order").at_ms(BASE_MS + i64::try_from(number).unwrap() * 60_000).value("1.5").unwrap();
        let event = event.with(Field::Url, format!("https://s.example/{}?utm_source=s{}", person % 50, person % 9));
        let event = if person.is_multiple_of(3) { event.with(Field::GroupId, format!("acct_{}", person % 40)) } else { event };
        match number < PEOPLE {
            true => event.anonymous(format!("a{person}")),
            // The second time they sign in: the link looks up the former history.
            false => event.anonymous(format!("a{person}")).user(format!("u{person}")),
        }
    };
    let numbers: Vec<usize> = (0..2 * PEOPLE).collect();
    numbers.chunks(500).map(|chunk| chunk.iter().map(|number| event(*number)).collect()).collect()
}

async fn send(engine: &Engine, project: ProjectId) {
    for batch in batches() {
        let receipt = engine.track_batch(project, &batch).await.unwrap();
        assert_eq!(receipt.recorded, batch.len());
    }
}

async fn profiles(engine: &Engine, organization: OrganizationId, project: ProjectId) -> Vec<Option<Profile>> {
    let timezone = engine.registry().policy(project).unwrap().policy.timezone;
    let window = Window::resolve(Some("2024-03-01"), Some("2024-04-01"), timezone, engine.clock().now()).unwrap();
    let mut found = Vec::new();
    for person in (0..PEOPLE).step_by(7) {
        found.push(
            profile(&engine.organization(organization), &IdentitySelector::User(format!("u{person}")), window).await.unwrap(),
        );
    }
    found
}

/// Whether memory soon falls below `bytes`. Queries cause checks of the budget. During a checkpoint
/// nothing can be evicted.
async fn is_within(engine: &Engine, project: ProjectId, bytes: usize) -> bool {
    let began = Instant::now();
    let query = CohortsQuery { level: EntityLevel::Identity, limit: 1 };
    while engine.vitals().record_bytes >= bytes {
        if began.elapsed() > Duration::from_secs(30) {
            return false;
        }
        engine.ask(project, query).await.unwrap();
    }
    true
}

#[tokio::test]
async fn what_was_let_go_of_comes_back() {
    let (wide, narrow) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (wide, mut small) = (open(wide.path(), None), open(narrow.path(), Some(RECORDS)));
    let mut known = Vec::new();
    for engine in [&wide, &small] {
        let initial = engine.registry().initialize(engine.clock().now()).unwrap();
        send(engine, initial.project_id).await;
        known.push((initial.organization_id, initial.project_id));
    }
    let needed = wide.vitals().record_bytes;
    assert!(needed > 4 * RECORDS, "{needed} bytes are too few for this test");
    for restarted in [false, true] {
        if restarted {
            small.close().await;
            small = open(narrow.path(), Some(RECORDS));
        }
        let expected = profiles(&wide, known[0].0, known[0].1).await;
        let got = profiles(&small, known[1].0, known[1].1).await;
        for (expected, got) in expected.iter().zip(&got) {
            let (expected, got) = (expected.as_ref().unwrap(), got.as_ref().unwrap());
            assert_eq!(expected.events, 2);
            assert_eq!(Profile { identity_id: got.identity_id.clone(), ..expected.clone() }, *got);
        }
        for level in [EntityLevel::Identity, EntityLevel::Account] {
            let expected = wide.ask(known[0].1, CohortsQuery { level, limit: 24 }).await.unwrap();
            assert_eq!(expected, small.ask(known[1].1, CohortsQuery { level, limit: 24 }).await.unwrap());
        }
        assert!(
            is_within(&small, known[1].1, 2 * RECORDS).await,
            "{} bytes are held, not {RECORDS}",
            small.vitals().record_bytes
        );
    }
    wide.close().await;
    small.close().await;
}
