//! Runs each stage of the hot paths for `benches/guard.py`, which counts instructions and
//! allocations under callgrind.
//!
//! Whenever a thread calls [`guard_mark`], callgrind writes down what that thread did since it
//! called it before. The threads of a stage call it before and after. For each, the program prints
//! a line then: the stage, its number of events or requests, the thread, and how many calls of
//! [`guard_mark`] there were.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark: a panic is a failure")]

mod domain;
mod marks;
mod service;

/// The allocator of the `headcount` binary.
#[global_allocator]
static ALLOCATOR: headcount_allocator::MiMalloc = headcount_allocator::MiMalloc;

/// The files of a log are filled ahead: those of the default size need more memory than some
/// machines have for files.
const SEGMENT_BYTES: u64 = 8 << 20;

fn main() {
    headcount_allocator::configure();
    domain::run();
    service::run();
}
