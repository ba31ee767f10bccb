//! Helper threads of scans: a scan reads the row groups of a file in several threads, and counts
//! them in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The memory budget for each helper: it holds the columns of a row group, and what was read of
/// some others.
const BYTES_A_HELPER: usize = 256 << 20;
/// The most helpers of all scans.
const MAX_HELPERS: usize = 3;
/// How many items may be read and not yet counted, for each thread.
const AHEAD: usize = 2;

/// Bounds the helper threads of all scans. Each scan has a thread of its own besides.
pub(crate) struct ScanHelpers {
    free: AtomicUsize,
}

/// The right to some helper threads; given back when dropped.
struct Helpers<'h> {
    of: &'h ScanHelpers,
    count: usize,
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.of.free.fetch_add(self.count, Ordering::AcqRel);
    }
}

impl ScanHelpers {
    /// As many helpers as there are other cores and as `memory_bytes` has room for. May be none.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let others = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
        Self::of_count(others.min(memory_bytes / BYTES_A_HELPER).min(MAX_HELPERS))
    }

    fn of_count(count: usize) -> Self {
        Self { free: AtomicUsize::new(count) }
    }

    /// Takes at most `most` of those that are free.
    fn take(&self, most: usize) -> Helpers<'_> {
        let take = |free: usize| Some(free - free.min(most));
        let before = self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).unwrap_or_default();
        Helpers { of: self, count: before.min(most) }
    }

    /// Calls `read` for each item, here and in helper threads, and passes what it returns to
    /// `count`, here and in order, up to the first error. Bounded numbers of items are read before
    /// it is their turn.
    pub(super) fn read_in_order<I: Sync, P: Send, E: Send>(
        &self,
        items: &[I],
        read: &(dyn Fn(&I) -> Result<P, E> + Sync),
        count: &mut dyn FnMut(P) -> Result<(), E>,
    ) -> Result<(), E> {
        let helpers = self.take(items.len().saturating_sub(1));
        if helpers.count == 0 {
            return items.iter().try_for_each(|item| count(read(item)?));
        }
        let work = OrderedReading {
            items,
            read,
            ahead: AHEAD * (helpers.count + 1),
            state: Mutex::new(ReadingState::new()),
            changed: Condvar::new(),
        };
        std::thread::scope(|scope| {
            // Also if counting panics: the scope waits for the helpers.
            let _end = EndOnDrop(&work);
            for _ in 0..helpers.count {
                let helper = std::thread::Builder::new().name("scan-helper".into());
                // Without threads, this one reads everything.
                if helper.spawn_scoped(scope, || work.help()).is_err() {
                    break;
                }
            }
            work.count_all(count)
        })
    }
}

/// Items that are being read.
struct OrderedReading<'w, I, P, E> {
    items: &'w [I],
    read: &'w (dyn Fn(&I) -> Result<P, E> + Sync),
    ahead: usize,
    state: Mutex<ReadingState<P, E>>,
    changed: Condvar,
}

struct ReadingState<P, E> {
    /// The first item that nobody began to read.
    next: usize,
    /// The number of items that were counted.
    counted: usize,
    /// What was read, and not yet counted.
    ready: BTreeMap<usize, Result<P, E>>,
    has_ended: bool,
}

impl<P, E> ReadingState<P, E> {
    fn new() -> Self {
        Self { next: 0, counted: 0, ready: BTreeMap::new(), has_ended: false }
    }
}

struct EndOnDrop<'w, 'i, I, P, E>(&'w OrderedReading<'i, I, P, E>);

