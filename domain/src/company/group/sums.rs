//! The daily sums of a group, and the daily activity of its members.

use serde::{Deserialize, Serialize};

use crate::contribution::Sign;
use crate::facts::SeenOnDay;
use crate::money::Amount;

/// The sums of a group on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSums {
    /// The number of events.
    pub events: u64,
    /// The number of sessions whose entry belongs to the group.
    pub sessions: u64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
}

impl GroupSums {
    /// Adds or takes out `other`.
    pub fn add(&mut self, other: &Self, sign: Sign) {
        match sign {
            Sign::Plus => {
                self.events += other.events;
                self.sessions += other.sessions;
                self.revenue += other.revenue;
            }
            Sign::Minus => {
                self.events = self.events.saturating_sub(other.events);
                self.sessions = self.sessions.saturating_sub(other.sessions);
                self.revenue -= other.revenue;
            }
        }
        self.orders += sign.factor() * other.orders;
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The activity on one day of one member, or of events without consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDay {
    /// The number of events.
    pub events: u32,
    /// The times of the first and the last event.
    pub seen: SeenOnDay,
}
