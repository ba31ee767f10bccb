//! The effects of one project's costly, failing or numerous events and questions on its neighbours.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headcount_actors::domain::fault::Fault;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::event::Event;
use headcount_actors::domain::money::Amount;
use headcount_actors::domain::queries::{Query, Reader, RevenueMetricsQuery};
use headcount_actors::domain::records::Source;
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{NewEvent, Origin, Refusal};
use headcount_actors::{AskError, CheckpointPolicy, Engine, EngineConfig, TrackError};
use headcount_common::partition_of;
use headcount_control::NewProject;
use serde::{Deserialize, Serialize};

use support::open;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config
}

/// Waits until a condition holds.
async fn until(is_so: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

type Probe = Option<Arc<dyn Fn(&Event) + Send + Sync>>;

/// Makes events of this name take this long to fold; others take no time.
fn slow(name: &'static str, each: Duration) -> Probe {
    Some(Arc::new(move |event: &Event| {
        if &*event.name == name {
            std::thread::sleep(each);
        }
    }))
}

/// Another project of the same organization, in the same partition as `beside` or in another one.
fn project_beside(engine: &Engine, beside: ProjectId, in_same_partition: bool) -> ProjectId {
    let organization = engine.registry().policy(beside).unwrap().policy.organization;
    for number in 0..5_000 {
        let new = NewProject { name: format!("p{number}"), ..NewProject::default() };
        let made = engine.registry().create_project(organization, new, engine.clock().now()).unwrap();
        if (partition_of(made.id) == partition_of(beside)) == in_same_partition {
            return made.id;
        }
    }
    panic!("no project of 5,000 is in the right partition");
}

fn order(name: &str, number: usize) -> NewEvent {
    let event = NewEvent::new(name).user(format!("u{}", number % 10)).external_id(format!("{name}-{number}"));
    event.at_ms(BASE_MS + i64::try_from(number).unwrap()).value("1").unwrap()
}

fn orders(name: &str, count: usize) -> Vec<NewEvent> {
    (0..count).map(|number| order(name, number)).collect()
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-03-04").unwrap() }
}

async fn count_of_orders(engine: &Engine, project: ProjectId) -> Result<i64, AskError> {
    let revenue = engine.ask(project, RevenueMetricsQuery { window: window() }).await?;
    assert_eq!(revenue.total_revenue, Amount::parse(&revenue.orders.to_string()).unwrap());
    Ok(revenue.orders)
}

#[tokio::test]
async fn costly_events_of_one_project_do_not_delay_another_of_the_same_partition() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.probe = slow("slow", Duration::from_millis(5));
    // Checkpoints are taken while events of several projects are in flight.
    config.checkpoints = CheckpointPolicy { events: 50, interval: Duration::from_secs(1) };
    let (engine, costly) = open(config.clone());
    let neighbour = project_beside(&engine, costly, true);
    count_of_orders(&engine, neighbour).await.unwrap();

    let (busy, batch) = (engine.clone(), orders("slow", 600));
    let sender = tokio::spawn(async move { busy.track_batch(costly, &batch).await });
    until(async || engine.vitals().log_position > 0).await;
    for number in 0..20 {
        engine.track(neighbour, &order("quick", number)).await.unwrap();
    }
    assert!(!sender.is_finished(), "600 events of 5 ms each come before 20 quick ones of a neighbour");
    assert_eq!(count_of_orders(&engine, neighbour).await.unwrap(), 20);
    assert_eq!(sender.await.unwrap().unwrap().recorded, 600);
    // The same result, whatever the order of applying, and after a start.
    assert_eq!(count_of_orders(&engine, costly).await.unwrap(), 600);
    assert_eq!(engine.track_batch(costly, &orders("slow", 3)).await.unwrap().duplicates, 3);
    engine.close().await;
    drop(engine);
    let (engine, _) = open(config);
    assert_eq!(count_of_orders(&engine, costly).await.unwrap(), 600);
    assert_eq!(count_of_orders(&engine, neighbour).await.unwrap(), 20);
    engine.close().await;
}

