//! Moments: the total order of events.

use serde::{Deserialize, Serialize};

use crate::cache::paged::SortKey;
use crate::time::Instant;

/// The time of an event. Events in the same millisecond are ordered by their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// The time.
    pub time: Instant,
    /// The event's position.
    pub position: u64,
}

impl Moment {
    /// The smallest moment of an instant.
    pub fn first_of(time: Instant) -> Self {
        Self { time, position: 0 }
    }

    /// The greatest moment of an instant.
    pub fn last_of(time: Instant) -> Self {
        Self { time, position: u64::MAX }
    }

    /// The sort key in lists that are ordered by time.
    pub fn sort_key(self) -> SortKey {
        SortKey::from(self.time.0) << 64 | SortKey::from(self.position)
    }
}
