//! A list in pages: the recent part and the sealed ones.

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
    pub fn first(&self) -> Option<SortKey> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.first());
        sealed.or_else(|| self.recent.first().map(T::sort_key))
    }

    /// The greatest number below `number`. The page before it must have been [loaded](Paged::load_before).
    #[must_use]
    pub fn before(&self, number: SortKey) -> Option<SortKey> {
        let at = place_near_end(&self.recent, |item| item.sort_key() < number);
        match at.checked_sub(1) {
            Some(at) => Some(self.recent[at].sort_key()),
            None => self.sealed.as_ref()?.before(number),
        }
    }

    /// The least number above `number`, whose page must have been [loaded](Paged::load).
    #[must_use]
    pub fn after(&self, number: SortKey) -> Option<SortKey> {
        let sealed = self.sealed.as_ref().and_then(|sealed| sealed.after(number));
        sealed.or_else(|| self.recent.get(place_near_end(&self.recent, |item| item.sort_key() <= number)).map(T::sort_key))
    }

    /// The item of `number`, whose page must have been [loaded](Paged::load).
    #[must_use]
    pub fn get(&self, number: SortKey) -> Option<&T> {
        let items = self.part(number)?;
        items.get(place_near_end(items, |item| item.sort_key() < number)).filter(|item| item.sort_key() == number)
    }

    /// The part that `number` belongs to, if it is in memory.
    #[must_use]
    pub fn part(&self, number: SortKey) -> Option<&[T]> {
        match &self.sealed {
            Some(sealed) if number < sealed.recent_from => sealed.page(number),
            _ => Some(&self.recent),
        }
    }

    /// Brings the pages of the numbers from `first` to `last` into memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load(&mut self, first: SortKey, last: SortKey, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(first, last, load))
    }

    /// Brings the page that has the greatest number below `number` into memory, if that number is not known without it.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load_before(&mut self, number: SortKey, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        if self.recent.first().is_some_and(|first| first.sort_key() < number) {
            return Ok(());
        }
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.load(number, number, load))
    }

    /// The items with numbers from `first` to `last`, in order. They must have been [loaded](Paged::load).
    pub fn range(&self, first: SortKey, last: SortKey) -> impl DoubleEndedIterator<Item = &T> {
        let sealed = self.sealed.iter().flat_map(move |sealed| sealed.range(first, last));
        sealed.chain(within(&self.recent, first, last))
    }

    /// How many items have numbers from `first` to `last`, whose pages must have been [loaded](Paged::load).
    #[must_use]
    pub fn count(&self, first: SortKey, last: SortKey) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.count(first, last)) + within(&self.recent, first, last).len()
    }

    /// All items, in order. They must have been [loaded](Paged::load).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(SortKey::MIN, SortKey::MAX)
    }

    /// The digests of the sealed pages that begin at `number` or before, the last one first.
    pub fn digests_until(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_until(number))
    }

    /// The digests of the sealed pages that begin after `number`, in order.
    pub fn digests_after(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        self.sealed.iter().flat_map(move |sealed| sealed.digests_after(number))
    }

    /// Changes the part that `number` belongs to, which must have been loaded.
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

    /// Puts an item in its place, into a part that must have been loaded. Of the same number it is the last.
    pub fn insert(&mut self, item: T, limits: &Limits) {
        let number = item.sort_key();
        self.change(number, limits, |items| {
            let at = place_near_end(items, |other| other.sort_key() <= number);
            insert_tight(items, at, item);
        });
    }

    /// Takes out the item of `number`, from a part that must have been loaded.
    pub fn remove(&mut self, number: SortKey, limits: &Limits) -> Option<T> {
        self.change(number, limits, |items| {
            let at = place_near_end(items, |item| item.sort_key() < number);
            items.get(at).is_some_and(|item| item.sort_key() == number).then(|| items.remove(at))
        })
    }

    /// How many items a page holds before it is cut: more, the more pages there are, so that neither a page nor the list of pages
    /// grows faster than the square root of the number of items.
    fn most_items(&self, limits: &Limits) -> usize {
        let pages = self.sealed.as_ref().map_or(0, |sealed| sealed.pages());
        (limits.page_items / T::SIZE).max(1).max(pages / 2)
    }

    /// Makes a page of all but the last items of the recent part.
    fn seal(&mut self, most: usize) {
        let kept = (most / 4).max(1);
        // Items of one number stay together.
        let from = self.recent[self.recent.len() - kept].sort_key();
        let rest = self.recent.split_off(self.recent.partition_point(|item| item.sort_key() < from));
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
