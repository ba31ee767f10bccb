//! Small values that the owner of a partition writes often, and its next owner continues from.

use std::fmt::Debug;

use crate::documents::DocumentsError;

/// A store of small values. Its functions block, so tasks must not call them.
pub trait SharedValues: Debug + Send + Sync {
    /// Returns a value and its revision; `None` if there is none, which counts as revision 0. An
    /// empty value counts as none, too, but has a revision.
    ///
    /// # Errors
    /// Returns a [`DocumentsError`].
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError>;

    /// Replaces the value of this revision. Returns the new revision.
    ///
    /// # Errors
    /// Returns [`DocumentsError::Conflict`] if there is another revision;
    /// [`DocumentsError::Unavailable`]: it was not written. After other errors it may have been.
    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError>;

    /// Removes a value.
    ///
    /// # Errors
    /// Returns a [`DocumentsError`].
    fn remove(&self, key: &str) -> Result<(), DocumentsError>;

    /// Returns the keys that begin with `prefix`, without it: nothing, or a text that ends with a
    /// dot.
    ///
    /// # Errors
    /// Returns a [`DocumentsError`].
    fn keys(&self, prefix: &str) -> Result<Vec<String>, DocumentsError>;

    /// The maximum size of a value in bytes.
    fn max_bytes(&self) -> usize;
}
