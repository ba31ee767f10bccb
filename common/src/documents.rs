//! Small documents that every node has. A store holds the items of one kind, each with a key.
//! Changes have a total order.

use std::fmt::Debug;

use crate::control_error::ControlError;

/// The maximum size of a document in bytes. Brokers hold each document in memory while they send
/// it.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The reason why a document is not changed, or changes can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// Another change came first.
    #[error("another document was changed meanwhile")]
    Conflict,
    /// The document is too large.
    #[error("it has {bytes} bytes; {MAX_DOCUMENT_BYTES} are allowed")]
    TooLarge {
        /// The size of the document.
        bytes: usize,
    },
    /// The store does not answer whether the change was made.
    #[error("{0}")]
    Undecided(String),
    /// The store does not answer. Nothing was changed.
    #[error("{0}")]
    Unavailable(String),
}

/// A change of a document.
#[derive(Debug, Clone, Copy)]
pub struct DocumentChange<'a> {
    /// The key of the document.
    pub key: &'a str,
    /// The new content; `None` if the document is removed.
    pub content: Option<&'a [u8]>,
}

/// The result of visiting a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visited {
    /// The change is applied.
    Applied,
    /// The document can't be read, and is left out.
    Unreadable,
}

/// A receiver of changes.
pub type DocumentVisitor<'v> = dyn FnMut(DocumentChange<'_>) -> Result<Visited, ControlError> + 'v;

/// A store of the documents of one kind. Its functions block, so tasks must not call them.
pub trait Documents: Debug + Send + Sync {
    /// Passes the changes that it has not passed before to `visit`, in order. Earlier changes of
    /// the same document may be left out. Returns the number of the last change.
    ///
    /// # Errors
    /// The errors of `visit`, whose change is passed again, and [`ControlError::Documents`] if
    /// changes can't be read.
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError>;

    /// Reads a document that was followed, if it exists.
    ///
    /// # Errors
    /// Returns a [`ControlError`] if it can't be read, or this machine has no copies of documents.
    fn read(&self, _key: &str) -> Result<Option<Vec<u8>>, ControlError> {
        Err(ControlError::Documents("this machine keeps no copy of them".to_owned()))
    }

    /// Changes a document, if the last change of all documents has the number `expected`. On
    /// return, the change is durable, and the former content is gone.
    ///
    /// # Errors
    /// Returns a [`DocumentsError`].
    fn put(&self, expected: u64, change: DocumentChange<'_>) -> Result<(), DocumentsError>;

    /// Proves that the last change of all documents has the number `expected`, whatever brokers
    /// answered before. `by` names the node and its purpose.
    ///
    /// # Errors
    /// Returns a [`DocumentsError`].
    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError>;
}
