//! Work per event, and the size of stored values, must not grow with what one sender can make up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod events;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use events::SHAPES;
use headcount_domain::fold::{Fault, NoSource, Project, Source};
use headcount_domain::ids::{KeyHasher, RecordKey};
use headcount_domain::paged::set_page_items;
use headcount_domain::project::RecordVisitor;
use headcount_domain::records::Record;
use headcount_domain::rollup::packed::Packed;

const BATCH: u64 = 5_000;

/// Held by the test that runs: the size of pages is a setting of the whole process.
static PAGES: Mutex<()> = Mutex::new(());

fn pages_of(items: usize) -> MutexGuard<'static, ()> {
    let held = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    set_page_items(items);
    held
}

/// The processor time of this thread: other processes share the machine.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// The time that each batch of `BATCH` events takes.
fn fold(shape: &events::Shape, count: u64) -> Vec<Duration> {
    let (mut project, hasher) = (Project::default(), KeyHasher::new([9; 16]));
    let batch = |first: u64| {
        let events: Vec<_> = (first..first + BATCH).map(|number| (shape.event)(number, count)).collect();
        let began = processor_time();
        for (event, position) in events.iter().zip(first + 1..) {
            project.apply(event, position, &hasher, &NoSource).unwrap();
        }
        processor_time() - began
    };
    (0..count).step_by(BATCH as usize).map(batch).collect()
}

/// Prints the time per batch. Run it in release: `cargo test --release -p headcount-domain --test cardinality -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_per_batch() {
    let _usual = pages_of(1024);
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

/// The largest value that a shape of events has written, when everything is saved every now and then.
#[derive(Default)]
struct Sizes {
    records: std::collections::HashMap<(u8, RecordKey), Vec<u8>>,
    largest: (usize, u8),
}

impl Sizes {
    fn put<T: serde::Serialize>(&mut self, space: u8, key: RecordKey, value: &T) {
        let bytes = headcount_storage::codec::encode(1, value).unwrap();
        self.largest = self.largest.max((bytes.len(), space));
        self.records.insert((space, key), bytes);
    }

    fn get<T: serde::de::DeserializeOwned>(&self, space: u8, key: RecordKey) -> Option<T> {
        self.records.get(&(space, key)).map(|bytes| headcount_storage::codec::decode(1, bytes).unwrap())
    }
}

impl RecordVisitor for Sizes {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        self.put(T::SPACE, key, record);
        record.dirty_pages(key, &mut |page, chunk| self.put(T::PAGE_SPACE, page, chunk));
    }

    fn visit_part(&mut self, tag: u8, number: u32, part: Option<&Packed>) {
        let bytes = part.map_or(0, |part| headcount_storage::codec::encode(1, part).unwrap().len());
        assert!(bytes <= 64 << 10, "part {number} of rollup {tag} has {bytes} bytes");
    }
}

impl Source for Sizes {
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault> {
        Ok(self.get(T::SPACE, key))
    }

    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault> {
        self.get(T::PAGE_SPACE, key).ok_or_else(|| Fault::damaged_store(format!("no page {key:?}")))
    }
}

#[test]
fn no_stored_value_grows_with_what_is_sent() {
    // A sixty-fourth of the usual, for a few thousand events in the place of some hundred thousand.
    let _small = pages_of(16);
    const EVENTS: u64 = 3_000;
    const MOST_BYTES: usize = 16 << 10;
    let hasher = KeyHasher::new([9; 16]);
    for shape in SHAPES {
        let (mut project, mut saved) = (Project::default(), Sizes::default());
        for number in 0..EVENTS {
            project.apply(&(shape.event)(number, EVENTS), number + 1, &hasher, &saved).unwrap();
            if number % 500 == 499 {
                project.freeze();
                while project.drain_frozen(usize::MAX, &mut saved) {}
                project.settle();
                project.evict(usize::MAX, usize::MAX);
                project.evict(usize::MAX, usize::MAX);
            }
        }
        let (bytes, space) = saved.largest;
        assert!(bytes <= MOST_BYTES, "{}: a value of {bytes} bytes in key space {space}", shape.name);
    }
}

#[test]
fn an_event_costs_the_same_however_many_came_before() {
    let _usual = pages_of(1024);
    let all_at_once = ["companies of one user", "groups of one user", "orders of one user at one instant"];
    for shape in SHAPES.iter().filter(|shape| all_at_once.contains(&shape.name)) {
        let times = fold(shape, 30_000);
        // Twice as many as at first is usual while tables grow; a pass over what came before makes it ten times as many.
        assert!(times[5] < 5 * times[0].max(times[1]), "{}: {times:?}", shape.name);
    }
}
