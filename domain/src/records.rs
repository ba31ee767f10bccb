//! What a project keeps by key, and where records that are not in memory come from.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;
use crate::ids::RecordKey;

/// One kind of record.
pub trait Record: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// Its key space on disk: unique, never reused.
    const SPACE: u8;
    /// The key space of its pages; that of the record itself where it has none.
    const PAGE_SPACE: u8 = Self::SPACE;
    /// Its name in the list of what a store consists of.
    const NAME: &'static str;
    /// The version of the record and its pages. Raise it when either changes its shape, or becomes another one of the same events:
    /// stores of an earlier version are rebuilt.
    const VERSION: u8 = 1;
    /// What its pages hold; `()` where it has none.
    type Page: Clone + Serialize + DeserializeOwned;

    /// What it takes in memory, in bytes, roughly.
    fn weight(&self) -> usize;

    /// Lets go of pages that are saved: they come back on demand.
    fn shed(&mut self) {}

    /// Hands its pages that changed since [`Record::saved`] to `visit`, with the keys that they are kept under.
    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &Self::Page)) {
        let _ = (key, visit);
    }

    /// All changes are on their way to the store.
    fn saved(&mut self) {}
}

/// Where records that are not in memory come from.
pub trait Source {
    /// The saved record of `key`.
    ///
    /// # Errors
    /// The store could not be read.
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault>;

    /// A saved page, by the key that [`page_key`] makes.
    ///
    /// # Errors
    /// The store could not be read, or has no such page.
    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault>;
}

/// A source that has nothing: for a project that was never saved.
#[derive(Debug, Clone, Copy)]
pub struct NoSource;

impl Source for NoSource {
    fn record<T: Record>(&self, _: RecordKey) -> Result<Option<T>, Fault> {
        Ok(None)
    }

    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault> {
        Err(Fault::defect(format!("page {key:?} was never saved")))
    }
}

/// The key of page number `serial` of the thing that `owner` names: owners are keyed hashes, so these are as good.
#[must_use]
pub fn page_key(owner: RecordKey, serial: u32) -> RecordKey {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    RecordKey(owner.0 ^ (u128::from(serial) + 1).wrapping_mul(ODD))
}
