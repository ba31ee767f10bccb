//! Checks many items on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `check` with each of `items`, and returns the first error. A panic is reported as
/// `damaged`, since only damaged data can cause it.
pub(crate) fn check_each<T: Sync, E: Send>(
    items: &[T],
    damaged: fn(&'static str) -> E,
    check: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let check_some = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(item)?;
        }
        Ok(())
    };
    let more = std::thread::available_parallelism().map_or(1, usize::from).min(items.len()).saturating_sub(1);
    std::thread::scope(|scope| {
        // If a thread can't be started, the others check its part.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, check_some).ok();
        let checks: Vec<_> = (0..more).filter_map(spawn).collect();
        let own = check_some();
        let panicked = |_| Err(damaged("reading it panicked"));
        checks.into_iter().map(|check| check.join().unwrap_or_else(panicked)).fold(own, Result::and)
    })
}
