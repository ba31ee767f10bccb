use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::clock::FixedClock;
use headcount_control::ProjectPatch;
use headcount_domain::aggregate::{Aggregate, Grouping};
use headcount_domain::figures::{ComparedWindows, GoalFigures, GoalsQuestion, GoalsReport, WindowGoals};
use headcount_domain::filter::{PeopleCondition, Within};
use headcount_domain::intake::fields::{BuiltIn, Field, Scalar};
use headcount_domain::queries::{UniqueUsers, UniqueUsersQuery};
use headcount_domain::{Day, Depends, Instant, Predicate, ProjectId, Timezone, Window};

use super::error::ScanError;
use super::events::{IDS_A_QUESTION, Scan};
use super::kept::KeptQuestion;
use super::kept_figures::KeptFigures;
use super::page::{PageOrder, PageQuestion};
use super::shared::MAX_SCANS;
use super::unique_users::unique_users;
use super::views::{ViewRoom, Views};
use super::visits::goals;
use crate::engine::{Engine, EngineConfig};
use crate::ingest::Field::Url;
use crate::ingest::NewEvent;
use crate::shard::AskError;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const DAY_MS: i64 = 86_400_000;
const BATCHES: usize = 12;
const BATCH: usize = 100;

fn config(dir: &Path, checkpoint_events: u64) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.min_free_bytes = 0;
    config.log.segment_bytes = 1 << 20;
    config.checkpoints.events = checkpoint_events;
    config
}

fn open(dir: &Path, checkpoint_events: u64) -> (Engine, ProjectId) {
    initialized(config(dir, checkpoint_events))
}

fn initialized(config: EngineConfig) -> (Engine, ProjectId) {
    let engine = Engine::open(config).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    (engine, project)
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-03-08").unwrap() }
}

fn everything() -> Predicate {
    Predicate::new(Some("order"), Vec::new()).unwrap()
}

/// Some sign in late, and every fourth event was sent before; then on another day, which must not
/// count.
async fn send(engine: &Engine, project: ProjectId, batch: usize) {
    let event = |number: usize| {
        let original = if number % 4 == 3 { number / 2 } else { number };
        let day = if number == original { number % 7 } else { (number + 3) % 7 };
        let event = NewEvent::new("order").at_ms(BASE_MS + i64::try_from(day).unwrap() * DAY_MS);
        let event = event.anonymous(format!("a{}", original % 300)).external_id(format!("o{original}"));
        if number > 500 && number.is_multiple_of(5) { event.user(format!("u{}", original % 120)) } else { event }
    };
    let events: Vec<_> = (batch * BATCH..(batch + 1) * BATCH).map(event).collect();
    assert!(engine.track_batch(project, &events).await.unwrap().errors.is_empty());
}

/// Scans with sorts of `sort_bytes`. Up to `room` bytes of users are in memory.
async fn scan(engine: &Engine, project: ProjectId, sort_bytes: usize, room: usize) -> UniqueUsers {
    scan_window(engine, project, window(), sort_bytes, room).await
}

async fn scan_window(engine: &Engine, project: ProjectId, window: Window, sort_bytes: usize, room: usize) -> UniqueUsers {
    let question = Arc::new(KeptQuestion::UniqueUsers { window, predicate: everything() });
    let counted = move |scan: &Scan<'_>, kept: &mut KeptFigures, room: &mut ViewRoom<'_>| {
        unique_users(scan, window, &everything(), (kept, room), sort_bytes).unwrap()
    };
    with_scan(engine, project, (question, room), counted).await
}

/// Runs a scan whose figures may take `room` bytes.
async fn with_scan<R: Send + 'static>(
    engine: &Engine,
    project: ProjectId,
    (question, room): (Arc<KeptQuestion>, usize),
    answer: impl FnOnce(&Scan<'_>, &mut KeptFigures, &mut ViewRoom<'_>) -> R + Send + 'static,
) -> R {
    let floor = engine.known_floor(project);
    let until = engine.last(project).await.unwrap();
    let known = engine.scans.known_ids(project).await.unwrap();
    let scans = engine.scans.clone();
    let scan = move || {
        let scan =
            Scan { scans: &scans, project, until, known, floor, timezone: Timezone::UTC, cancelled: &AtomicBool::new(false) };
        let views = Views::new(room);
        let view = views.open(project, &question);
        answer(&scan, &mut KeptFigures::None, &mut ViewRoom::new(&views, view))
    };
    tokio::task::spawn_blocking(scan).await.unwrap()
}

