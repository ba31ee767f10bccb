//! What is known of one thing over all time, as an ordered list that is cut into pages, so that a record of a million items is
//! never read or written as a whole.
//!
//! Every item has a *number* that orders the list: a day and a key, or a moment. The pages cover all numbers without gaps: each
//! from its first item up to the next one's, and the *recent* part covers the rest. The recent part changes all the time and is
//! kept with the record itself; sealed pages are records of their own, which come and go by themselves.

mod sealed;

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::paged::sealed::Sealed;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::time::Day;

/// How many items a page holds before it is cut.
static PAGE_ITEMS: AtomicUsize = AtomicUsize::new(1024);

/// Changes how many items a page holds: answers don't depend on it, and tests show that with tiny pages.
pub fn set_page_items(items: usize) {
    PAGE_ITEMS.store(items, Ordering::Relaxed);
}

/// How many items a page holds before it is cut.
pub(crate) fn page_items() -> usize {
    PAGE_ITEMS.load(Ordering::Relaxed)
}

/// Where an item belongs in its list.
pub type Number = i128;

/// The number of a day, or of something that a day has one of.
#[must_use]
pub fn number_of_day(day: Day) -> Number {
    Number::from(day.0)
}

/// The number of a day's item with this key: the day, and the first 96 bits of the key, which is a hash.
#[must_use]
pub fn number_in_day(day: Day, key: RecordKey) -> Number {
    first_in_day(day) | (key.0 >> 32).cast_signed()
}

/// The least number of a day in a list of [`number_in_day`].
#[must_use]
pub fn first_in_day(day: Day) -> Number {
    Number::from(day.0) << 96
}

/// The greatest number of a day in a list of [`number_in_day`].
#[must_use]
pub fn last_in_day(day: Day) -> Number {
    first_in_day(day) | ((1 << 96) - 1)
}

/// The number of a key.
#[must_use]
pub fn number_of_key(key: RecordKey) -> Number {
    (key.0 ^ (1 << 127)).cast_signed()
}

/// One item of a list; lists are in the order of the numbers.
pub trait Item: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A page, as it is stored.
    type Page;
    /// What is known of a page without reading it, beside its first and last number.
    type Digest: Default + Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;
    /// Which of its owner's lists it is in: that tells their pages apart.
    const LIST: u32;
    /// How many lists the owner has.
    const LISTS: u32;
    /// How many times larger than usual an item can become.
    const SIZE: usize = 1;

    /// Where it belongs.
    fn number(&self) -> Number;

    /// A page of these.
    fn to_page(items: &[Self]) -> Self::Page;

    /// What is in a page, if it is one of these.
    fn of_page(page: Self::Page) -> Option<Vec<Self>>;

    /// What is to be known of some items without reading them.
    fn digest(items: &[Self]) -> Self::Digest {
        let _ = items;
        Self::Digest::default()
    }
}

/// A list in pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Paged<T: Item> {
    recent: Vec<T>,
    /// Boxed, since most lists are short.
    sealed: Option<Box<Sealed<T>>>,
}

impl<T: Item> Default for Paged<T> {
    fn default() -> Self {
        Self { recent: Vec::new(), sealed: None }
    }
}

