//! The paged lists of a group: its daily sums, and the daily activity of its members.

use serde::{Deserialize, Serialize};

use crate::cache::paged::{day_sort_key, item_of_page, record_sort_key, sort_key_in_day};
use crate::contribution::Sign;
use crate::facts::SeenOnDay;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::time::Day;

/// The sums of one day.
pub(super) type DaySums = (Day, GroupSums);

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub(super) member: RecordKey,
    /// The last active day.
    pub(super) last: Day,
    /// The number of active days.
    pub(super) days: u32,
}

/// An active day of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveDay {
    pub(super) day: Day,
    pub(super) member: RecordKey,
    pub(super) did: MemberDay,
}

/// A company that is linked to this domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias(pub(super) RecordKey);

/// A sealed page of one of a group's lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum GroupPage {
    /// Daily sums.
    Sums(Vec<DaySums>),
    /// Members.
    Roster(Vec<Membership>),
    /// Active days of members.
    Visits(Vec<ActiveDay>),
    /// Companies linked to this domain.
    Aliases(Vec<Alias>),
}

impl GroupPage {
    /// Returns the number of items.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sums(items) => items.len(),
            Self::Roster(items) => items.len(),
            Self::Visits(items) => items.len(),
            Self::Aliases(items) => items.len(),
        }
    }
}

/// Loads a page of a group by its serial number, for methods that need it in memory.
pub trait LoadGroupPage: FnMut(u32) -> Result<GroupPage, Fault> {}

impl<F: FnMut(u32) -> Result<GroupPage, Fault>> LoadGroupPage for F {}

item_of_page!(DaySums: GroupPage::Sums, 0 of 4, size 1, |sums| day_sort_key(sums.0), |_items| (): ());
item_of_page!(Membership: GroupPage::Roster, 1 of 4, size 1, |known| record_sort_key(known.member), |_items| (): ());
item_of_page!(ActiveDay: GroupPage::Visits, 2 of 4, size 1, |visit| sort_key_in_day(visit.day, visit.member), |_items| (): ());
item_of_page!(Alias: GroupPage::Aliases, 3 of 4, size 1, |alias| record_sort_key(alias.0), |_items| (): ());

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
