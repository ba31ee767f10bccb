//! What a group keeps in pages: ordered lists, each with a number to cut it by.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{GroupSums, MemberDay};
use crate::ids::RecordKey;
use crate::paged::{Chunk, Paged};
use crate::records::Fault;
use crate::time::Day;

/// One element of a list; the list is in the order of the numbers.
pub trait Item: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Which of a group's lists it is in: that tells their pages apart.
    const LIST: u32;

    /// Where it belongs.
    fn number(&self) -> i32;

    /// A page of these.
    fn to_page(list: &List<Self>) -> GroupPage;

    /// What is in a page, if it is one of these.
    fn of_page(page: GroupPage) -> Option<List<Self>>;
}

/// Some elements, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct List<T: Item>(pub(super) Vec<T>);

impl<T: Item> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Item> Chunk for List<T> {
    type Digest = ();

    fn items(&self) -> usize {
        self.0.len()
    }

    fn bounds(&self) -> Option<(i32, i32)> {
        self.0.first().zip(self.0.last()).map(|(first, last)| (first.number(), last.number()))
    }

    fn weight(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }

    fn split_before(&mut self, number: i32) -> Self {
        let at = self.0.partition_point(|item| item.number() < number);
        let rest = self.0.split_off(at);
        let mut earlier = std::mem::replace(&mut self.0, rest);
        earlier.shrink_to_fit();
        Self(earlier)
    }

    fn middle(&self) -> i32 {
        let middle = self.0.get(self.0.len() / 2).map_or(i32::MIN, Item::number);
        self.bounds().map_or(middle, |(least, _)| middle.max(least.saturating_add(1)))
    }

    fn digest(&self) {}
}

/// What was counted on one day.
pub(super) type DaySums = (Day, GroupSums);

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub(super) member: RecordKey,
    /// Its last active day.
    pub(super) last: Day,
    /// How many active days it has.
    pub(super) days: u32,
}

/// A day of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    pub(super) day: Day,
    pub(super) member: RecordKey,
    pub(super) did: MemberDay,
}

/// A sealed part of one of a group's lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum GroupPage {
    /// What was counted.
    Sums(List<DaySums>),
    /// Who is a member.
    Roster(List<Membership>),
    /// When members were active.
    Visits(List<Visit>),
}

impl Item for DaySums {
    const LIST: u32 = 0;

    fn number(&self) -> i32 {
        self.0.0
    }

    fn to_page(list: &List<Self>) -> GroupPage {
        GroupPage::Sums(list.clone())
    }

    fn of_page(page: GroupPage) -> Option<List<Self>> {
        if let GroupPage::Sums(list) = page { Some(list) } else { None }
    }
}

impl Item for Membership {
    const LIST: u32 = 1;

    fn number(&self) -> i32 {
        member_number(self.member)
    }

    fn to_page(list: &List<Self>) -> GroupPage {
        GroupPage::Roster(list.clone())
    }

    fn of_page(page: GroupPage) -> Option<List<Self>> {
        if let GroupPage::Roster(list) = page { Some(list) } else { None }
    }
}

impl Item for Visit {
    const LIST: u32 = 2;

    fn number(&self) -> i32 {
        visit_number(self.day, self.member)
    }

    fn to_page(list: &List<Self>) -> GroupPage {
        GroupPage::Visits(list.clone())
    }

    fn of_page(page: GroupPage) -> Option<List<Self>> {
        if let GroupPage::Visits(list) = page { Some(list) } else { None }
    }
}

/// The number of a member: keys are hashes, and this is in the order of their first 32 digits.
pub(super) fn member_number(member: RecordKey) -> i32 {
    let first = u32::try_from(member.0 >> 96).unwrap_or_default();
    (first ^ (1 << 31)).cast_signed()
}

/// Days are cut into so many parts by the first digits of members' keys: one of a hundred thousand members has many pages.
const PARTS_OF_DAY: i32 = 1 << 10;

/// The number of a member's day.
pub(super) fn visit_number(day: Day, member: RecordKey) -> i32 {
    first_number(day).saturating_add(i32::try_from(member.0 >> 118).unwrap_or_default())
}

/// The least number of a day.
pub(super) fn first_number(day: Day) -> i32 {
    day.0.saturating_mul(PARTS_OF_DAY)
}

/// The greatest number of a day.
pub(super) fn last_number(day: Day) -> i32 {
    first_number(day).saturating_add(PARTS_OF_DAY - 1)
}

const LISTS: u32 = 3;

/// Brings the pages of the numbers from `first` to `last` into memory.
pub(super) fn load<T: Item>(
    list: &mut Paged<List<T>>,
    (first, last): (i32, i32),
    mut page: impl FnMut(u32) -> Result<GroupPage, Fault>,
) -> Result<(), Fault> {
    list.load(first, last, |serial| {
        T::of_page(page(serial * LISTS + T::LIST)?).ok_or_else(|| Fault::damaged_store("a page of another list"))
    })
}

/// Hands the pages that changed to `visit`, by the serial number that they have in the record.
pub(super) fn dirty<T: Item>(list: &Paged<List<T>>, visit: &mut dyn FnMut(u32, &GroupPage)) {
    for (serial, chunk) in list.dirty() {
        visit(serial * LISTS + T::LIST, &T::to_page(chunk));
    }
}
