//! Measurements, to be run by hand: `cargo test --release -p headcount-storage --test store_speed
//! -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test: a failure is a failed test")]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Check, DiskStore, Store, StoreOptions};

const PARTITIONS: u16 = 8;
const PER_PARTITION: u64 = 60_000;
const VALUE_BYTES: usize = 200;

fn key(partition: u16, number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [&partition.to_be_bytes()[..], &[3], &mixed.to_be_bytes()].concat()
}

/// Writes every `step`th key of all partitions, a checkpoint per partition, two at a time.
fn write(store: &DiskStore, step: usize, fill: u8) -> Duration {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                for partition in (half..PARTITIONS).step_by(2) {
                    let mut checkpoint = store.begin(PartitionId(partition)).unwrap();
                    for number in (0..PER_PARTITION).step_by(step) {
                        checkpoint.put(&key(partition, number), &[fill; VALUE_BYTES]).unwrap();
                    }
                    checkpoint.commit().unwrap();
                }
            });
        }
    });
    begin.elapsed()
}

fn percentile(latencies: &mut [Duration], of_1000: usize) -> Duration {
    latencies.sort_unstable();
    latencies[(latencies.len() - 1) * of_1000 / 1000]
}

#[test]
#[ignore = "a measurement; run it in release"]
fn speed() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    let options = |check| StoreOptions { check, ..StoreOptions::default() };
    let store = DiskStore::open(&dir, options(Check::Full)).unwrap();
    let rate = |count: u64, time: Duration| count as f64 / time.as_secs_f64();
    let all = u64::from(PARTITIONS) * PER_PARTITION;
    println!("new: {:.0} keys/s", rate(all, write(&store, 1, 1)));
    println!("overwritten: {:.0} keys/s", rate(all, write(&store, 1, 2)));
    println!("one in ten overwritten: {:.0} keys/s", rate(all / 10, write(&store, 10, 3)));
    println!("{:.1} bytes on disk for {} stored", store.size_bytes().unwrap() as f64 / all as f64, 11 + VALUE_BYTES);

    let stop = AtomicBool::new(false);
    let mut latencies = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(&store, 5, 4);
            stop.store(true, Ordering::Relaxed);
        });
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let at = key(number as u16 % PARTITIONS, number * 7919 % PER_PARTITION);
            store.get(&at).unwrap().unwrap();
            latencies.push(begin.elapsed());
            number += 1;
        }
    });
    println!(
        "reads beside commits: median {:?}, p99 {:?}, p99.9 {:?}, worst {:?}, of {}",
        percentile(&mut latencies, 500),
        percentile(&mut latencies, 990),
        percentile(&mut latencies, 999),
        percentile(&mut latencies, 1000),
        latencies.len()
    );
    drop(store);
    for check in [Check::Quick, Check::Quick, Check::Full] {
        let begin = Instant::now();
        drop(DiskStore::open(&dir, options(check)).unwrap());
        println!("opened, {check:?}: {:?}", begin.elapsed());
    }
    let store = DiskStore::open(&dir, options(Check::Quick)).unwrap();
    let begin = Instant::now();
    for partition in 0..PARTITIONS {
        store.scan(&partition.to_be_bytes(), &mut |_, _| ControlFlow::Continue(())).unwrap();
    }
    println!("scanned: {:.0} keys/s", rate(all, begin.elapsed()));
}
