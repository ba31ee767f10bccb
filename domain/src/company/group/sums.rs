//! What a group counts on a day, and what its members did.

use serde::{Deserialize, Serialize};

use crate::contribution::Sign;
use crate::facts::SeenOnDay;
use crate::money::Amount;

/// What a group counts on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSums {
    /// How many events.
    pub events: u64,
    /// How many sessions began with an event of its own.
    pub sessions: u64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
    /// How many orders.
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

/// What one member, or nobody, did on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDay {
    /// How many events.
    pub events: u32,
    /// The first and the last of them.
    pub seen: SeenOnDay,
}
