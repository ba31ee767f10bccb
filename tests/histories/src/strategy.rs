//! A proptest strategy of histories.

use crate::history::{History, Size};
use proptest::prelude::*;
use proptest::sample::subsequence;

/// Generates any history as of `now_ms`, which shrinks by removing steps.
pub fn histories(now_ms: i64, size: Size) -> impl Strategy<Value = History> {
    any::<u64>().no_shrink().prop_flat_map(move |seed| {
        let history = History::from_seed(seed, now_ms, size);
        let count = history.steps.len();
        // Keeps at least half of the steps: removing some at random varies their order.
        subsequence(history.steps.clone(), count / 2..=count).prop_map(move |steps| history.with_steps(steps))
    })
}
