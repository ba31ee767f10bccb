//! Work per event, and the size of stored values, must not grow with what one sender can make up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod events;
mod last_touch;
mod stored_types;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use events::{SHAPES, at, of_company};
use headcount_domain::cells::StoredRows;
use headcount_domain::cells::packed::Packed;
use headcount_domain::ids::PublicCompany;
use headcount_domain::limits::Limits;
use headcount_domain::queries::{Projects, Reader, Travels, company_top_users, top_companies, top_groups};
use headcount_domain::records::Record;
use headcount_domain::records::{NoSource, Source};
use headcount_domain::{Day, Event, Fault, KeyHasher, OrganizationId, Project, ProjectId, RecordKey, RecordVisitor, Window};

const BATCH: u64 = 5_000;

/// Pages of `items` items, and runs of a quarter of that.
fn pages_of(items: usize) -> Limits {
    Limits { page_items: items, max_inline_run: items / 4, ..Limits::DEFAULT }
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

/// Prints the time per batch. Run it in release: `cargo test --release -p headcount-domain --test
/// cardinality -- --ignored --nocapture`.
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

fn hasher() -> &'static KeyHasher {
    static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new([9; 16]));
    &HASHER
}

/// One project, whose records are all in a store.
struct One(Mutex<(Project, Sizes)>);

impl Projects for One {
    type Error = Fault;

    fn organization(&self) -> OrganizationId {
        OrganizationId(1)
    }

    fn count(&self) -> usize {
        1
    }

    fn hasher(&self) -> &KeyHasher {
        hasher()
    }

    async fn scatter<Q: Travels>(&self, question: Q) -> Result<Vec<Q::Partial>, Fault> {
        let (project, source) = &mut *self.0.lock().unwrap();
        let reads = source.reads.get();
        let part = question.answer(&mut Reader { id: ProjectId(1), project, hasher: hasher(), source })?;
        source.most_reads.set(source.most_reads.get().max(source.reads.get() - reads));
        Ok(vec![part])
    }
}

impl One {
    fn reads(&self) -> usize {
        self.0.lock().unwrap().1.reads.get()
    }

    fn resident(&self) -> usize {
        self.0.lock().unwrap().0.bytes().resident
    }

