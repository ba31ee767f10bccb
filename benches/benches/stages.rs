//! Benchmarks of the stages of event processing and of queries: `cargo bench -p headcount-bench`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark: a panic is a failure")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use headcount_actors::domain::agent;
use headcount_actors::domain::ids::KeyHasher;
use headcount_actors::domain::intake::admission::admit;
use headcount_actors::domain::intake::event::{EVENT_VERSION, Event};
use headcount_actors::domain::intake::submission::Submission;
use headcount_actors::domain::project::Project;
use headcount_actors::domain::records::NoSource;
use headcount_actors::domain::time::{Day, Window};
use headcount_bench::sample::{EVENTS, RECEIVED, admitted, body};
use headcount_bench::{client, policy};
use headcount_storage::codec;

fn stages(criterion: &mut Criterion) {
    let policy = policy();
    let bodies: Vec<String> = (0..EVENTS).map(body).collect();
    let events: Vec<Box<Event>> = bodies.iter().map(|body| admitted(body, &policy)).collect();
    let mut next = 0;
    let mut next_index = move || {
        next = (next + 1) % EVENTS;
        next
    };
    let mut group = criterion.benchmark_group("event");
    group.throughput(Throughput::Elements(1));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| Submission::read(bodies[next_index()].as_bytes(), |submission| _ = black_box(submission)).unwrap());
    });
    let agent = agent::parse("curl/8");
    let client = client(&agent);
    group.bench_function("parse and admit", |bencher| {
        bencher.iter(|| {
            let body = bodies[next_index()].as_bytes();
            black_box(Submission::read(body, |submission| admit(submission, &policy, &client, RECEIVED)).flatten().unwrap())
        });
    });
    let mut bytes = Vec::new();
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            bytes.clear();
            codec::encode_into(EVENT_VERSION, &*events[next_index()], &mut bytes).unwrap();
            black_box(bytes.len())
        });
    });
    let encoded: Vec<Vec<u8>> = events.iter().map(|event| codec::encode(EVENT_VERSION, &**event).unwrap()).collect();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| black_box(codec::decode::<Event>(EVENT_VERSION, &encoded[next_index()]).unwrap()));
    });
    group.finish();
}

fn folded(events: &[Box<Event>], hasher: &KeyHasher) -> Project {
    let mut project = Project::default();
    for (event, position) in events.iter().zip(1..) {
        project.apply(event, position, hasher, &NoSource).unwrap();
    }
    project
}

fn folding(criterion: &mut Criterion) {
    let (policy, hasher) = (policy(), KeyHasher::new([1; 16]));
    let events: Vec<Box<Event>> = (0..EVENTS).map(|number| admitted(&body(number), &policy)).collect();
    let mut group = criterion.benchmark_group("fold");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.sample_size(20);
    group.bench_function("in order, empty project", |bencher| {
        bencher.iter_batched(|| (), |()| black_box(folded(&events, &hasher)), BatchSize::PerIteration);
    });
    let late: Vec<Box<Event>> = events.iter().rev().cloned().collect();
    group.bench_function("newest first, empty project", |bencher| {
        bencher.iter_batched(|| (), |()| black_box(folded(&late, &hasher)), BatchSize::PerIteration);
    });
    group.finish();

    let project = folded(&events, &hasher);
    let first = Day::from_ymd(2026, 6, 1).unwrap();
    let mut group = criterion.benchmark_group("query, 60 days");
    let window = Window { start: first, end: first.plus(59) };
    group.bench_function("unique users per day", |bencher| bencher.iter(|| black_box(project.unique_users(window))));
    group.bench_function("revenue metrics", |bencher| bencher.iter(|| black_box(project.revenue_metrics(window))));
    group.bench_function("revenue series", |bencher| bencher.iter(|| black_box(project.revenue_series(window))));
    group.finish();
}

criterion_group!(benches, stages, folding);
criterion_main!(benches);
