//! The groups with the largest figures.

use super::key::GroupKey;
use super::top::TopGroups;
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
    #[must_use]
    pub fn new(sums: bool, limit: usize) -> Self {
        Self { sums, top: TopGroups::new(limit) }
    }

    /// Adds a whole group. Each key must be added once.
    pub fn add(&mut self, key: GroupKey<'_>, group: GroupFigures) {
        let figure = if self.sums { group.total.amount().map(Amount::micros) } else { Some(group.count.into()) };
        self.top.add(figure, key, group);
    }

    /// Returns the answer.
    #[must_use]
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
