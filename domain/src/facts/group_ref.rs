//! The group that an event names.

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;

/// The group that an event named. A company goes by the key that was sent, which may be linked to a domain.
///
/// Lists by group are in the order of type and number, not of the key: groups are numbered as they come, so new ones go to
/// the end of a list, and its other pages stay as they are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupRef {
    /// The key of its record.
    key: RecordKey,
    /// The first 64 bits of the key of its type.
    kind: u64,
    /// Its number among those of its type, in this project.
    number: u32,
    is_company: bool,
}

impl GroupRef {
    /// A group that is the `number`-th of its type.
    #[must_use]
    pub fn new(key: RecordKey, kind: RecordKey, number: u32, is_company: bool) -> Self {
        Self { key, kind: kind.high(), number, is_company }
    }

    /// The company, if it is one.
    #[must_use]
    pub fn company(self) -> Option<RecordKey> {
        self.is_company.then_some(self.key)
    }

    /// The group, if it is no company.
    #[must_use]
    pub fn group(self) -> Option<RecordKey> {
        (!self.is_company).then_some(self.key)
    }

    /// Its place among the groups of a day, counted from 1.
    pub(super) fn place(self) -> u128 {
        u128::from(self.kind) << 32 | u128::from(self.number.saturating_add(1))
    }
}
