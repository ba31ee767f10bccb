//! Work per event, and the size of stored values, must not grow with what one sender can make up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod events;

use std::time::{Duration, Instant as Stopwatch};

use events::SHAPES;
use headcount_domain::fold::{NoSource, Project};
use headcount_domain::ids::KeyHasher;

const BATCH: u64 = 5_000;

/// The time that each batch of `BATCH` events takes.
fn fold(shape: &events::Shape, count: u64) -> Vec<Duration> {
    let (mut project, hasher) = (Project::default(), KeyHasher::new([9; 16]));
    let batch = |first: u64| {
        let events: Vec<_> = (first..first + BATCH).map(|number| (shape.event)(number, count)).collect();
        let began = Stopwatch::now();
        for (event, position) in events.iter().zip(first + 1..) {
            project.apply(event, position, &hasher, &NoSource).unwrap();
        }
        began.elapsed()
    };
    (0..count).step_by(BATCH as usize).map(batch).collect()
}

/// Prints the time per batch. Run it in release: `cargo test --release -p headcount-domain --test cardinality -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_per_batch() {
    let count = std::env::var("HEADCOUNT_EVENTS").map_or(150_000, |count| count.parse().unwrap());
    let only = std::env::var("HEADCOUNT_SHAPE").unwrap_or_default();
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&only)) {
        let times = fold(shape, count);
        let mean = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
        let (first, last) = (mean(&times[..3]), mean(&times[times.len() - 3..]));
        let rate = count as f64 / times.iter().sum::<Duration>().as_secs_f64();
        println!("{:44} first {first:8.1} ms, last {last:8.1} ms, x {:6.2}, {rate:9.0} events/s", shape.name, last / first);
    }
}
