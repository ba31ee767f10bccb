//! The grouping of events by a property, and the sum of another property.

use super::key::GroupKey;
use super::total::{GroupFigures, Summand};
use crate::intake::event::Event;
use crate::intake::fields::{Entry, Field, MetadataPath};
use crate::intake::submission::Invalid;

/// The maximum number of groups of an answer.
pub const MAX_GROUPS: usize = 1_000;

/// The property that defines the groups, and the property to sum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grouping {
    by: Field,
    sum: Option<MetadataPath>,
}

impl Grouping {
    /// Groups by `by` and sums `sum`.
    ///
    /// # Errors
    /// [`Invalid`] with the code `unsupported_combination` if a field of the session is combined
    /// with a sum.
    pub fn new(by: Field, sum: Option<MetadataPath>) -> Result<Self, Invalid> {
        if sum.is_some() && by.of_session() {
            let message = format!("`sum_metadata_field` can't be combined with `group_by` {by}");
            return Err(Invalid { code: "unsupported_combination", ..Invalid::parameter("sum_metadata_field", message) });
        }
        Ok(Self { by, sum })
    }

    /// The property that is grouped by.
    pub fn by(&self) -> &Field {
        &self.by
    }

    /// The property that is summed.
    pub fn sum(&self) -> Option<&MetadataPath> {
        self.sum.as_ref()
    }

    /// Whether the groups are values of the session's entry, so that all events of a session are in
    /// one group.
    pub fn is_by_session(&self) -> bool {
        self.by.of_session()
    }

    /// Whether numbers are summed.
    pub fn sums(&self) -> bool {
        self.sum.is_some()
    }

    /// Appends the [`GroupKey`] of `event` to `key`. Fields of the session are null:
    /// [`Grouping::write_session_key`].
    pub fn write_key(&self, event: &Event, key: &mut Vec<u8>) {
        GroupKey::write(&self.by.value(event, None), key);
    }

    /// Appends the [`GroupKey`] of all events of a session with this `entry` to `key`.
    pub fn write_session_key(&self, entry: &Entry, key: &mut Vec<u8>) {
        GroupKey::write(&self.by.value_of_session(Some(entry)), key);
    }

    /// Returns what `event` adds to its group.
    pub fn contribution(&self, event: &Event) -> GroupFigures {
        let (Some(path), Some(metadata)) = (&self.sum, event.details.metadata.as_deref()) else {
            return GroupFigures::of(Summand::None);
        };
        GroupFigures::of(Summand::of(&path.find(metadata)))
    }
}