impl<T: Item> Paged<T> {
    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.items()) + self.recent.len()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.len() == 0
    }

    /// The part that is kept with the record.
    #[must_use]
    pub fn recent(&self) -> &[T] {
        &self.recent
    }

    /// The least number of all.
    #[must_use]
    pub fn first(&self) -> Option<Number> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.first());
        sealed.or_else(|| self.recent.first().map(T::number))
    }

    /// The greatest number below `number`. The page before it must have been [loaded](Paged::load_before).
    #[must_use]
    pub fn before(&self, number: Number) -> Option<Number> {
        let at = place_near_end(&self.recent, |item| item.number() < number);
        match at.checked_sub(1) {
            Some(at) => Some(self.recent[at].number()),
            None => self.sealed.as_ref()?.before(number),
        }
    }

    /// The least number above `number`, whose page must have been [loaded](Paged::load).
    #[must_use]
    pub fn after(&self, number: Number) -> Option<Number> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.after(number));
        sealed.or_else(|| self.recent.get(place_near_end(&self.recent, |item| item.number() <= number)).map(T::number))
    }

    /// The item of `number`, whose page must have been [loaded](Paged::load).
    #[must_use]
    pub fn get(&self, number: Number) -> Option<&T> {
        let items = self.part(number)?;
        items.get(place_near_end(items, |item| item.number() < number)).filter(|item| item.number() == number)
    }

    /// The part that `number` belongs to, if it is in memory.
    #[must_use]
    pub fn part(&self, number: Number) -> Option<&[T]> {
        match &self.sealed {
            Some(sealed) if number < sealed.recent_from => sealed.page(number),
            _ => Some(&self.recent),
        }
    }

    /// Brings the pages of the numbers from `first` to `last` into memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load(&mut self, first: Number, last: Number, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(first, last, load))
    }

    /// Brings the page that has the greatest number below `number` into memory, if that number is not known without it.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load_before(&mut self, number: Number, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        if self.recent.first().is_some_and(|first| first.number() < number) {
            return Ok(());
        }
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(number, number, load))
    }

    /// The items with numbers from `first` to `last`, in order. They must have been [loaded](Paged::load).
    pub fn range(&self, first: Number, last: Number) -> impl DoubleEndedIterator<Item = &T> {
        let sealed = self.sealed.iter().flat_map(move |sealed| sealed.range(first, last));
        sealed.chain(within(&self.recent, first, last))
    }

    /// How many items have numbers from `first` to `last`, whose pages must have been [loaded](Paged::load).
    #[must_use]
    pub fn count(&self, first: Number, last: Number) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.count(first, last)) + within(&self.recent, first, last).len()
    }

    /// All items, in order. They must have been [loaded](Paged::load).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(Number::MIN, Number::MAX)
    }

    /// The digests of the sealed pages that begin at `number` or before, the last one first.
    pub fn digests_until(&self, number: Number) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_until(number))
    }

    /// The digests of the sealed pages that begin after `number`, in order.
    pub fn digests_after(&self, number: Number) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_after(number))
    }

    /// Changes the part that `number` belongs to, which must have been loaded.
    pub fn change<R>(&mut self, number: Number, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let most = self.most_items();
        match &mut self.sealed {
            Some(sealed) if number < sealed.recent_from => return sealed.change(number, most, change),
            _ => {}
        }
        let result = change(&mut self.recent);
        if self.recent.len() > most {
            self.seal(most);
        }
        result
    }

    /// Puts an item in its place, into a part that must have been loaded. Of the same number it is the last.
    pub fn insert(&mut self, item: T) {
        let number = item.number();
        self.change(number, |items| {
            let at = place_near_end(items, |other| other.number() <= number);
            insert_tight(items, at, item);
        });
    }

    /// Takes out the item of `number`, from a part that must have been loaded.
    pub fn remove(&mut self, number: Number) -> Option<T> {
        self.change(number, |items| {
            let at = place_near_end(items, |item| item.number() < number);
            items.get(at).is_some_and(|item| item.number() == number).then(|| items.remove(at))
        })
    }

    /// How many items a page holds before it is cut: more, the more pages there are, so that neither a page nor the list of pages
    /// grows faster than the square root of the number of items.
    fn most_items(&self) -> usize {
        let pages = self.sealed.as_ref().map_or(0, |sealed| sealed.pages());
        (page_items() / T::SIZE).max(1).max(pages / 2)
    }

    /// Makes a page of all but the last items of the recent part.
    fn seal(&mut self, most: usize) {
        let kept = (most / 4).max(1);
        // Items of one number stay together.
        let from = self.recent[self.recent.len() - kept].number();
        let rest = self.recent.split_off(self.recent.partition_point(|item| item.number() < from));
        let page = std::mem::replace(&mut self.recent, rest);
        if !page.is_empty() {
            self.sealed.get_or_insert_default().push(page, from);
        }
    }

    /// What it takes in memory beside itself, in bytes, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.recent.capacity() * size_of::<T>() + self.sealed.as_ref().map_or(0, |sealed| sealed.weight())
    }

    /// Lets go of the sealed pages that are saved and were not asked for since this last passed over them.
    pub fn shed(&mut self) {
        self.sealed.iter_mut().for_each(|sealed| sealed.shed());
    }

    /// The names of all sealed pages, among those of all lists of the owner.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        self.sealed.iter().flat_map(|sealed| sealed.serials())
    }

    /// Hands the sealed pages that changed since [`Paged::saved`] to `visit`, with their names.
    pub fn dirty(&self, visit: &mut dyn FnMut(u32, &T::Page)) {
        self.sealed.iter().for_each(|sealed| sealed.dirty(visit));
    }

    /// All changes are on their way to the store.
    pub fn saved(&mut self) {
        self.sealed.iter_mut().for_each(|sealed| sealed.saved());
    }
}

/// The items of a list with numbers from `first` to `last`.
fn within<T: Item>(items: &[T], first: Number, last: Number) -> std::slice::Iter<'_, T> {
    let from = place_near_end(items, |item| item.number() < first);
    let to = place_near_end(items, |item| item.number() <= last);
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

#[cfg(test)]
mod tests;