impl<I, P, E> Drop for EndOnDrop<'_, '_, I, P, E> {
    fn drop(&mut self) {
        self.0.state.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

impl<I, P, E> OrderedReading<'_, I, P, E> {
    /// Takes the next item that may be read.
    fn next(&self, state: &mut ReadingState<P, E>) -> Option<usize> {
        let at = state.next;
        (at < self.items.len() && at < state.counted + self.ahead).then(|| {
            state.next += 1;
            at
        })
    }

    /// Reads an item without the lock.
    fn read_unlocked(&self, state: &mut MutexGuard<'_, ReadingState<P, E>>, at: usize) {
        let part = MutexGuard::unlocked(state, || (self.read)(&self.items[at]));
        state.ready.insert(at, part);
        self.changed.notify_all();
    }

    /// Reads items until none is left.
    fn help(&self) {
        // If reading panics, nobody waits for what it does not return.
        let end = EndOnDrop(self);
        let mut state = self.state.lock();
        while !state.has_ended && state.next < self.items.len() {
            match self.next(&mut state) {
                Some(at) => self.read_unlocked(&mut state, at),
                None => self.changed.wait(&mut state),
            }
        }
        drop(state);
        std::mem::forget(end);
    }

    /// Counts all items in order, and reads those that no helper has begun.
    fn count_all(&self, count: &mut dyn FnMut(P) -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state.lock();
        while state.counted < self.items.len() {
            let at = state.counted;
            if let Some(part) = state.ready.remove(&at) {
                MutexGuard::unlocked(&mut state, || part.and_then(&mut *count))?;
                state.counted += 1;
                self.changed.notify_all();
            } else if let Some(next) = self.next(&mut state) {
                self.read_unlocked(&mut state, next);
            } else if state.has_ended {
                // A helper panicked: so does the scope.
                return Ok(());
            } else {
                self.changed.wait(&mut state);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    #[test]
    fn items_are_counted_in_order_and_few_are_read_ahead() {
        for helpers in [0, 1, 3] {
            let scans = ScanHelpers::of_count(helpers);
            let items: Vec<usize> = (0..200).collect();
            let (read, counted) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let threads = Mutex::new(std::collections::HashSet::new());
            let mut found = Vec::new();
            let outcome = scans.read_in_order(
                &items,
                &|item| {
                    threads.lock().insert(std::thread::current().id());
                    // Those that come first take longest.
                    std::thread::sleep(Duration::from_micros((item % 5 * 100) as u64));
                    let ahead = read.fetch_add(1, Ordering::SeqCst) + 1 - counted.load(Ordering::SeqCst);
                    assert!(ahead <= AHEAD * (helpers + 1) + 1, "{ahead}");
                    Ok::<_, ()>(*item)
                },
                &mut |item| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    found.push(item);
                    Ok(())
                },
            );
            assert_eq!((outcome, found), (Ok(()), items));
            assert!(threads.lock().len() <= helpers + 1 && (helpers == 0 || threads.lock().len() > 1));
            assert_eq!(scans.free.load(Ordering::SeqCst), helpers, "helpers are given back");
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        for (reading, counting) in [(50, 1_000), (1_000, 50), (50, 49), (49, 50)] {
            let items: Vec<usize> = (0..200).collect();
            let mut found = Vec::new();
            let outcome = ScanHelpers::of_count(2).read_in_order(
                &items,
                &|item| if *item >= reading { Err(format!("read {item}")) } else { Ok(*item) },
                &mut |item| {
                    found.push(item);
                    if item == counting { Err(format!("count {item}")) } else { Ok(()) }
                },
            );
            let expected = if counting < reading { format!("count {counting}") } else { format!("read {reading}") };
            assert_eq!(outcome, Err(expected));
            assert_eq!(found, (0..reading.min(counting + 1)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn helpers_are_divided() {
        let scans = ScanHelpers::of_count(3);
        let first = scans.take(2);
        let second = scans.take(2);
        assert_eq!((first.count, second.count, scans.take(2).count), (2, 1, 0));
        drop(first);
        assert_eq!(scans.take(5).count, 2);
        assert_eq!(ScanHelpers::new(64 << 20).take(9).count, 0, "there is no memory for any");
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        for panicking in ["reading", "counting"] {
            let scans = ScanHelpers::of_count(1);
            let has_panicked = AtomicBool::new(false);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let read = |item: &usize| {
                    // The last items are read by a thread of each kind.
                    if panicking == "reading" && *item > 90 && !has_panicked.swap(true, Ordering::SeqCst) {
                        panic!("planted");
                    }
                    Ok::<_, ()>(*item)
                };
                let mut count = |item: usize| {
                    assert!(panicking != "counting" || item < 50, "planted");
                    Ok(())
                };
                scans.read_in_order(&(0..100).collect::<Vec<_>>(), &read, &mut count)
            }));
            assert!(outcome.is_err(), "{panicking}");
            assert_eq!(scans.free.load(Ordering::SeqCst), 1);
        }
    }
}
