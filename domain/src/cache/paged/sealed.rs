//! The sealed pages of a list, and their digests.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::item::{Item, SortKey, place_by_spread, place_near_end, within};
use crate::fault::Fault;

/// A sealed page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
struct Page<T: Item> {
    /// The smallest sort key that belongs to the page, if it is not `first`.
    from: Option<SortKey>,
    /// The first and the last sort key of its items. An emptied page keeps its last values.
    first: SortKey,
    last: SortKey,
    /// The serial number among the pages of the owner's lists; never reused.
    serial: u32,
    items: u32,
    digest: T::Digest,
    #[serde(skip)]
    chunk: Option<Arc<Vec<T>>>,
    #[serde(skip)]
    dirty: bool,
    /// Whether the page was used since the last pass of [`Sealed::shed`].
    #[serde(skip)]
    used: bool,
}

impl<T: Item> Page<T> {
    fn new(from: SortKey, serial: u32, chunk: Vec<T>) -> Self {
        let mut page = Self {
            from: None,
            first: from,
            last: from,
            serial,
            items: 0,
            digest: T::Digest::default(),
            chunk: None,
            dirty: true,
            used: false,
        };
        page.describe(&chunk);
        page.chunk = Some(Arc::new(chunk));
        page
    }

    /// Returns the smallest sort key that belongs to the page.
    fn from(&self) -> SortKey {
        self.from.unwrap_or(self.first)
    }

    /// Updates the metadata that is available without loading the page.
    fn describe(&mut self, chunk: &[T]) {
        let from = self.from();
        self.items = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        self.digest = T::digest(chunk);
        if let (Some(first), Some(last)) = (chunk.first(), chunk.last()) {
            (self.first, self.last) = (first.sort_key(), last.sort_key());
        }
        self.from = (self.first != from).then_some(from);
    }

    fn items(&self) -> &[T] {
        debug_assert!(self.chunk.is_some(), "pages are loaded before they are read");
        self.chunk.as_deref().map_or(&[], Vec::as_slice)
    }
}

/// The sealed pages of a list, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Sealed<T: Item> {
    pages: Vec<Page<T>>,
    /// The smallest sort key that belongs to the recent part.
    pub(super) recent_from: SortKey,
    next_serial: u32,
    /// The number of pages in memory. Most are the last ones, so passes over them need not visit
    /// all pages.
    #[serde(skip)]
    resident: usize,
}

impl<T: Item> Default for Sealed<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), recent_from: SortKey::MIN, next_serial: 0, resident: 0 }
    }
}

impl<T: Item> Sealed<T> {
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn items(&self) -> usize {
        self.pages.iter().map(|page| page.items as usize).sum()
    }

    pub(super) fn first(&self) -> Option<SortKey> {
        self.pages.iter().find(|page| page.items > 0).map(|page| page.first)
    }

    pub(super) fn before(&self, number: SortKey) -> Option<SortKey> {
        let end = self.pages.partition_point(|page| page.first < number);
        let page = self.pages[..end].iter().rev().find(|page| page.items > 0)?;
        if page.last < number {
            return Some(page.last);
        }
        let items = page.items();
        items[..place_near_end(items, |item| item.sort_key() < number)].last().map(T::sort_key)
    }

    pub(super) fn after(&self, number: SortKey) -> Option<SortKey> {
        let end = self.begun(number);
        let in_its_page = self.pages[..end].last().filter(|page| page.items > 0 && page.last > number).and_then(|page| {
            let items = page.items();
            items.get(place_near_end(items, |item| item.sort_key() <= number)).map(T::sort_key)
        });
        in_its_page.or_else(|| self.pages[end..].iter().find(|page| page.items > 0).map(|page| page.first))
    }

    pub(super) fn count(&self, first: SortKey, last: SortKey) -> usize {
        let pages = &self.pages[self.places(first, last)];
        let in_page = |page: &Page<T>| match first <= page.first && page.last <= last {
            true => page.items as usize,
            false => within(page.items(), first, last).len(),
        };
        pages.iter().map(in_page).sum()
    }

