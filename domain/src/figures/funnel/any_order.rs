//! Chains whose steps come in any order.
//!
//! Among chains that have done the same steps, the chain with the latest start has the most time
//! left: it says how deep chains get, and when. Then a second pass finds the earliest start that is
//! still in time. So each pass keeps one chain for each set of steps, and not one for each event.

use std::collections::BTreeMap;

use crate::moment::Moment;

use super::chain::{Chain, ReachedDepth};
use super::event::StepEvent;

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

/// The sets that an event adds a step to, those with most steps first: a chain that goes on is not
/// met again.
fn going_on<T>(open: &BTreeMap<usize, T>, event: &StepEvent<'_>) -> Vec<(usize, usize)> {
    open.keys().rev().filter_map(|served| Some((*served, served_after(*served, event)?))).collect()
}

/// For each set of steps, the latest start of a chain that has done them.
#[derive(Debug, Default)]
pub(super) struct LatestStarts(BTreeMap<usize, Moment>);

impl LatestStarts {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    fn start(&mut self, served: usize, start: Moment) {
        let latest = self.0.entry(served).or_insert(start);
        *latest = start.max(*latest);
    }

    /// Returns the depth of the deepest chain that the event belongs to.
    pub(super) fn add(&mut self, event: &StepEvent<'_>, length: Option<i64>) -> usize {
        let mut depth = 0;
        for (served, after) in going_on(&self.0, event) {
            if let Some(start) = self.0.remove(&served).filter(|start| may_last(Some(*start), event.at, length)) {
                self.start(after, start);
                depth = depth.max(after.count_ones() as usize);
            }
        }
        if let Some(first) = served_after(0, event).filter(|_| event.may_begin) {
            self.start(first, event.at);
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
    reached: ReachedDepth,
    /// For each set of steps, the chain with the earliest start that has done them.
    chains: BTreeMap<usize, Chain>,
    found: Option<Chain>,
}

impl EarliestChains {
    /// Prepares to find the chain. `length` is in milliseconds.
    pub fn new(length: Option<i64>, reached: ReachedDepth) -> Self {
        Self { length, reached, chains: BTreeMap::new(), found: None }
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
        for (served, after) in going_on(chains, event) {
            let Some(mut chain) = chains.remove(&served) else { continue };
            chain.push(event);
            note(&chain);
            if chains.get(&after).is_none_or(|present| chain.start() < present.start()) {
                chains.insert(after, chain);
            }
        }
        if let Some(first) = served_after(0, event).filter(|_| event.may_begin) {
            let chain = chains.entry(first).or_insert_with(|| Chain::of(event));
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
