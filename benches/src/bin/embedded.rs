//! Benchmarks the throughput of the embedded engine: `track_batch`, durable and counted.
//!
//! Usage: `embedded [EVENTS] [BATCH] [IN_FLIGHT]`; by default 1,000,000 events in batches of 1,000,
//! 8 in flight.

#![allow(clippy::unwrap_used, reason = "a benchmark: a panic is a failure")]

use std::time::Instant;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::UniqueUsersQuery;
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig};

/// The allocator of the `headcount` binary.
#[global_allocator]
static ALLOCATOR: headcount_allocator::MiMalloc = headcount_allocator::MiMalloc;

const USERS: usize = 118_000;
const START_MS: i64 = 1_780_272_000_000;
const DAYS: i64 = 60;

fn event(number: usize, events: usize) -> NewEvent {
    let user = number * 7919 % USERS;
    let at_ms = START_MS + (number as i64) * DAYS * 86_400_000 / events as i64;
    let event = NewEvent::new("pageview")
        .user(format!("u{user}"))
        .anonymous(format!("a{user:016}"))
        .with(Field::Url, format!("https://app.example.com/docs/section-{}/page-{}", number % 20, number % 400))
        .at_ms(at_ms);
    let event = if user % 10 < 7 { event.with(Field::GroupId, format!("co{}", user % 5000)) } else { event };
    if number.is_multiple_of(50) { event.value("12.99").unwrap().external_id(format!("ord-{number}")) } else { event }
}

async fn send(engine: Engine, project: ProjectId, batches: std::sync::Arc<std::sync::Mutex<Vec<Vec<NewEvent>>>>) -> usize {
    let mut recorded = 0;
    loop {
        let Some(batch) = batches.lock().unwrap().pop() else { return recorded };
        recorded += engine.track_batch(project, &batch).await.unwrap().recorded;
    }
}

fn main() {
    headcount_allocator::configure();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let events = arguments.next().unwrap_or(1_000_000);
    let (batch, in_flight) = (arguments.next().unwrap_or(1_000), arguments.next().unwrap_or(8));
    let dir = std::env::temp_dir().join(format!("headcount-embedded-bench-{}", std::process::id()));
    let engine = Engine::open(EngineConfig::new(&dir)).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    // Reversed, since batches are popped from the end.
    let batches: Vec<Vec<NewEvent>> = (0..events / batch)
        .rev()
        .map(|at| (at * batch..(at + 1) * batch).map(|number| event(number, events)).collect())
        .collect();
    let batches = std::sync::Arc::new(std::sync::Mutex::new(batches));
    let began = Instant::now();
    let senders: Vec<_> = (0..in_flight).map(|_| tokio::spawn(send(engine.clone(), project, batches.clone()))).collect();
    let mut recorded = 0;
    for sender in senders {
        recorded += sender.await.unwrap();
    }
    let took = began.elapsed();
    println!("{recorded} events durable and counted in {took:.2?}: {:.0} events/s", recorded as f64 / took.as_secs_f64());
    let first = Day::from_ymd(2026, 6, 1).unwrap();
    let window = Window { start: first, end: first.plus(59) };
    let began = Instant::now();
    for _ in 0..1_000 {
        engine.ask(project, UniqueUsersQuery { window }).await.unwrap();
    }
    println!("unique users of 60 days: {:.1?} per query", began.elapsed() / 1_000);
    let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap().total;
    println!("{users} unique users");
    engine.close().await;
    std::fs::remove_dir_all(dir).unwrap();
}
