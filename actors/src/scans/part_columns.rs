//! The parts of a predicate that hold, by the rows of sealed events.

use headcount_archive::ArchiveError;
use headcount_domain::filter::Part;
use headcount_domain::{Filter, PartSet};

use super::sealed_group::{PropertyColumn, SealedGroup};

/// The filters of some parts, with the columns of their properties.
pub(super) struct PartColumns<'p>(Vec<(PartSet, Vec<(&'p Filter, PropertyColumn)>)>);

impl<'p> PartColumns<'p> {
    /// Reads the columns.
    pub(super) fn read(group: &SealedGroup<'_>, parts: impl Iterator<Item = (PartSet, &'p Part)>) -> Result<Self, ArchiveError> {
        let column = |filter: &'p Filter| Ok((filter, group.decided(filter.field())?));
        let columns =
            |(bit, part): (PartSet, &'p Part)| Ok((bit, part.filters.iter().map(column).collect::<Result<_, ArchiveError>>()?));
        parts.map(columns).collect::<Result<_, ArchiveError>>().map(Self)
    }

    /// Returns the parts that hold for an event, and those that hold for its session if the event
    /// decides them.
    pub(super) fn of_rows(&self) -> impl FnMut(usize) -> PartSet {
        let mut parts = Vec::new();
        for (bit, columns) in &self.0 {
            let tests: Vec<_> = columns.iter().map(|(filter, column)| column.tests(|value| filter.holds(value))).collect();
            parts.push((*bit, tests));
        }
        move |row| {
            let mut held = PartSet::default();
            for (bit, tests) in &mut parts {
                if tests.iter_mut().all(|test| test(row)) {
                    held = held | *bit;
                }
            }
            held
        }
    }
}