/// Counts `count` equal goals, as [`scan`] counts users.
async fn scan_goals(engine: &Engine, project: ProjectId, count: usize, sort_bytes: usize, room: usize) -> GoalsReport {
    let windows = ComparedWindows { window: window(), previous: Some(window()) };
    let question = GoalsQuestion { windows, predicate: Predicate::default(), goals: vec![everything(); count] };
    let asked = question.clone();
    let counted = move |scan: &Scan<'_>, kept: &mut KeptFigures, room: &mut ViewRoom<'_>| {
        goals(scan, &asked, (kept, room), sort_bytes).unwrap()
    };
    with_scan(engine, project, (Arc::new(KeptQuestion::Goals(question)), room), counted).await
}

/// The goals have marks in several blocks, and events before fit none of them.
#[tokio::test]
async fn goals_have_the_users_of_their_events() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), u64::MAX);
    let visits = (0..300).map(|number| NewEvent::new("visit").at_ms(BASE_MS).anonymous(format!("a{number}")));
    assert!(engine.track_batch(project, &visits.collect::<Vec<_>>()).await.unwrap().errors.is_empty());
    for batch in 0..BATCHES {
        send(&engine, project, batch).await;
        if batch == BATCHES / 2 {
            engine.seal_archive().await.unwrap();
        }
        let users = engine.ask(project, UniqueUsersQuery { window: window() }).await.unwrap().total;
        let converters = engine.scans.unique_users(project, window(), everything()).await.unwrap().total;
        assert!(batch > 1 || converters < users);
        let (events, _) = engine.scans.count_events(project, window(), everything()).await.unwrap();
        let figures = GoalFigures { conversions: events, converters, ..GoalFigures::default() };
        for (count, sort_bytes, room) in [(1, 4 << 20, 4 << 20), (90, 4 << 20, 4 << 20), (90, 200, 0), (90, 4 << 20, 300_000)] {
            let expected = WindowGoals { unique_users: users, goals: vec![figures; count] };
            let found = scan_goals(&engine, project, count, sort_bytes, room).await;
            assert_eq!((&found.current, found.previous.as_ref()), (&expected, Some(&expected)), "batch {batch}, {count} goals");
        }
    }
    engine.close().await;
}

/// Who searched so often. Events of several ids belong to one user, and their links come later.
#[tokio::test]
async fn conditions_count_the_events_of_all_ids_of_a_user() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), u64::MAX);
    let devices = ["a", "b", "c", "d"];
    for (sent, device) in devices.into_iter().enumerate() {
        let search = NewEvent::new("search").at_ms(BASE_MS).anonymous(device);
        let others = (0..50).map(|number| NewEvent::new("search").at_ms(BASE_MS).anonymous(format!("{device}{number}")));
        let events: Vec<_> = [search].into_iter().chain(others).collect();
        assert!(engine.track_batch(project, &events).await.unwrap().errors.is_empty());
        let links = devices[..=sent].iter().map(|device| NewEvent::new("login").at_ms(BASE_MS).anonymous(*device).user("ada"));
        assert!(engine.track_batch(project, &links.collect::<Vec<_>>()).await.unwrap().errors.is_empty());
        if sent == 2 {
            engine.seal_archive().await.unwrap();
        }
        for at_least in 1..=4_u32 {
            let did = Predicate::new(Some("search"), Vec::new()).unwrap();
            let others = 50 * (sent as u64 + 1);
            let chosen = if at_least == 1 { others } else { 0 } + u64::from(at_least as usize <= sent + 1);
            for (is_negated, sort_bytes, room) in
                [(false, 200, 0), (false, 4 << 20, 4 << 20), (true, 200, 0), (true, 200, 4 << 20)]
            {
                let expected = if is_negated { others + 1 - chosen } else { chosen };
                let condition = PeopleCondition { predicate: did.clone(), is_negated, at_least, within: Within::Ever };
                let predicate = Predicate::default().with_people(vec![condition]).unwrap();
                let question = Arc::new(KeptQuestion::UniqueUsers { window: window(), predicate: predicate.clone() });
                let counted = move |scan: &Scan<'_>, kept: &mut KeptFigures, room: &mut ViewRoom<'_>| {
                    unique_users(scan, window(), &predicate, (kept, room), sort_bytes).unwrap().total
                };
                let found = with_scan(&engine, project, (question, room), counted).await;
                assert_eq!(found, expected, "{at_least} of {} events, negated: {is_negated}", sent + 1);
            }
        }
    }
    engine.close().await;
}

