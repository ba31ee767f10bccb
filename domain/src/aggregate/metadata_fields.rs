//! The properties in the metadata of events, with their types and numbers of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::total::{GroupFigures, Total};
use crate::intake::fields::ScalarType;

/// The first properties, up to a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataFields {
    /// The properties, sorted by number of events, descending; ties by path.
    pub rows: Vec<MetadataField>,
    /// Whether there are more.
    pub truncated: bool,
}

/// A property in the metadata of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataField {
    /// Its path.
    pub path: String,
    /// The types of its values, in the order of [`ScalarType::ALL`].
    pub types: Vec<ScalarType>,
    /// The number of events that have it.
    pub events: u64,
}

/// The number of events with a property, by the type of its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeCounts {
    counts: [u64; ScalarType::ALL.len()],
}

impl TypeCounts {
    /// Returns the counts of `events` events with values of one type.
    pub fn of(kind: ScalarType, events: u64) -> Self {
        let mut counts = Self::default();
        counts.counts[kind as usize] = events;
        counts
    }

    /// Returns the figures of a group that contains these counts.
    pub fn to_group(self) -> GroupFigures {
        let [booleans, numbers, texts] = self.counts;
        GroupFigures { count: booleans, summed: numbers, total: Total { low: texts.into(), ..Total::default() } }
    }

    /// The inverse of [`TypeCounts::to_group`].
    pub fn of_group(group: GroupFigures) -> Self {
        Self { counts: [group.count, group.summed, u64::try_from(group.total.low).unwrap_or(u64::MAX)] }
    }

    fn events(self) -> u64 {
        self.counts.into_iter().fold(0, u64::saturating_add)
    }

    fn types(self) -> Vec<ScalarType> {
        let counted = ScalarType::ALL.iter().zip(self.counts).filter(|(_, events)| *events > 0);
        counted.map(|(kind, _)| *kind).collect()
    }
}

/// Selects the properties with the most events. Keeps no more than it can return.
#[derive(Debug)]
pub struct FieldRanking {
    limit: usize,
    added: u64,
    /// The best so far, the worst of them on top.
    best: BinaryHeap<(Reverse<u64>, Box<str>, [bool; ScalarType::ALL.len()])>,
}

impl FieldRanking {
    /// Prepares to select `limit` properties.
    pub fn new(limit: usize) -> Self {
        Self { limit, added: 0, best: BinaryHeap::new() }
    }

    /// Adds a property. Each property must be added once.
    pub fn add(&mut self, path: &str, counts: TypeCounts) {
        self.added += 1;
        let events = Reverse(counts.events());
        let is_worse = |(least, last, _): &(Reverse<u64>, Box<str>, _)| (*least, &**last) < (events, path);
        if self.best.len() >= self.limit && self.best.peek().is_none_or(is_worse) {
            return;
        }
        self.best.push((events, path.into(), counts.counts.map(|events| events > 0)));
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// Returns the properties.
    pub fn finish(self) -> MetadataFields {
        let row = |(Reverse(events), path, has): (_, Box<str>, [bool; ScalarType::ALL.len()])| {
            let types = TypeCounts { counts: has.map(u64::from) }.types();
            MetadataField { path: path.into(), types, events }
        };
        let rows: Vec<_> = self.best.into_sorted_vec().into_iter().map(row).collect();
        MetadataFields { truncated: self.added > rows.len() as u64, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_the_most_events_come_first() {
        let all = [("b", 2), ("a", 2), ("z", 9), ("c", 1), ("d", 2)];
        let of = |limit| {
            let mut ranking = FieldRanking::new(limit);
            all.iter().for_each(|(path, events)| ranking.add(path, TypeCounts::of(ScalarType::Text, *events)));
            let fields = ranking.finish();
            (fields.rows.iter().map(|row| row.path.clone()).collect::<Vec<_>>().concat(), fields.truncated)
        };
        for (limit, expected) in
            [(1, ("z", true)), (2, ("za", true)), (4, ("zabd", true)), (5, ("zabdc", false)), (9, ("zabdc", false))]
        {
            assert_eq!(of(limit), (expected.0.to_owned(), expected.1), "{limit}");
        }
    }

    #[test]
    fn counts_are_summed_by_type() {
        let mut group = TypeCounts::of(ScalarType::Text, 2).to_group();
        group.merge(TypeCounts::of(ScalarType::Boolean, 3).to_group());
        let counts = TypeCounts::of_group(group);
        assert_eq!((counts.events(), counts.types()), (5, vec![ScalarType::Boolean, ScalarType::Text]));
        group.merge(TypeCounts::of(ScalarType::Number, 1).to_group());
        assert_eq!(TypeCounts::of_group(group).types(), ScalarType::ALL);
    }
}
