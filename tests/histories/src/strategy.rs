//! Histories for proptest.

use crate::history::{History, Size};
use proptest::prelude::*;
use proptest::sample::subsequence;

/// Any history as of `now_ms`. It shrinks by leaving steps out.
pub fn histories(now_ms: i64, size: Size) -> impl Strategy<Value = History> {
    any::<u64>().no_shrink().prop_flat_map(move |seed| {
        let history = History::from_seed(seed, now_ms, size);
        let count = history.steps.len();
        // From half of the steps on: what is left out at first is what makes order and chance.
        subsequence(history.steps.clone(), count / 2..=count).prop_map(move |steps| history.with_steps(steps))
    })
}
