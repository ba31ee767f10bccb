//! Small values that the owner of a partition writes often, and its next owner goes on from.

use std::fmt::Debug;

use crate::documents::DocumentsError;

/// Where it is kept how far something has come. Its functions block, and must not be called by tasks.
pub trait SharedValues: Debug + Send + Sync {
    /// Returns a value and its revision; `None` if there is none, and its revision is 0.
    ///
    /// # Errors
    /// [`DocumentsError`].
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError>;

    /// Replaces the value of this revision. Returns the new revision.
    ///
    /// # Errors
    /// [`DocumentsError::Conflict`] if there is another revision; [`DocumentsError::Unavailable`]: it was not written. After other errors it may have been.
    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError>;

    /// Removes a value.
    ///
    /// # Errors
    /// [`DocumentsError`].
    fn remove(&self, key: &str) -> Result<(), DocumentsError>;

    /// The most bytes of a value.
    fn max_bytes(&self) -> usize;
}
