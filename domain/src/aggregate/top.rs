//! Selects the top groups.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::key::GroupKey;
use crate::intake::fields::Scalar;

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
    #[must_use]
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
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the groups in order, with their values.
    pub fn finish(self) -> impl Iterator<Item = (Scalar<'static>, G)> {
        let ranked = self.best.into_sorted_vec().into_iter();
        ranked.map(|ranked| (GroupKey::read(&ranked.key).value().into_owned(), ranked.group))
    }
}
