//! The keyed records of a project, and the source of records that are not in memory.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;
use crate::ids::RecordKey;

/// A kind of record.
pub trait Record: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// The key space on disk: unique, never reused.
    const SPACE: u8;
    /// The key space of its pages; the record's own if it has none.
    const PAGE_SPACE: u8 = Self::SPACE;
    /// The name in the list of stored types.
    const NAME: &'static str;
    /// The version of the record and its pages. Raise it when their encoding changes, or when the
    /// same events produce another record; stores of an earlier version are then rebuilt.
    const VERSION: u8 = 1;
    /// The type of its pages; `()` if it has none.
    type Page: Clone + Serialize + DeserializeOwned;

    /// Returns the approximate memory in bytes.
    fn weight(&self) -> usize;

    /// Whether it may have pages, in memory or not. Without pages, there is nothing to
    /// [`shed`](Self::shed).
    fn has_pages(&self) -> bool {
        Self::PAGE_SPACE != Self::SPACE
    }

    /// Evicts saved pages, which are loaded again on demand.
    fn shed(&mut self) {}

    /// Passes the pages that changed since [`Record::saved`] to `visit`, with their keys.
    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &Self::Page)) {
        let _ = (key, visit);
    }

    /// Marks all changes as collected by a checkpoint.
    fn saved(&mut self) {}
}

/// The source of records that are not in memory.
pub trait Source {
    /// Reads the saved record of `key`.
    ///
    /// # Errors
    /// The store could not be read.
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault>;

    /// Reads a saved page, by its [`page_key`].
    ///
    /// # Errors
    /// The store could not be read, or has no such page.
    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault>;
}

/// All saved records of a project.
pub trait SavedRecords: Source {
    /// Passes every saved record of a kind to `visit`.
    ///
    /// # Errors
    /// Returns the error of `visit`, or fails if the store can't be read.
    fn each_record<T: Record>(&self, visit: &mut dyn FnMut(RecordKey, T) -> Result<(), Fault>) -> Result<(), Fault>;

    /// Passes every saved page of the records of a kind to `visit`.
    ///
    /// # Errors
    /// Returns the error of `visit`, or fails if the store can't be read.
    fn each_page<T: Record>(&self, visit: &mut dyn FnMut(T::Page) -> Result<(), Fault>) -> Result<(), Fault>;
}

/// An empty source, for a project that was never saved.
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

/// Returns the key of page `serial` of the list owner `owner`. Owners are keyed hashes, so page
/// keys are evenly distributed, too.
pub fn page_key(owner: RecordKey, serial: u32) -> RecordKey {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    RecordKey(owner.0 ^ (u128::from(serial) + 1).wrapping_mul(ODD))
}
