//! The group that an event names.

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;

/// The group that an event names. A company is identified by the sent key, which may be linked to a
/// domain.
///
/// Lists by group are sorted by type and number instead of key. Numbers are assigned in order of
/// appearance, so new groups go to the end of a list, and its other saved pages stay unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupRef {
    /// The key of the group's record.
    key: RecordKey,
    /// The first 64 bits of the key of the group's type.
    kind: u64,
    /// The group's number within its type, in this project.
    number: u32,
    is_company: bool,
}

impl GroupRef {
    /// Creates a reference to the `number`-th group of its type.
    #[must_use]
    pub fn new(key: RecordKey, kind: RecordKey, number: u32, is_company: bool) -> Self {
        Self { key, kind: kind.high(), number, is_company }
    }

    /// Returns the key, if the group is a company.
    #[must_use]
    pub fn company(self) -> Option<RecordKey> {
        self.is_company.then_some(self.key)
    }

    /// Returns the key, if the group is not a company.
    #[must_use]
    pub fn group(self) -> Option<RecordKey> {
        (!self.is_company).then_some(self.key)
    }

    /// The position among the groups of a day, starting at 1.
    pub(super) fn place(self) -> u128 {
        u128::from(self.kind) << 32 | u128::from(self.number.saturating_add(1))
    }
}
