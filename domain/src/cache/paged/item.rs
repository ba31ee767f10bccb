//! The items of paged lists, and the numbers that order them.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::RecordKey;
use crate::time::Day;

/// The position of an item in its list.
pub type SortKey = i128;

/// The sort key of a day, for lists with one item per day.
#[must_use]
pub fn day_sort_key(day: Day) -> SortKey {
    SortKey::from(day.0)
}

/// The sort key of a day's item with this key: the day, then the first 96 bits of the key, which is a hash.
#[must_use]
pub fn sort_key_in_day(day: Day, key: RecordKey) -> SortKey {
    first_in_day(day) | (key.0 >> 32).cast_signed()
}

/// The least sort key of a day in a list of [`sort_key_in_day`].
#[must_use]
pub fn first_in_day(day: Day) -> SortKey {
    SortKey::from(day.0) << 96
}

/// The greatest sort key of a day in a list of [`sort_key_in_day`].
#[must_use]
pub fn last_in_day(day: Day) -> SortKey {
    first_in_day(day) | ((1 << 96) - 1)
}

/// The sort key of a record key.
#[must_use]
pub fn record_sort_key(key: RecordKey) -> SortKey {
    (key.0 ^ (1 << 127)).cast_signed()
}

/// An item of a list; lists are in the order of their sort keys.
pub trait Item: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A page, as it is stored.
    type Page;
    /// The digest of a page, known without reading it, beside its first and last sort key.
    type Digest: Default + Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;
    /// The number of the list among its owner's: keeps the serials of their pages apart.
    const LIST: u32;
    /// How many lists the owner has.
    const LISTS: u32;
    /// How many times larger than usual an item may be.
    const SIZE: usize = 1;

    /// Its position in the list.
    fn sort_key(&self) -> SortKey;

    /// A page of these.
    fn to_page(items: &[Self]) -> Self::Page;

    /// The items of a page, if it is one of this list.
    fn of_page(page: Self::Page) -> Option<Vec<Self>>;

    /// The digest of some items.
    fn digest(items: &[Self]) -> Self::Digest {
        let _ = items;
        Self::Digest::default()
    }
}

/// The items of a list with numbers from `first` to `last`.
pub(super) fn within<T: Item>(items: &[T], first: SortKey, last: SortKey) -> std::slice::Iter<'_, T> {
    let from = place_near_end(items, |item| item.sort_key() < first);
    let to = place_near_end(items, |item| item.sort_key() <= last);
    items[from..to.max(from)].iter()
}

/// As `partition_point`, for lists that mostly grow at their end: looks there first.
pub(crate) fn place_near_end<T>(list: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    match list {
        [] => 0,
        [.., last] if is_before(last) => list.len(),
        [.., other, _] if is_before(other) => list.len() - 1,
        [_] => 0,
        _ => list.partition_point(is_before),
    }
}

/// Adds at the end or in the middle, with little room to spare: most lists are short, and there are millions of them.
pub(crate) fn insert_tight<T>(list: &mut Vec<T>, at: usize, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 2).max(1));
    }
    list.insert(at, item);
}
