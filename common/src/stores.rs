//! The stores of documents and values, by kind.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::documents::Documents;
use crate::values::SharedValues;

/// The kinds of documents and values of a data directory. A backup has all of them.
pub const DOCUMENT_KINDS: [&str; 5] = ["webhooks", "privacy", "profiles", "intake", "pushed"];

/// Opens the stores of documents and values, by kind.
pub trait DocumentStores: Debug + Send + Sync {
    /// Opens the documents of a kind. Called once for each.
    ///
    /// # Errors
    /// They can't be read or written.
    fn documents(&self, kind: &'static str) -> io::Result<Arc<dyn Documents>>;

    /// Opens the values that belong to the documents of a kind, after these.
    ///
    /// # Errors
    /// They can't be read or written.
    fn values(&self, kind: &'static str) -> io::Result<Arc<dyn SharedValues>>;

    /// Opens documents that are read often: with a copy in the data directory.
    ///
    /// # Errors
    /// They can't be read or written.
    fn copied_documents(&self, kind: &'static str, data_dir: &Path) -> io::Result<Arc<dyn Documents>>;
}
