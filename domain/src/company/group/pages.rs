//! The paged lists of a group.

use serde::{Deserialize, Serialize};

use super::sums::{GroupSums, MemberDay};
use crate::cache::paged::{day_sort_key, item_of_page, record_sort_key, sort_key_in_day};
use crate::fault::Fault;
use crate::ids::RecordKey;
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
