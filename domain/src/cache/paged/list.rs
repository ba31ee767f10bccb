//! A list in pages: the recent part and the sealed pages.

use serde::{Deserialize, Serialize};

use super::item::{Item, SortKey, insert_tight, place_near_end, within};
use super::sealed::Sealed;
use crate::fault::Fault;
use crate::limits::Limits;

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
        Self::EMPTY
    }
}

impl<T: Item> Paged<T> {
    /// A list without items.
    pub(super) const EMPTY: Self = Self { recent: Vec::new(), sealed: None };

    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.items()) + self.recent.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.len() == 0
    }

    /// Returns the part that is stored with the record.
    #[must_use]
    pub fn recent(&self) -> &[T] {
        &self.recent
    }

    /// Returns the smallest sort key.
    #[must_use]
    pub fn first(&self) -> Option<SortKey> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.first());
        sealed.or_else(|| self.recent.first().map(T::sort_key))
    }

    /// Returns the greatest sort key below `number`. The page before it must be
    /// [loaded](Paged::load_before).
    #[must_use]
    pub fn before(&self, number: SortKey) -> Option<SortKey> {
        let at = place_near_end(&self.recent, |item| item.sort_key() < number);
        match at.checked_sub(1) {
            Some(at) => Some(self.recent[at].sort_key()),
            None => self.sealed.as_ref()?.before(number),
        }
    }

    /// Returns the smallest sort key above `number`, whose page must be [loaded](Paged::load).
    #[must_use]
    pub fn after(&self, number: SortKey) -> Option<SortKey> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.after(number));
        sealed.or_else(|| self.recent.get(place_near_end(&self.recent, |item| item.sort_key() <= number)).map(T::sort_key))
    }

    /// Returns the item at `number`, whose page must be [loaded](Paged::load).
    #[must_use]
    pub fn get(&self, number: SortKey) -> Option<&T> {
        let items = self.part(number)?;
        items.get(place_near_end(items, |item| item.sort_key() < number)).filter(|item| item.sort_key() == number)
    }

    /// Returns the part that `number` belongs to, if it is in memory.
    #[must_use]
    pub fn part(&self, number: SortKey) -> Option<&[T]> {
        match &self.sealed {
            Some(sealed) if number < sealed.recent_from => sealed.page(number),
            _ => Some(&self.recent),
        }
    }

    /// Loads the pages of the sort keys from `first` to `last`.
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub fn load(&mut self, first: SortKey, last: SortKey, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(first, last, load))
    }

    /// Loads the page with the greatest sort key below `number`, unless that key is known without
    /// it.
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub(crate) fn load_before(&mut self, number: SortKey, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        if self.recent.first().is_some_and(|first| first.sort_key() < number) {
            return Ok(());
        }
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(number, number, load))
    }

    /// Returns the items from `first` to `last`, in order. They must be [loaded](Paged::load).
    pub fn range(&self, first: SortKey, last: SortKey) -> impl DoubleEndedIterator<Item = &T> {
        let sealed = self.sealed.iter().flat_map(move |sealed| sealed.range(first, last));
        sealed.chain(within(&self.recent, first, last))
    }

    /// Returns the number of items from `first` to `last`, whose pages must be
    /// [loaded](Paged::load).
    #[must_use]
    pub fn count(&self, first: SortKey, last: SortKey) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.count(first, last)) + within(&self.recent, first, last).len()
    }

    /// Returns all items, in order. They must be [loaded](Paged::load).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(SortKey::MIN, SortKey::MAX)
    }

    /// Returns the digests of the sealed pages that begin at or before `number`, the last one
    /// first.
    pub(crate) fn digests_until(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_until(number))
    }

    /// Returns the digests of the sealed pages that begin after `number`, in order.
    pub(crate) fn digests_after(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_after(number))
    }

    /// Changes the part that `number` belongs to, which must be loaded.
    pub fn change<R>(&mut self, number: SortKey, limits: &Limits, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let most = self.most_items(limits);
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

    /// Inserts an item at its position, after items with an equal sort key. Its part must be
    /// loaded.
    pub fn insert(&mut self, item: T, limits: &Limits) {
        let number = item.sort_key();
        self.change(number, limits, |items| {
            let at = place_near_end(items, |other| other.sort_key() <= number);
            insert_tight(items, at, item);
        });
    }

    /// Removes the item at `number`. Its part must be loaded.
    pub fn remove(&mut self, number: SortKey, limits: &Limits) -> Option<T> {
        self.change(number, limits, |items| {
            let at = place_near_end(items, |item| item.sort_key() < number);
            items.get(at).is_some_and(|item| item.sort_key() == number).then(|| items.remove(at))
        })
    }

    /// Removes every trace of the sort keys that `is_gone` selects. The bounds of pages may still
    /// refer to removed items. No current item may have such a key. Returns the serial numbers of
    /// pages that were empty and are gone; `None` if there was no trace.
    #[must_use]
    pub fn forget(&mut self, is_gone: impl Fn(SortKey) -> bool) -> Option<Vec<u32>> {
        let sealed = self.sealed.as_mut().filter(|sealed| sealed.is_bounded_by(&is_gone))?;
        Some(sealed.forget(&is_gone, self.recent.first().map(T::sort_key)))
    }

    /// The number of items at which a page is split. It grows with the number of pages, so that
    /// both a page and the list of pages grow with the square root of the number of items.
    fn most_items(&self, limits: &Limits) -> usize {
        let pages = self.sealed.as_ref().map_or(0, |sealed| sealed.pages());
        (limits.page_items / T::SIZE).max(1).max(pages / 2)
    }

    /// Seals a page with all but the last items of the recent part.
    fn seal(&mut self, most: usize) {
        let kept = (most / 4).max(1);
        // Items with equal sort keys stay together.
        let from = self.recent[self.recent.len() - kept].sort_key();
        let rest = self.recent.split_off(self.recent.partition_point(|item| item.sort_key() < from));
        let page = std::mem::replace(&mut self.recent, rest);
        if !page.is_empty() {
            self.sealed.get_or_insert_default().push(page, from);
        }
    }

    /// Returns the approximate heap memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.recent.capacity() * size_of::<T>() + self.sealed.as_ref().map_or(0, |sealed| sealed.weight())
    }

    /// Whether it has sealed pages, in memory or not.
    pub(crate) fn has_pages(&self) -> bool {
        self.sealed.is_some()
    }

    /// Evicts saved pages that were not used since the last pass.
    pub(crate) fn shed(&mut self) {
        self.sealed.iter_mut().for_each(|sealed| sealed.shed());
    }

    /// Returns the serial numbers of all sealed pages, unique among all lists of the owner.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        self.sealed.iter().flat_map(|sealed| sealed.serials())
    }

    /// Passes the sealed pages that changed since [`Paged::saved`] to `visit`, with their serial
    /// numbers.
    pub fn dirty(&self, visit: &mut dyn FnMut(u32, &T::Page)) {
        self.sealed.iter().for_each(|sealed| sealed.dirty(visit));
    }

    /// Marks all changes as collected by a checkpoint.
    pub fn saved(&mut self) {
        self.sealed.iter_mut().for_each(|sealed| sealed.saved());
    }
}
