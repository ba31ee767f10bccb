//! The index of e-mail addresses: all identities that ever had an address.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cache::paged::{Item, Paged, SortKey, record_sort_key};
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::limits::Limits;
use crate::records::{Record, page_key};

/// An identity that had an e-mail address; it may have been linked to another identity since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner(RecordKey);

impl Item for Owner {
    type Page = Vec<Owner>;
    type Digest = ();
    const LIST: u32 = 0;
    const LISTS: u32 = 1;

    fn sort_key(&self) -> SortKey {
        record_sort_key(self.0)
    }

    fn to_page(items: &[Self]) -> Vec<Self> {
        items.to_vec()
    }

    fn of_page(page: Vec<Self>) -> Option<Vec<Self>> {
        Some(page)
    }
}

/// The identities that ever had an e-mail address, in order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EmailOwners(Paged<Owner>);

impl EmailOwners {
    /// Creates the list with its first owner.
    pub fn new(owner: RecordKey, limits: &Limits) -> Self {
        let mut owners = Self::default();
        owners.add(owner, limits);
        owners
    }

    /// Whether the list contains `owner`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub fn has(&mut self, owner: RecordKey, page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>) -> Result<bool, Fault> {
        let number = record_sort_key(owner);
        self.0.load(number, number, page)?;
        Ok(self.0.get(number).is_some())
    }

    /// Adds an owner that the list [does not contain](EmailOwners::has).
    pub fn add(&mut self, owner: RecordKey, limits: &Limits) {
        self.0.insert(Owner(owner), limits);
    }

    /// Returns the owners among `keys`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub fn among(
        &mut self,
        keys: &BTreeSet<RecordKey>,
        mut page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>,
    ) -> Result<Vec<RecordKey>, Fault> {
        if self.0.len() <= keys.len() {
            self.0.load(SortKey::MIN, SortKey::MAX, page)?;
            return Ok(self.0.iter().map(|owner| owner.0).filter(|owner| keys.contains(owner)).collect());
        }
        let mut owners = Vec::new();
        for key in keys {
            if self.has(*key, &mut page)? {
                owners.push(*key);
            }
        }
        Ok(owners)
    }

    /// Removes owners and every trace of their keys. Returns the serial numbers of removed pages.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub fn remove(
        &mut self,
        owners: &[RecordKey],
        limits: &Limits,
        mut page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>,
    ) -> Result<Vec<u32>, Fault> {
        let numbers: BTreeSet<SortKey> = owners.iter().map(|owner| record_sort_key(*owner)).collect();
        for number in &numbers {
            self.0.load(*number, *number, &mut page)?;
            self.0.remove(*number, limits);
        }
        Ok(self.0.forget(|number| numbers.contains(&number)).unwrap_or_default())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the serial numbers of all pages.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        self.0.serials()
    }

    /// Returns up to `most` owners, from the key `from` on.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub fn from(
        &mut self,
        from: RecordKey,
        most: usize,
        mut page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>,
    ) -> Result<Vec<RecordKey>, Fault> {
        let mut owners = Vec::new();
        let mut next = Some(record_sort_key(from));
        while let Some(number) = next.filter(|_| owners.len() < most) {
            // Load one by one, as more may span many pages.
            self.0.load(number, number, &mut page)?;
            owners.extend(self.0.get(number).map(|owner| owner.0));
            next = self.0.after(number);
        }
        Ok(owners)
    }
}

impl Record for EmailOwners {
    const SPACE: u8 = 8;
    const PAGE_SPACE: u8 = 12;
    const NAME: &'static str = "email";
    type Page = Vec<Owner>;

    fn weight(&self) -> usize {
        size_of::<Self>() + self.0.weight()
    }

    fn shed(&mut self) {
        self.0.shed();
    }

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &Vec<Owner>)) {
        self.0.dirty(&mut |serial, page| visit(page_key(key, serial), page));
    }

    fn saved(&mut self) {
        self.0.saved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_come_in_parts() {
        let unsaved = |_: u32| Err(Fault::defect("nothing was saved"));
        let key = |number: u128| RecordKey(number << 100);
        let mut owners = EmailOwners::new(key(0), &Limits::DEFAULT);
        for number in 1..5_000 {
            assert!(!owners.has(key(number), unsaved).unwrap());
            owners.add(key(number), &Limits::DEFAULT);
            assert!(owners.has(key(0), unsaved).unwrap() && owners.has(key(number), unsaved).unwrap());
        }
        assert_eq!(owners.from(key(0), 9_999, unsaved).unwrap(), (0..5_000).map(key).collect::<Vec<_>>());
        assert_eq!(owners.from(RecordKey(key(4_000).0 + 1), 3, unsaved).unwrap(), (4_001..4_004).map(key).collect::<Vec<_>>());
    }
}