    fn most_reads(&self) -> usize {
        self.0.lock().unwrap().1.most_reads.get()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn stored(shape: &str, count: u64) -> One {
    stored_of(SHAPES.iter().find(|known| known.name == shape).unwrap().event, count)
}

fn stored_of(event: fn(u64, u64) -> Event, count: u64) -> One {
    let (mut project, mut saved, hasher) = (Project::default(), Sizes::default(), KeyHasher::new([9; 16]));
    for number in 0..count {
        project.apply(&event(number, count), number + 1, &hasher, &saved).unwrap();
    }
    saved.save(&mut project);
    saved.reads.set(0);
    One(Mutex::new((project, saved)))
}

/// A domain that differs from others only behind the prefix that lists know. Each number has its
/// own.
fn alike(number: u64) -> String {
    format!("customer-of-ours-{:06}.example", number * 617_171 % 1_000_000)
}

#[test]
fn a_list_of_equals_reads_few_of_them() {
    const GROUPS: u64 = 5_000;
    let today = Day(i32::try_from(events::TODAY).unwrap());
    let window = Window { start: today, end: today };

    let one = stored("groups of one user", GROUPS);
    let top = block_on(top_groups(&one, "team", window, 20)).unwrap();
    let mut expected: Vec<String> = (0..GROUPS).map(|number| format!("team {number}")).collect();
    expected.sort();
    assert_eq!(top.rows.iter().map(|row| row.group_key.clone()).collect::<Vec<_>>(), expected[..20]);
    assert!(top.truncated);
    assert!(one.reads() <= 200, "{} records were read", one.reads());

    let one = stored_of(|number, _| of_company(at(number as i64), alike(number)), GROUPS);
    let before = one.resident();
    let top = block_on(top_companies(&one, window, 20)).unwrap();
    assert!(top.truncated);
    let expected: BTreeSet<String> = (0..GROUPS).map(alike).collect();
    let found: Vec<_> = top.rows.iter().filter_map(|row| row.domain.clone()).collect();
    assert_eq!(found, expected.into_iter().take(20).collect::<Vec<_>>());
    // Their names are long alike: each is read once, no message reads more than a few, and none
    // stays in memory.
    assert!(one.reads() as u64 <= GROUPS + 200, "{} records were read", one.reads());
    assert!(one.most_reads() <= 1_024, "{} records were read for one message", one.most_reads());
    assert!(one.resident() <= before + (64 << 10), "{} bytes stay in memory", one.resident() - before);
}

#[test]
fn a_list_of_equal_users_is_made_in_parts() {
    let one = stored("users of one company", 40_000);
    let today = Day(i32::try_from(events::TODAY).unwrap());
    let id = PublicCompany::of("acme").to_id(OrganizationId(1));
    let window = Window { start: today, end: today };
    let top = block_on(company_top_users(&one, &id, window, 20)).unwrap().unwrap();
    let mut expected: Vec<String> = (0..40_000).map(|number| format!("user {number}")).collect();
    expected.sort();
    assert_eq!(top.rows.iter().map(|row| row.resolved_identifier.clone()).collect::<Vec<_>>(), expected[..20]);
    assert!(top.truncated);
    assert!(one.most_reads() <= 1_000, "{} records were read for one message", one.most_reads());
}

/// The largest value that a shape of events has written, when everything is saved every now and
/// then.
#[derive(Default)]
struct Sizes {
    records: std::collections::HashMap<(u8, RecordKey), Vec<u8>>,
    largest: (usize, u8),
    /// How many bytes were written.
    written: usize,
    /// How many were read, and how many for one question at most.
    reads: Cell<usize>,
    most_reads: Cell<usize>,
}

impl Sizes {
    fn put<T: serde::Serialize>(&mut self, space: u8, key: RecordKey, value: &T) {
        let bytes = headcount_storage::codec::encode(1, value).unwrap();
        self.largest = self.largest.max((bytes.len(), space));
        self.written += bytes.len();
        self.records.insert((space, key), bytes);
    }

    fn save(&mut self, project: &mut Project) {
        project.freeze();
        while project.drain_frozen(self) {}
        project.mark_durable();
        project.evict(usize::MAX, usize::MAX);
        project.evict(usize::MAX, usize::MAX);
    }

    fn get<T: serde::de::DeserializeOwned>(&self, space: u8, key: RecordKey) -> Option<T> {
        self.reads.set(self.reads.get() + 1);
        self.records.get(&(space, key)).map(|bytes| headcount_storage::codec::decode(1, bytes).unwrap())
    }
}

impl RecordVisitor for Sizes {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        self.put(T::SPACE, key, record);
        record.dirty_pages(key, &mut |page, chunk| self.put(T::PAGE_SPACE, page, chunk));
    }

    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>) {
        let bytes = part.map_or(0, |part| headcount_storage::codec::encode(1, part).unwrap().len());
        assert!(bytes <= 64 << 10, "part {number} of {rows} has {bytes} bytes");
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
    const EVENTS: u64 = 3_000;
    const MOST_BYTES: usize = 16 << 10;
    let hasher = KeyHasher::new([9; 16]);
    for shape in SHAPES {
        let (mut project, mut saved) = (Project::new(pages_of(16)), Sizes::default());
        for number in 0..EVENTS {
            project.apply(&(shape.event)(number, EVENTS), number + 1, &hasher, &saved).unwrap();
            if number % 500 == 499 {
                saved.save(&mut project);
            }
        }
        let (bytes, space) = saved.largest;
        assert!(bytes <= MOST_BYTES, "{}: a value of {bytes} bytes in key space {space}", shape.name);
    }
}

/// What is new goes to the end of its list: a checkpoint writes no page again for it, and pages
/// that are saved leave the memory, though the record that they belong to changes with every event.
#[test]
fn what_one_user_names_anew_is_written_once_and_then_let_go_of() {
    const EVENTS: u64 = 12_000;
    let hasher = KeyHasher::new([9; 16]);
    for name in ["companies of one user", "groups of one user"] {
        let shape = SHAPES.iter().find(|known| known.name == name).unwrap();
        let (mut project, mut saved) = (Project::new(pages_of(64)), Sizes::default());
        let (mut written, mut resident) = (Vec::new(), Vec::new());
        for number in 0..EVENTS {
            project.apply(&(shape.event)(number, EVENTS), number + 1, &hasher, &saved).unwrap();
            match number % 1000 {
                999 => {
                    let before = saved.written;
                    saved.save(&mut project);
                    written.push(saved.written - before);
                }
                // The user's record has changed again since.
                10 => {
                    project.evict(usize::MAX, usize::MAX);
                    project.evict(usize::MAX, usize::MAX);
                    resident.push(project.bytes().resident - project.rollup_bytes());
                }
                _ => {}
            }
        }
        let (first, last) = (written[1], *written.last().unwrap());
        assert!(last < 2 * first, "{name}: bytes written {written:?}");
        let (first, last) = (resident[1], *resident.last().unwrap());
        assert!(last < 3 * first, "{name}: bytes in memory {resident:?}");
    }
}

#[test]
fn an_event_costs_the_same_however_many_came_before() {
    const TOUCHES: &str = "orders of one user, then touches oldest first";
    let all_at_once = ["companies of one user", "groups of one user", "orders of one user at one instant", TOUCHES];
    for shape in SHAPES.iter().filter(|shape| all_at_once.contains(&shape.name)) {
        let times = fold(shape, 30_000);
        // Twice as many as at first is usual while tables grow; a pass over what came before makes
        // it ten times as many.
        assert!(times[5] < 5 * times[0].max(times[1]), "{}: {times:?}", shape.name);
    }
}

/// Each event is the first one of its user, on the day before the former first one.
#[test]
fn a_first_event_that_comes_ever_earlier_moves_few_rows() {
    const DAYS: u64 = 2_500;
    let (mut project, mut saved, hasher) = (Project::default(), Sizes::default(), KeyHasher::new([9; 16]));
    let mut most_reads = 0;
    for number in 0..DAYS {
        let reads = saved.reads.get();
        let event = events::at(-(number * 86_400_000).cast_signed());
        project.apply(&event, number + 1, &hasher, &saved).unwrap();
        most_reads = most_reads.max(saved.reads.get() - reads);
        let rollups = &project.rollups;
        let rows = [rollups.retention_by_week.len(), rollups.retention_by_month.len()];
        assert!(rows.iter().all(|rows| (1..=60).contains(rows)), "{rows:?} rows on day {number}");
        assert_eq!(rollups.retention_by_month.iter().map(|(_, count)| count).max(), Some(1));
        if number.is_multiple_of(100) {
            saved.save(&mut project);
        }
    }
    assert_eq!([project.rollups.retention_by_week.len(), project.rollups.retention_by_month.len()], [60, 60]);
    // The days of 60 months are in some 50 pages.
    assert!(most_reads <= 100, "{most_reads} records and pages were read for one event");
}
