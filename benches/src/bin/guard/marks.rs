//! The marks that callgrind sees.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use headcount_actors::domain::time::Instant;
use headcount_bench::sample::RECEIVED;
use headcount_common::clock::Clock;

/// How many marks there were.
static MARKS: AtomicUsize = AtomicUsize::new(0);

/// Callgrind knows this function by its name. Returns how many calls there were.
#[inline(never)]
pub(crate) fn guard_mark() -> usize {
    black_box(MARKS.fetch_add(1, Ordering::SeqCst) + 1)
}

/// Runs a stage of the calling thread, which handles `count` events or questions.
pub(crate) fn measure(stage: &str, count: usize, work: impl FnOnce()) {
    guard_mark();
    work();
    let mark = guard_mark();
    report(stage, count, "main", mark);
}

/// Prints the line of a thread of a stage.
pub(crate) fn report(stage: &str, count: usize, thread: &str, mark: usize) {
    println!("{stage}\t{count}\t{thread}\t{mark}");
}

/// The mark of a thread.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    is_due: AtomicBool,
    last: AtomicUsize,
}

impl Mark {
    /// Asks for a mark.
    pub(crate) fn ask(&self) {
        self.is_due.store(true, Ordering::SeqCst);
    }

    /// Marks the place of the calling thread if that was asked for.
    pub(crate) fn mark_if_due(&self) {
        if self.is_due.swap(false, Ordering::SeqCst) {
            self.last.store(guard_mark(), Ordering::SeqCst);
        }
    }

    /// Returns the last mark.
    pub(crate) fn last(&self) -> usize {
        assert!(!self.is_due.load(Ordering::SeqCst), "a thread has not marked its place");
        self.last.load(Ordering::SeqCst)
    }
}

/// The marks of the threads of a request.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) http: Mark,
    pub(crate) shard: Mark,
}

/// A clock that stands still. The HTTP worker asks it for the time of each event, and marks its
/// place there.
#[derive(Debug)]
pub(crate) struct MarkingClock(pub(crate) Arc<Marks>);

impl Clock for MarkingClock {
    fn now(&self) -> Instant {
        // Other threads ask for the time, too.
        if self.0.http.is_due.load(Ordering::SeqCst) && is_http_worker() {
            self.0.http.mark_if_due();
        }
        RECEIVED
    }
}

fn is_http_worker() -> bool {
    std::fs::read_to_string("/proc/thread-self/comm").unwrap().starts_with("http-")
}