#[tokio::test]
async fn a_scan_counts_what_the_rollups_count() {
    for checkpoint_events in [u64::MAX, 250] {
        let dir = tempfile::tempdir().unwrap();
        let (engine, project) = open(dir.path(), checkpoint_events);
        for batch in 0..BATCHES {
            send(&engine, project, batch).await;
            // A checkpoint is due every second.
            if batch % 4 == 2 && checkpoint_events < u64::MAX {
                tokio::time::sleep(Duration::from_millis(1_200)).await;
            }
            let expected = engine.ask(project, UniqueUsersQuery { window: window() }).await.unwrap();
            assert!(expected.total > 20);
            // In memory, on disk, and on disk from the middle on.
            for (sort_bytes, room) in [(4 << 20, 4 << 20), (200, 0), (4 << 20, 0), (200, 280_000)] {
                assert_eq!(scan(&engine, project, sort_bytes, room).await, expected, "batch {batch}, {sort_bytes} bytes");
            }
            let public = engine.scans.unique_users(project, window(), everything()).await.unwrap();
            assert_eq!(public, expected);
        }
        engine.close().await;
    }
}

/// An engine whose clock stands 20 days after the first event.
fn later(dir: &Path) -> (Engine, ProjectId) {
    let mut config = config(dir, u64::MAX);
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 20 * DAY_MS)));
    initialized(config)
}

/// Raises the floor of a project.
async fn retain_from(engine: &Engine, project: ProjectId, floor: Day) {
    let days = u32::try_from(Day::parse("2024-03-21").unwrap().since(floor) + 1).unwrap();
    let organization = engine.registry().policy(project).unwrap().policy.organization;
    let patch = ProjectPatch { retention_days: Some(Some(days)), ..ProjectPatch::default() };
    engine.registry().update_project(organization, project, patch, engine.clock().now()).unwrap();
    assert_eq!(engine.ingest.apply_retention(project).await.unwrap(), Some(floor));
}

/// Links of ids whose first events lie below the floor are asked of the shard, also where the ids
/// are sorted on disk.
#[tokio::test]
async fn a_scan_above_a_floor_counts_what_the_rollups_count() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = later(dir.path());
    for batch in 0..BATCHES / 2 {
        send(&engine, project, batch).await;
    }
    let device = async |user: Option<&str>, day: i64| {
        let event = NewEvent::new("order").at_ms(BASE_MS + day * DAY_MS).anonymous("kiosk");
        let event = user.map_or(event.clone(), |user| event.user(user));
        assert!(engine.track_batch(project, &[event]).await.unwrap().errors.is_empty());
    };
    device(Some("first"), 0).await;
    // The days from the sixth to the eighth, of which the last has no event.
    let floor = Day::parse("2024-03-05").unwrap();
    retain_from(&engine, project, floor).await;
    let kept = Window { start: floor, ..window() };
    for batch in BATCHES / 2..BATCHES {
        send(&engine, project, batch).await;
        // The scan meets the device's second link, and not its first.
        device(Some(&format!("other{batch}")), 5).await;
        device(None, 6).await;
        let expected = engine.ask(project, UniqueUsersQuery { window: kept }).await.unwrap();
        let public = engine.scans.unique_users(project, kept, everything()).await.unwrap();
        assert_eq!(public, expected, "batch {batch}, advanced");
        assert!(expected.total > 20);
        for (sort_bytes, room) in [(4 << 20, 4 << 20), (200, 0), (4 << 20, 0), (200, 280_000)] {
            let found = scan_window(&engine, project, kept, sort_bytes, room).await;
            assert_eq!(found, expected, "batch {batch}, {sort_bytes} bytes");
        }
    }
    engine.close().await;
}

