//! Splits runs of orders before a change of touches.

use super::dirty_range::{DirtyRange, Times};
use super::entity::Facts;
use super::load::LoadFactsPage;
use super::order::Order;
use super::runs::{Run, Runs};
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::limits::Limits;
use crate::moment::Moment;
use crate::time::Instant;

/// A change of runs that leaves all touches unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Recut {
    /// The run to replace, if any.
    old: Option<Run>,
    /// The remaining part of that run.
    left: Option<Run>,
    /// The time of a new run.
    new: Option<(Instant, Instant)>,
    change: DirtyRange,
}

impl Recut {
    /// Returns the range that the change touches.
    #[must_use]
    pub fn change(&self) -> DirtyRange {
        self.change
    }
}

fn times(from: Instant, to: Instant) -> Times {
    Times { from: Moment::first_of(from), to: Moment::last_of(to) }
}

fn before(time: Instant) -> Instant {
    Instant(time.0.saturating_sub(1))
}

impl Facts {
    /// Returns the key of the run that contains an order at `time`, if any.
    #[must_use]
    pub fn run_at(&self, time: Instant) -> Option<RecordKey> {
        let runs = self.order_runs.as_ref()?;
        runs.at(time).map(|run| runs.key(run))
    }

    /// Returns the keys and start times of the runs in `times`.
    pub fn runs(&self, times: Times) -> impl Iterator<Item = (RecordKey, Instant)> {
        let runs = self.order_runs.iter().filter(move |_| !times.is_empty());
        runs.flat_map(move |runs| runs.within(times).iter().map(|run| (runs.key(*run), run.from)))
    }

    /// Returns the parts of `times` that no run covers.
    pub(crate) fn between_runs(&self, within: Times) -> Vec<Times> {
        let (mut gaps, mut from) = (Vec::new(), within.from);
        if within.is_empty() {
            return gaps;
        }
        for run in self.order_runs.iter().flat_map(|runs| runs.within(within)) {
            if from.time < run.from {
                gaps.push(Times { from, to: Moment::last_of(before(run.from)) });
            }
            if run.to >= within.to.time {
                return gaps;
            }
            from = Moment::first_of(Instant(run.to.0.saturating_add(1)));
        }
        gaps.push(Times { from, to: within.to });
        gaps
    }

    /// Returns the orders in `times` that are in no run, in order.
    pub(crate) fn inline_orders(&self, times: Times) -> impl Iterator<Item = &Order> {
        // Most entities have no orders.
        let gaps = if self.orders.is_empty() { Vec::new() } else { self.between_runs(times) };
        gaps.into_iter().flat_map(|gap| self.orders(gap))
    }

    /// Whether there are no runs, and too few orders for one.
    fn has_few_orders(&self, most: usize) -> bool {
        self.order_runs.is_none() && self.orders.len() <= most
    }

    fn count_orders(&self, times: Times) -> usize {
        self.orders.count(times.from.sort_key(), times.to.sort_key())
    }

    /// Returns the next change of runs that `change`, a change of touches, requires. A run must not
    /// contain a new touch, and only a few orders outside of runs may change their touch. Requires
    /// [`Facts::load_recut`].
    pub(crate) fn recut(&self, change: DirtyRange, limits: &Limits) -> Option<Recut> {
        let most = limits.max_inline_run;
        if change.inline.is_empty() || self.has_few_orders(most) {
            return None;
        }
        let cut = change.new_touch.and_then(|at| Some((at, self.order_runs.as_ref()?.at(at)?)));
        if let Some((at, run)) = cut.filter(|(at, run)| run.from < *at) {
            return Some(self.cut(run, at, most));
        }
        let tail = Times { from: Moment::first_of(change.last_touch), to: change.inline.to };
        let gap = self.between_runs(tail).into_iter().find(|gap| self.count_orders(*gap) > most)?;
        let change = DirtyRange { orders: gap, runs: gap, ..DirtyRange::NONE };
        Some(Recut { old: None, left: None, new: Some((gap.from.time, gap.to.time)), change })
    }

    /// Splits `run` in two at `at`. The smaller part becomes a new run, or no run if it is small.
    fn cut(&self, run: Run, at: Instant, most: usize) -> Recut {
        let (earlier, later) = (Run { to: before(at), ..run }, Run { from: at, ..run });
        let count = |run: Run| self.count_orders(times(run.from, run.to));
        let (earlier_count, later_count) = (count(earlier), count(later));
        let (small, large, small_count, large_count) = if earlier_count <= later_count {
            (earlier, later, earlier_count, later_count)
        } else {
            (later, earlier, later_count, earlier_count)
        };
        // Drop runs with few orders, so that there are never many more runs than the orders
        // require.
        let is_left = large_count > most / 2;
        let moved = if is_left { small } else { run };
        let change = DirtyRange { orders: times(moved.from, moved.to), runs: times(run.from, run.to), ..DirtyRange::NONE };
        let new = (small_count > most).then_some((small.from, small.to));
        Recut { old: Some(run), left: is_left.then_some(large), new, change }
    }

    /// Applies the result of [`Facts::recut`]. `owner` is the entity's own key.
    pub(crate) fn apply_recut(&mut self, recut: &Recut, owner: RecordKey) {
        let runs = self.order_runs.get_or_insert_with(|| Box::new(Runs { owner, next_serial: 0, runs: Vec::new() }));
        if let Some(old) = recut.old {
            runs.runs.retain(|run| run.serial != old.serial);
        }
        recut.left.into_iter().for_each(|run| runs.insert(run));
        if let Some((from, to)) = recut.new {
            let serial = runs.next_serial;
            runs.next_serial += 1;
            runs.insert(Run { from, to, serial });
        }
    }

    /// Loads the pages that [`Facts::recut`] requires.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_recut(&mut self, change: DirtyRange, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        if change.inline.is_empty() || self.has_few_orders(0) {
            return Ok(());
        }
        let cut = change.new_touch.and_then(|at| Some((at, self.order_runs.as_ref()?.at(at)?)));
        let mut ends = Vec::new();
        if let Some((at, run)) = cut {
            ends.extend([times(run.from, before(at)), times(at, run.to)]);
        }
        let tail = Times { from: Moment::first_of(change.last_touch), to: change.inline.to };
        ends.extend(self.between_runs(tail));
        for end in ends.iter().flat_map(|times| [times.from, times.to]) {
            self.orders.load(end.sort_key(), end.sort_key(), &mut page)?;
            let number = Moment::last_of(end.time).sort_key();
            self.touches.load(number, number, &mut page)?;
        }
        Ok(())
    }
}
