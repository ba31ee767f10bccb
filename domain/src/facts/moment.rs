//! When events happened.

use serde::{Deserialize, Serialize};

use crate::cache::paged::SortKey;
use crate::time::Instant;

/// When an event happened; two at the same millisecond keep the order in which they were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub time: Instant,
    /// The event's position.
    pub position: u64,
}

impl Moment {
    /// Before all others of an instant.
    #[must_use]
    pub fn first_of(time: Instant) -> Self {
        Self { time, position: 0 }
    }

    /// After all others of an instant.
    #[must_use]
    pub fn last_of(time: Instant) -> Self {
        Self { time, position: u64::MAX }
    }

    /// Its number in lists that are ordered by time.
    #[must_use]
    pub fn sort_key(self) -> SortKey {
        SortKey::from(self.time.0) << 64 | SortKey::from(self.position)
    }
}