    pub(super) fn page(&self, number: SortKey) -> Option<&[T]> {
        let page = self.pages.get(self.place(number))?;
        debug_assert!(page.chunk.is_some(), "pages are loaded before they are read");
        page.chunk.as_deref().map(Vec::as_slice)
    }

    /// Returns the index of the page that `number` belongs to.
    fn place(&self, number: SortKey) -> usize {
        // The first page begins before all sort keys, and the end of the last page is known.
        let later = self.pages.get(1..).unwrap_or_default();
        place_by_spread(later, number.saturating_add(1), Page::from)
    }

    /// Returns the number of pages that begin at or before `number`: usually all of them, since
    /// `number` usually belongs to the recent part.
    fn begun(&self, number: SortKey) -> usize {
        if number >= self.recent_from {
            return self.pages.len();
        }
        self.pages.partition_point(|page| page.first <= number)
    }

    /// Returns the indexes of the pages that may contain sort keys from `first` to `last`.
    fn places(&self, first: SortKey, last: SortKey) -> std::ops::Range<usize> {
        // Nearly all changes are to the recent part. A search would touch memory that is not in the
        // processor's cache.
        if first >= self.recent_from {
            return self.pages.len()..self.pages.len();
        }
        let from = self.place(first);
        let to =
            if first == last { (from + 1).min(self.pages.len()) } else { self.pages.partition_point(|page| page.from() <= last) };
        from..to.max(from)
    }

    pub(super) fn load(
        &mut self,
        first: SortKey,
        last: SortKey,
        mut load: impl FnMut(u32) -> Result<T::Page, Fault>,
    ) -> Result<(), Fault> {
        let places = self.places(first, last);
        for page in &mut self.pages[places] {
            page.used = true;
            if page.chunk.is_none() {
                let items = T::of_page(load(page.serial * T::LISTS + T::LIST)?);
                page.chunk = Some(Arc::new(items.ok_or_else(|| Fault::damaged_store("a page of another list"))?));
                self.resident += 1;
            }
        }
        Ok(())
    }

    pub(super) fn range(&self, first: SortKey, last: SortKey) -> impl DoubleEndedIterator<Item = &T> {
        self.pages[self.places(first, last)].iter().flat_map(move |page| within(page.items(), first, last))
    }

    pub(super) fn digests_until(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        let end = self.begun(number);
        self.pages[..end].iter().rev().map(|page| &page.digest)
    }

    pub(super) fn digests_after(&self, number: SortKey) -> impl Iterator<Item = &T::Digest> {
        let end = self.begun(number);
        self.pages[end..].iter().map(|page| &page.digest)
    }

    /// Changes the page that `number` belongs to, and splits it if it then has more than twice
    /// `most` items.
    pub(super) fn change<R>(&mut self, number: SortKey, most: usize, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let at = self.place(number);
        let page = &mut self.pages[at];
        debug_assert!(page.chunk.is_some(), "pages are loaded before they are changed");
        self.resident += usize::from(page.chunk.is_none());
        let mut chunk = page.chunk.take().unwrap_or_default();
        let items = Arc::make_mut(&mut chunk);
        let result = change(items);
        page.describe(items);
        page.dirty = true;
        page.chunk = Some(chunk);
        if page.items as usize > 2 * most {
            self.cut(at);
        }
        result
    }

    /// Appends a page; the recent part then begins at `recent_from`.
    pub(super) fn push(&mut self, chunk: Vec<T>, recent_from: SortKey) {
        let from = if self.pages.is_empty() { SortKey::MIN } else { self.recent_from };
        self.recent_from = recent_from;
        let serial = self.next_serial;
        self.next_serial += 1;
        self.pages.push(Page::new(from, serial, chunk));
        self.resident += 1;
    }

