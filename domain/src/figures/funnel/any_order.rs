//! Chains whose steps come in any order.
//!
//! What a chain can still do depends on the steps that were done, and on its start. Among chains
//! with the same steps, the one with the latest start has the most time left: it says how deep
//! chains get, and when. Once that is known, the chain with the earliest start that is still in
//! time is found in a second pass. So each pass keeps one chain for each set of steps, and not one
//! for each event.

use crate::moment::Moment;

use super::chain::Chain;
use super::sequence::{Reached, StepEvent};

/// Whether a chain can go on with an event of this moment.
pub(super) fn may_last(start: Option<Moment>, at: Moment, length: Option<i64>) -> bool {
    let Some((start, length)) = start.zip(length) else { return true };
    at.time.0.saturating_sub(start.time.0) <= length
}

/// Returns the steps of a chain after an event, if it serves one more: the lowest one that it fits.
fn served_after(served: usize, event: &StepEvent<'_>) -> Option<usize> {
    let fresh = usize::from(event.steps) & !served;
    (fresh > 0).then(|| served | fresh & fresh.wrapping_neg())
}

/// For each set of steps, the latest start of a chain that has done them.
#[derive(Debug)]
pub(super) struct LatestStarts(Vec<Option<Moment>>);

impl LatestStarts {
    pub(super) fn new(steps: usize) -> Self {
        Self(vec![None; 1 << steps])
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(None);
    }

    /// Returns the depth of the deepest chain that the event belongs to.
    pub(super) fn add(&mut self, event: &StepEvent<'_>, length: Option<i64>) -> usize {
        let (mut depth, starts) = (0, &mut self.0);
        // A chain that goes on has more steps then, and was passed already.
        for served in (1..starts.len()).rev() {
            let Some(start) = starts[served] else { continue };
            if !may_last(Some(start), event.at, length) {
                starts[served] = None;
            } else if let Some(after) = served_after(served, event) {
                starts[served] = None;
                starts[after] = starts[after].max(Some(start));
                depth = depth.max(after.count_ones() as usize);
            }
        }
        if let Some(first) = served_after(0, event).filter(|_| event.may_begin) {
            starts[first] = Some(event.at);
            depth = depth.max(1);
        }
        depth
    }
}

/// Finds the chain that was the first to reach a depth: of several, the one with the earliest
/// start.
#[derive(Debug)]
pub struct EarliestChains {
    length: Option<i64>,
    reached: Reached,
    /// For each set of steps, the chain with the earliest start that has done them.
    chains: Vec<Option<Chain>>,
    found: Option<Chain>,
}

impl EarliestChains {
    /// Prepares to find the chain. `length` is in milliseconds.
    pub fn new(steps: usize, length: Option<i64>, reached: Reached) -> Self {
        Self { length, reached, chains: vec![None; 1 << steps], found: None }
    }

    /// Adds the next event of the sequence.
    pub fn add(&mut self, event: &StepEvent<'_>) {
        // A chain that begins earlier is over when the depth is reached.
        if event.at > self.reached.at || event.steps == 0 || !may_last(Some(event.at), self.reached.at, self.length) {
            return;
        }
        let Self { reached, chains, found, .. } = self;
        let mut note = |chain: &Chain| {
            let is_so_deep = event.at == reached.at && chain.links().len() == reached.depth;
            if is_so_deep && found.as_ref().is_none_or(|found| chain.start() < found.start()) {
                *found = Some(chain.clone());
            }
        };
        for served in (1..chains.len()).rev() {
            let Some(after) = chains[served].as_ref().and_then(|_| served_after(served, event)) else { continue };
            let Some(mut chain) = chains[served].take() else { continue };
            chain.push(event);
            note(&chain);
            if chains[after].as_ref().is_none_or(|present| chain.start() < present.start()) {
                chains[after] = Some(chain);
            }
        }
        if let Some(first) = served_after(0, event).filter(|_| event.may_begin) {
            let chain = chains[first].get_or_insert_with(|| Chain::of(event));
            if chain.start() == Some(event.at) {
                note(chain);
            }
        }
    }

    /// Returns the chain.
    pub fn finish(self) -> Option<Chain> {
        self.found
    }
}
