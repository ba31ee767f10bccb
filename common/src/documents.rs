//! Small documents that every engine has: the items of one kind, each with a key. Changes have a total order.

use std::fmt::Debug;

use crate::control_error::ControlError;

/// The most bytes of a document. Brokers hold each in memory while it travels.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Why a document is not changed, or changes can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// Another change came first.
    #[error("another document was changed meanwhile")]
    Conflict,
    /// It is too large.
    #[error("it has {bytes} bytes; {MAX_DOCUMENT_BYTES} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Nobody says whether the change was made.
    #[error("{0}")]
    Undecided(String),
    /// Nobody answers. Nothing was changed.
    #[error("{0}")]
    Unavailable(String),
}

/// A change of a document, as it is read.
#[derive(Debug, Clone, Copy)]
pub struct DocumentChange<'a> {
    /// The document.
    pub key: &'a str,
    /// What it is from now on; `None`: it is removed.
    pub content: Option<&'a [u8]>,
}

/// What a visitor made of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visited {
    /// It is applied.
    Applied,
    /// The document can't be read, and is left out.
    Unreadable,
}

/// What receives changes.
pub type DocumentVisitor<'v> = dyn FnMut(DocumentChange<'_>) -> Result<Visited, ControlError> + 'v;

/// Where the documents of one kind are kept. Its functions block, and must not be called by tasks.
pub trait Documents: Debug + Send + Sync {
    /// Passes changes to `visit` that were made after those it has seen, in their order; of changes of one document, earlier ones may be left out. Returns the number
    /// of the last change that it has seen.
    ///
    /// # Errors
    /// Those of `visit`, whose change is passed again, and [`ControlError::Documents`] if they can't be read.
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError>;

    /// Changes a document, if the last change of any has the number `expected`. When this returns, the change is durable, and nothing is left of what the document was.
    ///
    /// # Errors
    /// [`DocumentsError`].
    fn put(&self, expected: u64, change: DocumentChange<'_>) -> Result<(), DocumentsError>;

    /// Shows that the last change of any document has the number `expected`, whatever those said who were asked before. `by` names who wants to know, and what for.
    ///
    /// # Errors
    /// [`DocumentsError`].
    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError>;
}