#[tokio::test]
async fn a_kill_while_projects_overtake_each_other_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.probe = slow("slow", Duration::from_millis(2));
    config.checkpoints = CheckpointPolicy { events: 20, interval: Duration::from_secs(1) };
    let (engine, costly) = open(config.clone());
    let neighbour = project_beside(&engine, costly, true);
    let mut senders = Vec::new();
    for part in 0..20 {
        let (engine, batch) = (engine.clone(), orders("slow", 20 * (part + 1)).split_off(20 * part));
        senders.push(tokio::spawn(async move { engine.track_batch(costly, &batch).await.map(drop) }));
    }
    for number in 0..200 {
        engine.track(neighbour, &order("quick", number)).await.unwrap();
    }
    // The copy is the same as after a kill at this moment, except for unsynced data.
    let copy = tempfile::tempdir().unwrap();
    copy_all(dir.path(), copy.path());
    let mut killed = config.clone();
    killed.data_dir = copy.path().to_owned();
    killed.probe = None;
    let (after, _) = open(killed);
    let logged = after.vitals().log_position;
    let counted = count_of_orders(&after, costly).await.unwrap() + count_of_orders(&after, neighbour).await.unwrap();
    assert_eq!(counted, i64::try_from(logged).unwrap(), "each event of the log counts once");
    assert_eq!(count_of_orders(&after, neighbour).await.unwrap(), 200);
    after.close().await;
    for sender in senders {
        sender.await.unwrap().unwrap();
    }
    assert_eq!(count_of_orders(&engine, costly).await.unwrap(), 400);
    engine.close().await;
}

/// Copies a directory that is being written: the log first, as its end may move on.
fn copy_all(from: &Path, to: &Path) {
    let mut entries: Vec<_> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()).collect();
    // The log must have all events that the store reflects.
    entries.sort_by_key(|entry| entry.file_name() == "log");
    for entry in entries {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_all(&entry.path(), &target);
        } else if entry.path().exists() {
            // A merge may remove a run between the listing and the copy.
            let _ = std::fs::copy(entry.path(), target);
        }
    }
}

#[tokio::test]
async fn a_partition_that_is_rebuilt_takes_nothing_and_its_neighbours_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let mut faulty = config(dir.path());
    let (is_replaying, panics) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (replaying, panicked) = (Arc::clone(&is_replaying), Arc::clone(&panics));
    faulty.probe = Some(Arc::new(move |event: &Event| match &*event.name {
        "old" if replaying.load(Ordering::SeqCst) => std::thread::sleep(Duration::from_millis(5)),
        "poison" => {
            replaying.store(true, Ordering::SeqCst);
            assert!(panicked.fetch_add(1, Ordering::SeqCst) > 0, "planted");
        }
        _ => {}
    }));
    let (engine, broken) = open(faulty);
    let neighbour = project_beside(&engine, broken, false);
    assert_eq!(engine.track_batch(broken, &orders("old", 500)).await.unwrap().recorded, 500);
    let before = engine.version(broken, &Depends::Everything).await.unwrap();
    let (sending, poison) = (engine.clone(), order("poison", 0));
    let sender = tokio::spawn(async move { sending.track(broken, &poison).await });
    until(async || panics.load(Ordering::SeqCst) > 0).await;
    until(async || engine.ready().await.is_err()).await;
    let logged = engine.vitals().log_position;
    let began = Instant::now();
    for number in 0..3 {
        let refused = engine.track(broken, &order("lost", number)).await.unwrap_err();
        assert!(matches!(refused, Refusal::Track(TrackError::Unavailable(_))), "{refused}");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "who is refused hears it at once");
    assert_eq!(engine.vitals().log_position, logged, "what is refused is not logged");
    assert!(matches!(count_of_orders(&engine, broken).await, Err(AskError::Lost(_))));
    assert!(matches!(engine.version(broken, &Depends::Everything).await, Err(AskError::Lost(_))), "the tag of an earlier state");
    assert!(engine.ready().await.unwrap_err().contains("rebuilt"));
    for number in 0..20 {
        engine.track(neighbour, &order("quick", number)).await.unwrap();
    }
    assert_eq!(count_of_orders(&engine, neighbour).await.unwrap(), 20);
    assert!(!sender.is_finished(), "the neighbours did not wait for the rebuild");
    // Its sender is answered then, and nothing counts twice.
    sender.await.unwrap().unwrap();
    assert_eq!(count_of_orders(&engine, broken).await.unwrap(), 501);
    assert!(engine.version(broken, &Depends::Everything).await.unwrap().1 > before.1);
    engine.ready().await.unwrap();
    assert_eq!(engine.track(broken, &order("lost", 0)).await.unwrap().position, Some(logged + 21));
    engine.close().await;
}

