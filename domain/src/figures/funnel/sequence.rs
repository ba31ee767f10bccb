//! The deepest chain of a sequence of events.

use super::any_order::{LatestStarts, may_last};
use super::chain::{Chain, ReachedDepth};
use super::event::StepEvent;
use super::{ChainLength, StepOrder};

/// The chains of a sequence that can grow.
#[derive(Debug)]
enum OpenChains {
    /// For each step the chain that ends with it.
    Loose(Vec<Option<Chain>>),
    /// The chains that the last event belongs to.
    Strict(Vec<Chain>),
    Any(LatestStarts),
}

/// Finds the deepest chain of one sequence after the other.
#[derive(Debug)]
pub struct SequenceFold {
    steps: usize,
    /// In milliseconds.
    length: Option<i64>,
    open: OpenChains,
    reached: Option<ReachedDepth>,
    /// The chain that was the first to reach the depth, unless steps come in any order.
    deepest: Option<Chain>,
}

impl SequenceFold {
    /// Prepares to find chains of so many steps.
    pub fn new(steps: usize, length: ChainLength, order: StepOrder) -> Self {
        let length = if let ChainLength::Within(length) = length { Some(length) } else { None };
        let open = match order {
            StepOrder::Loose => OpenChains::Loose(vec![None; steps]),
            StepOrder::Strict => OpenChains::Strict(Vec::new()),
            StepOrder::Any => OpenChains::Any(LatestStarts::default()),
        };
        Self { steps, length, open, reached: None, deepest: None }
    }

    /// Adds the next event of the sequence.
    pub fn add(&mut self, event: &StepEvent<'_>) {
        let Self { steps, length, open, reached, deepest } = self;
        match open {
            OpenChains::Loose(open) => add_loose(open, *length, event, &mut |chain| note(chain, reached, deepest)),
            OpenChains::Strict(open) => {
                add_strict(open, (*steps, *length), event, &mut |chain| note(chain, reached, deepest));
            }
            OpenChains::Any(open) => {
                let depth = open.add(event, *length);
                if depth > reached.map_or(0, |reached| reached.depth) {
                    *reached = Some(ReachedDepth { depth, at: event.at });
                }
            }
        }
    }

    /// Ends the sequence, and returns how deep its chains are, with the first chain that is so
    /// deep. If steps come in any order, [`EarliestChains`](super::EarliestChains) finds the chain.
    pub fn end(&mut self) -> Option<(ReachedDepth, Option<Chain>)> {
        match &mut self.open {
            OpenChains::Loose(open) => open.fill(None),
            OpenChains::Strict(open) => open.clear(),
            OpenChains::Any(open) => open.clear(),
        }
        let deepest = self.deepest.take();
        self.reached.take().map(|reached| (reached, deepest))
    }
}

fn note(chain: &Chain, reached: &mut Option<ReachedDepth>, deepest: &mut Option<Chain>) {
    let depth = chain.links().len();
    if depth <= reached.map_or(0, |reached| reached.depth) {
        return;
    }
    if let Some(last) = chain.links().last() {
        *reached = Some(ReachedDepth { depth, at: last.at });
        deepest.get_or_insert_with(|| chain.clone()).copy_from(chain);
    }
}

/// From the last step down, so that no event serves two steps of a chain. Starts only rise, so the
/// present chain to a step gives way: the new one has as much time left, or more.
fn add_loose(open: &mut [Option<Chain>], length: Option<i64>, event: &StepEvent<'_>, note: &mut dyn FnMut(&Chain)) {
    for step in (1..open.len()).rev().filter(|step| event.fits(*step)) {
        let (before, after) = open.split_at_mut(step);
        let (Some(Some(shorter)), Some(place)) = (before.last(), after.first_mut()) else { continue };
        if !may_last(shorter.start(), event.at, length) {
            continue;
        }
        let chain = place.get_or_insert_with(|| shorter.clone());
        chain.copy_from(shorter);
        chain.push(event);
        note(chain);
    }
    if let Some(first) = open.first_mut().filter(|_| event.may_begin && event.fits(0)) {
        note(first.insert(Chain::of(event)));
    }
}

/// Each chain goes on with this event, or is over.
fn add_strict(open: &mut Vec<Chain>, (steps, length): (usize, Option<i64>), event: &StepEvent<'_>, note: &mut dyn FnMut(&Chain)) {
    open.retain_mut(|chain| {
        let step = chain.links().len();
        if step >= steps || !event.fits(step) || !may_last(chain.start(), event.at, length) {
            return false;
        }
        chain.push(event);
        note(chain);
        true
    });
    if event.may_begin && event.fits(0) {
        let chain = Chain::of(event);
        note(&chain);
        open.push(chain);
    }
}
