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
    /// The first groups: by sum if one was asked for, else by count, descending.
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
    /// The sum, if one was asked for.
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

/// Selects the groups with the largest figures. It keeps as many groups as there can be rows.
#[derive(Debug)]
pub struct Ranking {
    sums: bool,
    limit: usize,
    groups: u64,
    /// The best groups so far, the worst of them on top.
    best: BinaryHeap<Ranked>,
}

#[derive(Debug)]
struct Ranked {
    figure: RankFigure,
    key: Box<[u8]>,
    group: GroupFigures,
}

/// The figure by which groups are ordered. Larger is better; a sum that is too large comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RankFigure(Option<i128>);

impl Ranked {
    /// Orders by figure, descending, then by value.
    fn place(&self) -> (Reverse<RankFigure>, (bool, &[u8], bool)) {
        (Reverse(self.figure), GroupKey::read(&self.key).rank())
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl Ranking {
    /// Selects `limit` groups, by their sums if `sums`, else by their counts.
    #[must_use]
    pub fn new(sums: bool, limit: usize) -> Self {
        Self { sums, limit, groups: 0, best: BinaryHeap::new() }
    }

    /// Adds a whole group. Each key must be added once.
    pub fn add(&mut self, key: GroupKey<'_>, group: GroupFigures) {
        self.groups += 1;
        let figure = if self.sums { group.total.amount().map(Amount::micros) } else { Some(group.count.into()) };
        let figure = RankFigure(figure);
        let is_full = self.best.len() >= self.limit;
        let is_better = |worst: &Ranked| (Reverse(figure), key.rank()) < worst.place();
        if is_full && !self.best.peek().is_some_and(is_better) {
            return;
        }
        self.best.push(Ranked { figure, key: key.as_bytes().into(), group });
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// Returns the answer.
    #[must_use]
    pub fn finish(self) -> Aggregate {
        let sums = self.sums;
        let row = |ranked: Ranked| AggregateRow {
            value: GroupKey::read(&ranked.key).value().into_owned(),
            count: ranked.group.count,
            sum: sums.then(|| GroupSum { total: ranked.group.total.amount(), summed: ranked.group.summed }),
        };
        let rows: Vec<AggregateRow> = self.best.into_sorted_vec().into_iter().map(row).collect();
        let truncated = self.groups > rows.len() as u64;
        Aggregate { rows, total_groups: self.groups, truncated }
    }
}
