//! What is known of one thing over all time, cut into pages by day, so that a record of a million events is never read or
//! written as a whole.
//!
//! Every item has a *number* (a day). The pages cover all numbers without gaps: each from its `from` up to the next
//! one's, and the *recent* part covers the rest. Recent days change all the time and are kept with the record itself;
//! sealed pages are records of their own, which come and go by themselves.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::records::Fault;

/// How many items a page holds before it is cut, if it holds more than one day.
static PAGE_ITEMS: AtomicUsize = AtomicUsize::new(1024);

/// Changes how many items a page holds: answers don't depend on it, and tests show that with tiny pages.
pub fn set_page_items(items: usize) {
    PAGE_ITEMS.store(items, Ordering::Relaxed);
}

/// How many items a page holds before it is cut.
pub(crate) fn page_items() -> usize {
    PAGE_ITEMS.load(Ordering::Relaxed)
}

/// What a page holds.
pub trait Chunk: Default + Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What is known of a page without reading it.
    type Digest: Default + Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;

    /// How many items there are.
    fn items(&self) -> usize;

    /// The least and the greatest number that something has; `None` if there is nothing.
    fn bounds(&self) -> Option<(i32, i32)>;

    /// What it takes in memory, in bytes, roughly.
    fn weight(&self) -> usize;

    /// Takes out everything with a number below `number`.
    fn split_before(&mut self, number: i32) -> Self;

    /// A number that about half of the items lie below.
    fn middle(&self) -> i32;

    /// What is to be known of it without reading it.
    fn digest(&self) -> Self::Digest;
}

/// A sealed page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Page<C: Chunk> {
    /// The least number that belongs here.
    from: i32,
    /// Its name among the pages of its record; never used again.
    serial: u32,
    items: u32,
    digest: C::Digest,
    #[serde(skip)]
    chunk: Option<Arc<C>>,
    #[serde(skip)]
    dirty: bool,
}

/// Items in pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Paged<C: Chunk> {
    pages: Vec<Page<C>>,
    recent: C,
    /// The least number that belongs to the recent part.
    recent_from: i32,
    next_serial: u32,
}

impl<C: Chunk> Default for Paged<C> {
    fn default() -> Self {
        Self { pages: Vec::new(), recent: C::default(), recent_from: i32::MIN, next_serial: 0 }
    }
}

impl<C: Chunk> Paged<C> {
    /// How many items there are.
    #[must_use]
    pub fn items(&self) -> usize {
        self.pages.iter().map(|page| page.items as usize).sum::<usize>() + self.recent.items()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items() == 0
    }

    /// The least number that belongs to the recent part: `i32::MIN` while nothing is sealed.
    #[must_use]
    pub fn recent_from(&self) -> i32 {
        self.recent_from
    }

    /// The part that is kept with the record.
    #[must_use]
    pub fn recent(&self) -> &C {
        &self.recent
    }

    /// The digests of the sealed pages, in order.
    pub fn digests(&self) -> impl DoubleEndedIterator<Item = &C::Digest> {
        self.pages.iter().map(|page| &page.digest)
    }

