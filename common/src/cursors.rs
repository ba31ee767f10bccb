//! Small values that the owner of a partition writes often, and its next owner goes on from.

use std::fmt::Debug;

use crate::documents::SharedDocumentsError;

/// Where members keep how far something has come. Its functions block, and must not be called by tasks.
pub trait SharedCursors: Debug + Send + Sync {
    /// Returns a value and its revision; `None` if there is none, and its revision is 0.
    ///
    /// # Errors
    /// [`SharedDocumentsError`].
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, SharedDocumentsError>;

    /// Replaces the value of this revision. Returns the new revision.
    ///
    /// # Errors
    /// [`SharedDocumentsError::Conflict`] if there is another revision. After other errors it may have been written.
    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, SharedDocumentsError>;

    /// Removes a value.
    ///
    /// # Errors
    /// [`SharedDocumentsError`].
    fn remove(&self, key: &str) -> Result<(), SharedDocumentsError>;
}