    /// Whether a bound of a page is a sort key that `is_gone` selects.
    pub(super) fn is_bounded_by(&self, is_gone: &dyn Fn(SortKey) -> bool) -> bool {
        let mut bounds = self.pages.iter().flat_map(|page| [page.from(), page.first, page.last]);
        is_gone(self.recent_from) || bounds.any(is_gone)
    }

    /// See [`super::Paged::forget`]. `recent` is the sort key of the first item of the recent part.
    pub(super) fn forget(&mut self, is_gone: &dyn Fn(SortKey) -> bool, recent: Option<SortKey>) -> Vec<u32> {
        let is_left_over = |page: &Page<T>| page.items == 0 && [page.from(), page.first, page.last].into_iter().any(is_gone);
        let removed: Vec<u32> =
            self.pages.iter().filter(|page| is_left_over(page)).map(|page| page.serial * T::LISTS + T::LIST).collect();
        self.pages.retain(|page| !is_left_over(page));
        self.resident = self.pages.iter().filter(|page| page.chunk.is_some()).count();
        // No item has the sort keys before the first item, so they belong to the page before.
        self.pages.iter_mut().filter(|page| is_gone(page.from())).for_each(|page| page.from = None);
        if let Some(first) = self.pages.first_mut() {
            first.from = (first.first != SortKey::MIN).then_some(SortKey::MIN);
        }
        let end = self.pages.last().map_or(SortKey::MIN, |page| page.last.max(page.from()).saturating_add(1));
        if is_gone(self.recent_from) || self.pages.is_empty() {
            self.recent_from = recent.filter(|_| !self.pages.is_empty()).unwrap_or(end);
        }
        removed
    }

    /// Splits a page. Items with equal sort keys stay together.
    fn cut(&mut self, at: usize) {
        let page = &mut self.pages[at];
        let Some(chunk) = &mut page.chunk else { return };
        let middle = chunk[chunk.len() / 2].sort_key();
        let place = chunk.partition_point(|item| item.sort_key() < middle);
        if place == 0 {
            return;
        }
        let mut earlier = std::mem::take(Arc::make_mut(chunk));
        let later = earlier.split_off(place);
        earlier.shrink_to_fit();
        page.describe(&earlier);
        page.chunk = Some(Arc::new(earlier));
        let serial = self.next_serial;
        self.next_serial += 1;
        self.pages.insert(at + 1, Page::new(middle, serial, later));
        self.resident += 1;
    }

    pub(super) fn weight(&self) -> usize {
        let resident = self.resident_pages().filter_map(|page| page.chunk.as_ref());
        let resident: usize = resident.map(|chunk| chunk.capacity() * size_of::<T>() + size_of::<Vec<T>>() + 16).sum();
        size_of::<Self>() + self.pages.capacity() * size_of::<Page<T>>() + resident
    }

    /// Returns the pages in memory, the last one first.
    fn resident_pages(&self) -> impl Iterator<Item = &Page<T>> {
        self.pages.iter().rev().filter(|page| page.chunk.is_some()).take(self.resident)
    }

    /// Like [`Sealed::resident_pages`], for changing them.
    fn resident_pages_mut(&mut self) -> impl Iterator<Item = &mut Page<T>> {
        self.pages.iter_mut().rev().filter(|page| page.chunk.is_some()).take(self.resident)
    }

    pub(super) fn shed(&mut self) {
        let mut evicted = 0;
        for page in self.resident_pages_mut().filter(|page| !page.dirty) {
            if !std::mem::take(&mut page.used) {
                page.chunk = None;
                evicted += 1;
            }
        }
        self.resident -= evicted;
    }

    pub(super) fn serials(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().map(|page| page.serial * T::LISTS + T::LIST)
    }

    pub(super) fn dirty(&self, visit: &mut dyn FnMut(u32, &T::Page)) {
        for page in self.resident_pages().filter(|page| page.dirty) {
            visit(page.serial * T::LISTS + T::LIST, &T::to_page(page.items()));
        }
    }

    pub(super) fn saved(&mut self) {
        self.resident_pages_mut().for_each(|page| page.dirty = false);
    }
}