    /// The names of all sealed pages.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().map(|page| page.serial)
    }

    /// Brings the pages that hold numbers from `first` to `last` into memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load(&mut self, first: i32, last: i32, mut load: impl FnMut(u32) -> Result<C, Fault>) -> Result<(), Fault> {
        let (from, to) = self.pages_of(first, last);
        for page in &mut self.pages[from..to] {
            if page.chunk.is_none() {
                page.chunk = Some(Arc::new(load(page.serial)?));
            }
        }
        Ok(())
    }

    /// The parts that may hold numbers from `first` to `last`, in order. They must have been [loaded](Paged::load).
    pub fn chunks(&self, first: i32, last: i32) -> impl DoubleEndedIterator<Item = &C> {
        let (from, to) = self.pages_of(first, last);
        debug_assert!(self.pages[from..to].iter().all(|page| page.chunk.is_some()), "pages are loaded before they are read");
        let sealed = self.pages[from..to].iter().filter_map(|page| page.chunk.as_deref());
        let recent = (last >= self.recent_from).then_some(&self.recent);
        sealed.chain(recent)
    }

    /// Changes the part that `number` belongs to, which must have been loaded.
    pub fn change<R>(&mut self, number: i32, change: impl FnOnce(&mut C) -> R) -> R {
        if number >= self.recent_from {
            return change(&mut self.recent);
        }
        let at = self.pages.partition_point(|page| page.from <= number).saturating_sub(1);
        let page = &mut self.pages[at];
        debug_assert!(page.chunk.is_some(), "pages are loaded before they are changed");
        let chunk = Arc::make_mut(page.chunk.get_or_insert_default());
        let result = change(chunk);
        page.dirty = true;
        page.items = narrow(chunk.items());
        page.digest = chunk.digest();
        if chunk.items() > 2 * page_items() {
            self.cut(at);
        }
        result
    }

    /// Seals what lies below `number`, if the recent part has grown past its limit.
    pub fn seal_before(&mut self, number: i32) {
        if self.recent.items() <= page_items() || self.recent.bounds().is_none_or(|(least, _)| least >= number) {
            return;
        }
        let chunk = self.recent.split_before(number);
        let from = if self.pages.is_empty() { i32::MIN } else { self.recent_from };
        self.recent_from = number;
        self.pages.push(Page {
            from,
            serial: self.next_serial,
            items: narrow(chunk.items()),
            digest: chunk.digest(),
            chunk: Some(Arc::new(chunk)),
            dirty: true,
        });
        self.next_serial += 1;
        self.cut(self.pages.len() - 1);
    }

    /// Cuts a page in two while it is too large and holds more than one day.
    fn cut(&mut self, at: usize) {
        let page = &mut self.pages[at];
        let Some(chunk) = &mut page.chunk else { return };
        // One day can't be cut, however much it holds; its middle is not looked for again with every change.
        if chunk.items() <= page_items() || chunk.bounds().is_none_or(|(least, greatest)| least == greatest) {
            return;
        }
        let middle = chunk.middle();
        if chunk.bounds().is_none_or(|(least, greatest)| least >= middle || middle > greatest) {
            return;
        }
        let mut later = std::mem::take(Arc::make_mut(chunk));
        let earlier = later.split_before(middle);
        page.items = narrow(earlier.items());
        page.digest = earlier.digest();
        page.chunk = Some(Arc::new(earlier));
        page.dirty = true;
        let serial = self.next_serial;
        self.next_serial += 1;
        let (items, digest) = (narrow(later.items()), later.digest());
        self.pages.insert(at + 1, Page { from: middle, serial, items, digest, chunk: Some(Arc::new(later)), dirty: true });
        self.cut(at + 1);
        self.cut(at);
    }

    /// What it takes in memory beside itself, in bytes, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        let resident = self.pages.iter().filter_map(|page| page.chunk.as_ref()).map(|chunk| chunk.weight() + size_of::<C>());
        self.pages.capacity() * size_of::<Page<C>>() + self.recent.weight() + resident.sum::<usize>()
    }

    /// Lets go of the sealed pages that are saved.
    pub fn shed(&mut self) {
        for page in self.pages.iter_mut().filter(|page| !page.dirty) {
            page.chunk = None;
        }
    }

    /// The sealed pages that changed since [`Paged::saved`].
    pub fn dirty(&self) -> impl Iterator<Item = (u32, &C)> {
        self.pages.iter().filter(|page| page.dirty).filter_map(|page| Some((page.serial, page.chunk.as_deref()?)))
    }

    /// All changes are on their way to the store.
    pub fn saved(&mut self) {
        for page in &mut self.pages {
            page.dirty = false;
        }
    }

    fn pages_of(&self, first: i32, last: i32) -> (usize, usize) {
        if self.pages.is_empty() {
            return (0, 0);
        }
        let from = self.pages.partition_point(|page| page.from <= first).saturating_sub(1);
        let from = if first >= self.recent_from { self.pages.len() } else { from };
        let to = self.pages.partition_point(|page| page.from <= last);
        (from, to.max(from))
    }
}

fn narrow(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
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
