//! The items of paged lists, and their sort keys.

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

/// The sort key of an item on a day: the day, then the first 96 bits of its key, which is a hash.
#[must_use]
pub fn sort_key_in_day(day: Day, key: RecordKey) -> SortKey {
    first_in_day(day) | (key.0 >> 32).cast_signed()
}

/// The smallest sort key of a day in a list of [`sort_key_in_day`].
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

/// An item of a paged list, ordered by sort key.
pub trait Item: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The stored form of a page.
    type Page;
    /// The digest of a page, available without loading it, in addition to its first and last sort
    /// key.
    type Digest: Default + Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;
    /// The index of the list among its owner's lists, which keeps the serial numbers of their pages
    /// apart.
    const LIST: u32;
    /// The number of lists of the owner.
    const LISTS: u32;
    /// The factor by which an item may be larger than usual.
    const SIZE: usize = 1;

    /// Returns the position in the list.
    fn sort_key(&self) -> SortKey;

    /// Creates a page from items.
    fn to_page(items: &[Self]) -> Self::Page;

    /// Returns the items of a page, if it belongs to this list.
    fn of_page(page: Self::Page) -> Option<Vec<Self>>;

    /// Computes the digest of items.
    fn digest(items: &[Self]) -> Self::Digest {
        let _ = items;
        Self::Digest::default()
    }
}

/// Makes a type the item of one list of several, whose pages are values of one enumeration.
macro_rules! item_of_page {
    (
        $item:ty: $page:ident::$list:ident, $number:literal of $lists:literal, size $size:literal, |$it:ident| $key:expr,
        |$items:ident| $digest:ty: $described:expr
    ) => {
        impl $crate::cache::paged::Item for $item {
            type Page = $page;
            type Digest = $digest;
            const LIST: u32 = $number;
            const LISTS: u32 = $lists;
            const SIZE: usize = $size;

            fn sort_key(&self) -> $crate::cache::paged::SortKey {
                let $it = self;
                $key
            }

            fn to_page(items: &[Self]) -> $page {
                $page::$list(items.to_vec())
            }

            fn of_page(page: $page) -> Option<Vec<Self>> {
                if let $page::$list(items) = page { Some(items) } else { None }
            }

            fn digest($items: &[Self]) -> $digest {
                $described
            }
        }
    };
}
pub(crate) use item_of_page;

/// Returns the items with sort keys from `first` to `last`.
pub(super) fn within<T: Item>(items: &[T], first: SortKey, last: SortKey) -> std::slice::Iter<'_, T> {
    let from = place_near_end(items, |item| item.sort_key() < first);
    let to = place_near_end(items, |item| item.sort_key() <= last);
    items[from..to.max(from)].iter()
}

/// Like `partition_point`, but searches the end first, because lists mostly grow there.
pub(crate) fn place_near_end<T>(list: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    match list {
        [] => 0,
        [.., last] if is_before(last) => list.len(),
        [.., other, _] if is_before(other) => list.len() - 1,
        [_] => 0,
        _ => list.partition_point(is_before),
    }
}

/// Like `partition_point` for the items with sort keys below `number`, if keys are spread evenly,
/// as hashes are. It estimates the place from the first and last key. A binary search would wait
/// for memory at each step.
pub(crate) fn place_by_spread<T>(list: &[T], number: SortKey, sort_key: impl Fn(&T) -> SortKey) -> usize {
    let is_before = |at: usize| list.get(at).is_some_and(|item| sort_key(item) < number);
    let (Some(first), Some(last)) = (list.first().map(&sort_key), list.last().map(&sort_key)) else { return 0 };
    if number <= first {
        return 0;
    }
    if last < number {
        return list.len();
    }
    let guess = share_of(list.len(), number.abs_diff(first), last.abs_diff(first));
    // All items below `from` are before it, and none from `to` on.
    let (mut from, mut to, mut step) = (guess + 1, list.len(), 1);
    if is_before(guess) {
        while from + step < to && is_before(from + step) {
            (from, step) = (from + step + 1, step * 2);
        }
        to = to.min(from + step);
    } else {
        to = guess;
        while step <= to && !is_before(to - step) {
            (to, step) = (to - step, step * 2);
        }
        from = to.saturating_sub(step);
    }
    from + list[from..to].partition_point(|item| sort_key(item) < number)
}

/// Returns about `part / whole` of `len`, but less than `len`. `part` is at most `whole`, which is
/// not 0.
fn share_of(len: usize, part: u128, whole: u128) -> usize {
    let shift = (u128::BITS - whole.leading_zeros()).saturating_sub(32);
    let (part, whole) = ((part >> shift) as u64, (whole >> shift) as u64);
    let share = (len as u64).saturating_mul(part) / whole.max(1);
    usize::try_from(share).unwrap_or(usize::MAX).min(len - 1)
}

/// Inserts an item with little spare capacity, because most lists are short and there are millions
/// of them.
pub(crate) fn insert_tight<T>(list: &mut Vec<T>, at: usize, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(1));
    }
    list.insert(at, item);
}
