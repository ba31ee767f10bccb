//! A list that is empty for most owners.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::item::{Item, SortKey};
use super::list::Paged;
use crate::fault::Fault;
use crate::limits::Limits;

/// A list that is empty for most owners. An empty list takes only a pointer. Stored like a list.
#[derive(Debug, Clone)]
pub struct Rare<T: Item>(Option<Box<Paged<T>>>);

impl<T: Item> Rare<T> {
    const EMPTY: &'static Paged<T> = &Paged::EMPTY;

    /// Like [`Paged::load`].
    ///
    /// # Errors
    /// Returns whatever error `load` returns.
    pub fn load(&mut self, first: SortKey, last: SortKey, load: impl FnMut(u32) -> Result<T::Page, Fault>) -> Result<(), Fault> {
        self.0.as_mut().map_or(Ok(()), |list| list.load(first, last, load))
    }

    /// Like [`Paged::change`].
    pub fn change<R>(&mut self, number: SortKey, limits: &Limits, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        self.0.get_or_insert_default().change(number, limits, change)
    }

    /// Like [`Paged::insert`].
    pub fn insert(&mut self, item: T, limits: &Limits) {
        self.0.get_or_insert_default().insert(item, limits);
    }

    /// Like [`Paged::remove`].
    pub fn remove(&mut self, number: SortKey, limits: &Limits) -> Option<T> {
        self.0.as_mut()?.remove(number, limits)
    }

    /// Like [`Paged::shed`].
    pub(crate) fn shed(&mut self) {
        self.0.iter_mut().for_each(|list| list.shed());
    }

    /// Like [`Paged::saved`].
    pub fn saved(&mut self) {
        self.0.iter_mut().for_each(|list| list.saved());
    }

    /// Returns the approximate heap memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0.as_ref().map_or(0, |list| size_of::<Paged<T>>() + list.weight())
    }
}

impl<T: Item> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Item> Deref for Rare<T> {
    type Target = Paged<T>;

    fn deref(&self) -> &Paged<T> {
        self.0.as_deref().unwrap_or(Self::EMPTY)
    }
}

impl<T: Item> PartialEq for Rare<T> {
    /// A list that became empty equals one that never had an item.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Item> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Item> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Paged::deserialize(deserializer)?;
        Ok(Self((list != Paged::EMPTY).then(|| Box::new(list))))
    }
}
