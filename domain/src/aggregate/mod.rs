//! Counts and sums of events by the values of one property.
//!
//! A [`Grouping`] defines the group and the contribution of an event; a [`Ranking`] selects the
//! first groups. Groups of parts of the events can be merged, so the caller bounds their number in
//! memory.

mod grouping;
mod key;
mod metadata_fields;
mod ranking;
mod total;

pub use grouping::{Grouping, MAX_GROUPS};
pub use key::GroupKey;
pub use metadata_fields::{FieldRanking, MetadataField, MetadataFields, TypeCounts};
pub use ranking::{Aggregate, AggregateRow, GroupSum, Ranking, TopGroups};
pub use total::{GroupFigures, Summand, Total};

#[cfg(test)]
mod tests;