#[tokio::test]
async fn a_permit_lives_as_long_as_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.probe = slow("slow", Duration::from_millis(60));
    let (engine, project) = open(config);
    let batch = orders("slow", 50);
    let waiter = tokio::time::timeout(Duration::from_secs(1), engine.track_batch(project, &batch));
    waiter.await.expect_err("50 events take three seconds");
    assert!(engine.vitals().admitted_bytes > 0, "the events are still under way");
    assert_eq!(count_when_idle(&engine, project).await, 50);
    assert_eq!(engine.vitals().admitted_bytes, 0);
    engine.close().await;
}

/// The number of counted orders once nothing is in flight any more.
async fn count_when_idle(engine: &Engine, project: ProjectId) -> i64 {
    while engine.vitals().admitted_bytes > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    count_of_orders(engine, project).await.unwrap()
}

#[tokio::test]
async fn one_project_can_not_hold_all_of_the_admission() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, greedy) = open(config(dir.path()));
    let neighbour = project_beside(&engine, greedy, true);
    // Bodies that are held back: their bytes are taken, but they never arrive.
    let held: Vec<_> = std::iter::from_fn(|| engine.admission.admit(greedy, None, 64 << 10).ok()).collect();
    let (used, limit) = (engine.vitals().admitted_bytes, engine.vitals().admission_limit_bytes);
    assert!(used <= limit / 4 && used > limit / 5, "{used} of {limit}");
    assert!(engine.track(greedy, &order("more", 0)).await.is_err());
    engine.track(neighbour, &order("quick", 0)).await.unwrap();
    drop(held);
    engine.track(greedy, &order("more", 0)).await.unwrap();
    engine.close().await;
}

/// Takes ten milliseconds of its shard.
#[derive(Clone, Serialize, Deserialize)]
struct SlowQuery {
    #[serde(skip)]
    answered: Arc<AtomicUsize>,
}

impl Query for SlowQuery {
    type Partial = ();

    fn answer<S: Source>(&self, _: &mut Reader<'_, S>) -> Result<(), Fault> {
        std::thread::sleep(Duration::from_millis(10));
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct PanickingQuery;

impl Query for PanickingQuery {
    type Partial = ();

    fn answer<S: Source>(&self, _: &mut Reader<'_, S>) -> Result<(), Fault> {
        panic!("planted")
    }
}

#[tokio::test]
async fn questions_of_one_organization_do_not_delay_another_and_unwanted_ones_are_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, curious) = open(config(dir.path()));
    let other = engine.registry().create_organization("other", engine.clock().now()).unwrap().project_id;
    let answered = Arc::new(AtomicUsize::new(0));
    let mut asking = Vec::new();
    for _ in 0..200 {
        let (engine, answered) = (engine.clone(), Arc::clone(&answered));
        asking.push(tokio::spawn(async move { engine.ask(curious, SlowQuery { answered }).await }));
    }
    while answered.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.track(other, &order("quick", 0)).await.unwrap();
    assert_eq!(count_of_orders(&engine, other).await.unwrap(), 1);
    let before = answered.load(Ordering::SeqCst);
    assert!(before < 150, "{before} costly questions were answered before another organization's");
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    for question in asking {
        let _ = question.await;
    }
    assert_eq!(count_of_orders(&engine, curious).await.unwrap(), 0);
    assert!(answered.load(Ordering::SeqCst) < 200, "nobody waits for the others any more");
    engine.close().await;
}

