//! The groups with the largest figures.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::key::GroupKey;
use super::total::GroupFigures;
use crate::intake::fields::Scalar;
use crate::money::Amount;

/// Groups of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// The first groups: by sum if there is one, else by count, descending.
    pub rows: Vec<AggregateRow>,
    /// The number of all groups.
    pub total_groups: u64,
    /// Whether there are more groups than rows.
    pub truncated: bool,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateRow {
    /// The value that its events share; null for events without the property.
    pub value: Scalar<'static>,
    /// The number of events.
    pub count: u64,
    /// The sum, if the question asks for one.
    pub sum: Option<GroupSum>,
}

/// The sum of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSum {
    /// The sum; `None` if it, or one of the numbers, is too large.
    pub total: Option<Amount>,
    /// The number of events whose property was a number.
    pub summed: u64,
}

/// Selects the groups with the largest figures. Keeps no more groups than it can return.
#[derive(Debug)]
pub struct Ranking {
    sums: bool,
    top: TopGroups<GroupFigures>,
}

impl Ranking {
    /// Selects `limit` groups, by their sums if `sums`, else by their counts.
    pub fn new(sums: bool, limit: usize) -> Self {
        Self { sums, top: TopGroups::new(limit) }
    }

    /// Adds a whole group. Each key must be added once.
    pub fn add(&mut self, key: GroupKey<'_>, group: GroupFigures) {
        let figure = if self.sums { group.total.amount().map(Amount::micros) } else { Some(group.count.into()) };
        self.top.add(figure, key, group);
    }

    /// Returns the answer.
    pub fn finish(self) -> Aggregate {
        let Self { sums, top } = self;
        let total_groups = top.count();
        let row = |(value, group): (_, GroupFigures)| AggregateRow {
            value,
            count: group.count,
            sum: sums.then(|| GroupSum { total: group.total.amount(), summed: group.summed }),
        };
        let rows: Vec<AggregateRow> = top.finish().map(row).collect();
        let truncated = total_groups > rows.len() as u64;
        Aggregate { rows, total_groups, truncated }
    }
}

/// Selects the groups with the largest figures, each with a `G`. Keeps only the selected groups.
#[derive(Debug)]
pub struct TopGroups<G> {
    limit: usize,
    count: u64,
    /// The best groups so far, the worst of them on top.
    best: BinaryHeap<Ranked<G>>,
}

#[derive(Debug)]
struct Ranked<G> {
    figure: RankFigure,
    key: Box<[u8]>,
    group: G,
}

/// The figure by which groups are ordered. Larger is better; a sum that is too large comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RankFigure(Option<i128>);

impl<G> Ranked<G> {
    /// Orders by figure, descending, then by value.
    fn place(&self) -> (Reverse<RankFigure>, (bool, &[u8], bool)) {
        (Reverse(self.figure), GroupKey::read(&self.key).rank())
    }
}

impl<G> PartialEq for Ranked<G> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<G> Eq for Ranked<G> {}

impl<G> PartialOrd for Ranked<G> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<G> Ord for Ranked<G> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl<G> TopGroups<G> {
    /// Selects `limit` groups.
    pub fn new(limit: usize) -> Self {
        Self { limit, count: 0, best: BinaryHeap::new() }
    }

    /// Adds a whole group; without a figure it comes last. Each key must be added once.
    pub fn add(&mut self, figure: Option<i128>, key: GroupKey<'_>, group: G) {
        self.count += 1;
        let figure = RankFigure(figure);
        let is_full = self.best.len() >= self.limit;
        let is_better = |worst: &Ranked<G>| (Reverse(figure), key.rank()) < worst.place();
        if is_full && !self.best.peek().is_some_and(is_better) {
            return;
        }
        self.best.push(Ranked { figure, key: key.as_bytes().into(), group });
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// The number of all groups that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the groups in order, with their values.
    pub fn finish(self) -> impl Iterator<Item = (Scalar<'static>, G)> {
        let ranked = self.best.into_sorted_vec().into_iter();
        ranked.map(|ranked| (GroupKey::read(&ranked.key).value().into_owned(), ranked.group))
    }
}
