//! The stores of one machine: files of its data directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LocalDocuments, LocalValues};
use crate::documents::Documents;
use crate::stores::DocumentStores;
use crate::values::SharedValues;

/// The end of the name of a value's file, after the key.
pub const VALUE_SUFFIX: &str = ".progress.json";

/// The stores of one machine. Each kind has a directory.
#[derive(Debug)]
pub struct LocalStores {
    data_dir: PathBuf,
}

impl LocalStores {
    /// The stores of a data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }
}

/// The directory of the documents of a kind and of their values, in a data directory.
pub fn kind_dir(data_dir: &Path, kind: &str) -> PathBuf {
    data_dir.join("control").join(kind)
}

impl DocumentStores for LocalStores {
    fn documents(&self, kind: &'static str) -> io::Result<Arc<dyn Documents>> {
        Ok(Arc::new(LocalDocuments::open(&kind_dir(&self.data_dir, kind))?))
    }

    fn values(&self, kind: &'static str) -> io::Result<Arc<dyn SharedValues>> {
        Ok(Arc::new(LocalValues::open(&kind_dir(&self.data_dir, kind), VALUE_SUFFIX)?))
    }

    fn copied_documents(&self, kind: &'static str, _: &Path) -> io::Result<Arc<dyn Documents>> {
        self.documents(kind)
    }
}