#[tokio::test]
async fn a_question_that_panics_costs_one_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(config(dir.path()));
    engine.track_batch(project, &orders("order", 30)).await.unwrap();
    engine.ask(project, PanickingQuery).await.unwrap_err();
    let counted = loop {
        match count_of_orders(&engine, project).await {
            Ok(counted) => break counted,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert_eq!(counted, 30);
    engine.track(project, &order("order", 30)).await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_sender_waits_as_long_as_the_configuration_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut impatient = config(dir.path());
    impatient.probe = slow("slow", Duration::from_secs(1));
    impatient.apply_timeout = Duration::from_millis(50);
    let (engine, project) = open(impatient);
    let outcome = engine.track(project, &order("slow", 0)).await.unwrap_err();
    assert!(matches!(outcome, Refusal::Track(TrackError::OutcomeUnknown)), "{outcome}");
    assert_eq!(count_of_orders(&engine, project).await.unwrap(), 1, "it was recorded");
    engine.close().await;
}

#[tokio::test]
async fn closing_is_bounded_and_leaves_the_rest_to_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut costly = config(dir.path());
    costly.probe = slow("slow", Duration::from_millis(50));
    let (engine, project) = open(costly);
    let (sending, batch) = (engine.clone(), orders("slow", 1_000));
    let sender = tokio::spawn(async move { sending.track_batch(project, &batch).await });
    while engine.vitals().log_position == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let began = Instant::now();
    engine.close().await;
    assert!(began.elapsed() < Duration::from_secs(15), "50 s of work kept it from closing for {:?}", began.elapsed());
    let outcome = sender.await.unwrap().unwrap_err();
    assert!(matches!(outcome, Refusal::Track(TrackError::OutcomeUnknown)), "{outcome}");
    assert!(engine.track(project, &order("late", 0)).await.is_err());
    drop(engine);
    let (engine, project) = open(config(dir.path()));
    assert_eq!(count_of_orders(&engine, project).await.unwrap(), 1_000);
    engine.close().await;
}

/// The round of checkpoints that sealing requests begins before these events are applied.
#[tokio::test]
async fn sealing_waits_for_what_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    let mut costly = config(dir.path());
    costly.probe = slow("slow", Duration::from_millis(50));
    let (engine, project) = open(costly);
    engine.track(project, &order("order", 0)).await.unwrap();
    let (sending, batch) = (engine.clone(), orders("slow", 40));
    let sender = tokio::spawn(async move { sending.track_batch(project, &batch).await });
    until(async || engine.vitals().log_position > 40).await;
    let (began, last) = (Instant::now(), engine.vitals().log_position);
    let sealed = engine.seal_archive().await.unwrap();
    assert!(sealed.sealed_until >= last, "{sealed:?}, of {last}");
    assert!(began.elapsed() < Duration::from_secs(30), "it waited for the next ordinary round: {:?}", began.elapsed());
    sender.await.unwrap().unwrap();
    engine.close().await;
}

#[tokio::test]
async fn an_import_waits_for_its_own_events() {
    let dir = tempfile::tempdir().unwrap();
    let mut costly = config(dir.path());
    costly.probe = slow("slow", Duration::from_millis(50));
    let (engine, project) = open(costly);
    let policy = Arc::clone(&engine.registry().policy(project).unwrap());
    let json = br#"{"name":"slow","user_id":"u"}"#;
    let prepared: Vec<_> = (0..220).map(|_| engine.ingest.prepare(&policy.policy, json, &Origin::SERVER)).collect();
    let permit = engine.admission.admit(project, None, 1_000).unwrap();
    let began = Instant::now();
    let receipt = engine.ingest.record_imported(project, prepared, None, permit).unwrap().await.unwrap();
    assert_eq!(receipt.batch.recorded, 220);
    assert!(began.elapsed() > Duration::from_secs(10), "others hear after 10 s that the outcome is unknown");
    engine.close().await;
}