#[tokio::test]
async fn a_scan_ends_when_nobody_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), u64::MAX);
    for batch in 0..BATCHES {
        send(&engine, project, batch).await;
    }
    let until = engine.last(project).await.unwrap();
    let known = engine.scans.known_ids(project).await.unwrap();
    let scanned = engine.scans.clone();
    let scan = move || {
        let cancelled = AtomicBool::new(false);
        let scan = Scan { scans: &scanned, project, until, known, floor: None, timezone: Timezone::UTC, cancelled: &cancelled };
        let mut seen = 0;
        let end = scan.visit_events(&mut |_, _| {
            seen += 1;
            cancelled.store(true, Ordering::Release);
            Ok(())
        });
        (end, seen)
    };
    let (end, seen) = tokio::task::spawn_blocking(scan).await.unwrap();
    assert!(matches!(end, Err(ScanError::Cancelled)), "{end:?}");
    assert!((1..=IDS_A_QUESTION + BATCH).contains(&seen), "{seen} of {}", BATCHES * BATCH);
    // Whoever goes away takes their scan with them, and it gives its place back.
    for _ in 0..2 * MAX_SCANS {
        let scan = engine.scans.unique_users(project, window(), everything());
        let _ = tokio::time::timeout(Duration::from_millis(1), scan).await;
    }
    let began = Stopwatch::now();
    while engine.scans.turns.free() < MAX_SCANS {
        assert!(began.elapsed() < Duration::from_secs(60), "a scan goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.close().await;
}

#[tokio::test]
async fn scans_that_outlive_their_engine_have_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), u64::MAX);
    send(&engine, project, 0).await;
    let scans = engine.scans.clone();
    drop(engine);
    assert!(scans.check_goes_on(&AtomicBool::new(false)).is_err());
    assert!(matches!(scans.unique_users(project, window(), everything()).await, Err(AskError::NoAnswer)));
    // Its directory is free.
    Engine::open(config(dir.path(), u64::MAX)).unwrap().close().await;
}

/// The groups of the events of a day by the page on which their session began.
async fn entries(engine: &Engine, project: ProjectId, day: Day) -> Aggregate {
    let by = Grouping::new(Field::BuiltIn(BuiltIn::EntryUrl), None).unwrap();
    engine.scans.aggregate(project, Window { start: day, end: day }, Predicate::default(), by, 10).await.unwrap()
}

/// A session goes on for more than a day, so that the floor rises above its entry and none of the
/// days that it leaves is that of the question.
#[tokio::test]
async fn a_floor_that_rises_ends_what_was_kept_of_later_days() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = later(dir.path());
    retain_from(&engine, project, Day::parse("2024-02-20").unwrap()).await;
    let event = |number: i64| {
        let event = NewEvent::new("pageview").at_ms(BASE_MS + number * 25 * 60_000).user("u");
        event.with(Url, format!("https://a.example/{number}"))
    };
    // Until 2024-03-03.
    let events: Vec<NewEvent> = (0..100).map(event).collect();
    assert!(engine.track_batch(project, &events).await.unwrap().errors.is_empty());
    let day = Day::parse("2024-03-03").unwrap();
    let depends = Depends::on_sessions(Window { start: day, end: day });
    let (kept, version) = (entries(&engine, project, day).await, engine.version(project, &depends).await.unwrap());
    let first = kept.rows[0].value.clone();
    assert_eq!((kept.rows.len(), first), (1, Scalar::Text("https://a.example/0".into())));
    retain_from(&engine, project, Day::parse("2024-03-02").unwrap()).await;
    assert_ne!(engine.version(project, &depends).await.unwrap(), version);
    let now = entries(&engine, project, day).await;
    assert_eq!((now.rows.len(), now.rows[0].value.clone(), now.rows[0].count), (1, Scalar::Null, kept.rows[0].count));
    engine.close().await;
}

/// The window of a question was checked against a lower floor.
#[tokio::test]
async fn a_question_about_days_below_the_floor_has_no_partial_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = later(dir.path());
    send(&engine, project, 0).await;
    let asked = async || engine.scans.unique_users(project, window(), everything()).await;
    assert!(asked().await.unwrap().total > 20);
    let floor = window().start.plus(1);
    retain_from(&engine, project, floor).await;
    // The answer of before is not given either.
    assert!(matches!(asked().await, Err(AskError::BelowFloor(day)) if day == floor));
    let page = PageQuestion {
        predicate: everything(),
        window: Some(window()),
        order: PageOrder::LatestFirst { before: None },
        limit: 5,
        until: None,
    };
    assert!(matches!(engine.scans.events_page(project, page).await, Err(AskError::BelowFloor(_))));
    assert!(matches!(engine.scans.metadata_fields(project, window(), 5).await, Err(AskError::BelowFloor(_))));
    engine.close().await;
}

/// Some events may have been gone before the scan read them.
#[tokio::test]
async fn a_scan_begins_again_if_the_floor_rises_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = later(dir.path());
    send(&engine, project, 0).await;
    let scans = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&scans);
    let floor = window().start.plus(1);
    let other = engine.clone();
    let seen = engine.scans.scan(project, move |scan, _| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::runtime::Handle::current().block_on(retain_from(&other, scan.project, floor));
        }
        Ok(scan.floor)
    });
    assert_eq!(seen.await.unwrap(), Some(floor));
    assert_eq!(scans.load(Ordering::SeqCst), 2);
    engine.close().await;
}
