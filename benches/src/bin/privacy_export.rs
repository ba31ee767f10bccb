//! Measures an export of one person: the time, and the peak of the process's memory while it is
//! made.
//!
//! Usage: `privacy_export [EVENTS] [OTHERS] [MEMORY_MIB]`; by default 1,000,000 events of the
//! person among as many of others, with a budget of 128 MiB.

#![allow(clippy::unwrap_used, reason = "a benchmark: a panic is a failure")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig};
use headcount_privacy::{Privacy, PrivacyRequestKind, PrivacySettings, PrivacyStatus, PrivacySubject, install};

/// The allocator of the `headcount` binary.
#[global_allocator]
static ALLOCATOR: headcount_allocator::MiMalloc = headcount_allocator::MiMalloc;

const START_MS: i64 = 1_780_272_000_000;
const BATCH: usize = 1_000;

/// Of the person if `is_theirs`, else of one of many others.
fn event(number: usize, is_theirs: bool) -> NewEvent {
    let user = if is_theirs { "ada".to_owned() } else { format!("u{}", number * 7919 % 100_000) };
    let event = NewEvent::new("pageview")
        .user(user)
        .with(Field::Url, format!("https://app.example.com/docs/section-{}/page-{}?utm_source=news", number % 20, number % 400))
        .metadata(&format_args!("{number}").to_string())
        .unwrap()
        .at_ms(START_MS + (number as i64) * 2_000);
    if number.is_multiple_of(50) { event.value("12.99").unwrap() } else { event }
}

/// A line of `/proc/self/status`, in MiB.
fn memory_mib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

fn privacy(engine: &Engine) -> Arc<Privacy> {
    engine.feature().unwrap()
}

fn main() {
    headcount_allocator::configure();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let theirs = arguments.next().unwrap_or(1_000_000);
    let (others, memory_mib_budget) = (arguments.next().unwrap_or(theirs), arguments.next().unwrap_or(128));
    let dir = std::env::temp_dir().join(format!("headcount-export-bench-{}", std::process::id()));
    let config = || EngineConfig {
        memory_bytes: memory_mib_budget << 20,
        features: vec![install(PrivacySettings::default())],
        ..EngineConfig::new(&dir)
    };
    let engine = Engine::open(config()).unwrap();
    let initial = engine.registry().initialize(engine.clock().now()).unwrap();
    for (count, is_theirs) in [(others, false), (theirs, true)] {
        for begin in (0..count).step_by(BATCH) {
            let events: Vec<NewEvent> = (begin..count.min(begin + BATCH)).map(|number| event(number, is_theirs)).collect();
            engine.track_batch(initial.project_id, &events).await.unwrap();
        }
    }
    // A process that has recorded nothing.
    engine.close().await;
    drop(engine);
    let engine = Engine::open(config()).unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (before, began) = (memory_mib("VmHWM"), Instant::now());
    let (maker, now, organization) = (engine.clone(), engine.clock().now(), initial.organization_id);
    let make = move || {
        let subject = PrivacySubject::UserId("ada".to_owned());
        privacy(&maker).make(organization, PrivacyRequestKind::Export, subject, now).unwrap()
    };
    let id = tokio::task::spawn_blocking(make).await.unwrap().id.clone();
    while privacy(&engine).get(organization, &id).unwrap().status != PrivacyStatus::Completed {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (took, after) = (began.elapsed(), memory_mib("VmHWM"));
    let bytes = privacy(&engine).open_export(organization, &id).unwrap().bytes;
    println!("{theirs} events of {} in {took:.1?}: an artifact of {} MiB", theirs + others, bytes >> 20);
    println!("peak memory: {before} MiB before, {after} MiB while it was made");
    engine.close().await;
    std::fs::remove_dir_all(dir).unwrap();
}
