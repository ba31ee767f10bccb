//! The parts of a predicate that hold, by the rows of sealed events.

use std::borrow::Cow;

use headcount_archive::ArchiveError;
use headcount_domain::filter::PredicatePart;
use headcount_domain::intake::fields::{BuiltIn, Field, Scalar};
use headcount_domain::{Filter, PartSet, Predicate};

use super::sealed_group::{PropertyColumn, Rows, SealedGroup};

/// The filters of some parts, with the columns of their properties.
pub(super) struct PartColumns<'p>(Vec<(PartSet, Vec<(&'p Filter, PropertyColumn)>)>);

impl<'p> PartColumns<'p> {
    /// Reads the columns.
    pub(super) fn read(
        group: &SealedGroup<'_>,
        parts: impl Iterator<Item = (PartSet, &'p PredicatePart)>,
    ) -> Result<Self, ArchiveError> {
        let column = |filter: &'p Filter| Ok((filter, group.decided(filter.field())?));
        let columns = |(bit, part): (PartSet, &'p PredicatePart)| {
            Ok((bit, part.filters.iter().map(column).collect::<Result<_, ArchiveError>>()?))
        };
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

impl SealedGroup<'_> {
    /// Keeps the events for which the predicate can hold, whatever their sessions are.
    pub(super) fn retain_matching(&self, rows: &mut Rows, predicate: &Predicate) -> Result<(), ArchiveError> {
        if let Some(name) = predicate.event_name().filter(|_| !rows.is_empty()) {
            let names = self.property(&Field::BuiltIn(BuiltIn::Name))?;
            rows.retain(names.tests(|value| *value == Scalar::Text(Cow::Borrowed(name))));
        }
        for filter in predicate.required_of_event() {
            if !rows.is_empty() {
                let values = self.property(filter.field())?;
                rows.retain(values.tests(|value| filter.holds(value)));
            }
        }
        if predicate.has_alternatives() && !rows.is_empty() {
            let columns = PartColumns::read(self, predicate.parts().filter(|(_, part)| part.decider.is_none()))?;
            let mut parts = columns.of_rows();
            rows.retain(|row| predicate.may_hold(parts(row)));
        }
        Ok(())
    }
}
