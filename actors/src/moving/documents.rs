//! The data that move besides control data and events: the documents of features.

use std::io;
use std::path::Path;

use headcount_common::local::{ReadItems, kind_dir, read_items};
use headcount_common::{DocumentItem, MAX_DOCUMENT_BYTES, checked_json};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::error::MovingError;
use crate::feature::{MovedDocument, MovedDocuments, MovedKind, ReadDocuments};
use crate::position_map::PositionMap;

/// Data that do not move: unreadable documents, and dead letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// The name of each kind of documents, and how many stay.
    pub documents: Vec<(&'static str, usize)>,
    /// The number of dead letters.
    pub set_aside: usize,
}

impl Serialize for LeftBehind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.documents.iter().try_for_each(|(name, count)| map.serialize_entry(name, count))?;
        map.serialize_entry("set_aside", &self.set_aside)?;
        map.end()
    }
}

/// The documents to move, by kind.
pub(super) type MovedKinds = Vec<(&'static str, Box<dyn MovedDocuments>)>;

/// Reads all documents. Also returns the unreadable ones and those that would be too large.
pub(super) fn read_documents(from: &Path, kinds: &[MovedKind]) -> Result<(MovedKinds, LeftBehind), MovingError> {
    let (mut moved, mut left) = (Vec::new(), LeftBehind::default());
    for MovedKind { kind, name, read } in kinds {
        let (documents, unreadable) = read(from).map_err(MovingError::io("read the documents of", from))?;
        moved.push((*kind, documents));
        left.documents.push((name, unreadable));
    }
    Ok((moved, left))
}

/// Reads documents without positions. One that is too large counts as unreadable.
///
/// # Errors
/// Any error of the operating system.
pub fn plain_documents<T: DocumentItem>(from: &Path, kind: &str) -> io::Result<ReadDocuments> {
    let ReadItems { items, damaged: mut left } = read_items::<T>(&kind_dir(from, kind))?;
    let mut documents = Vec::with_capacity(items.len());
    for (id, item) in items {
        let content = checked_json::encode(T::VERSION, &item)?;
        match content.len() <= MAX_DOCUMENT_BYTES {
            true => documents.push(MovedDocument { key: id.to_string(), content, value: None }),
            false => left += 1,
        }
    }
    Ok((Box::new(documents), left))
}

impl MovedDocuments for Vec<MovedDocument> {
    fn documents(&self, _: &PositionMap, _: usize) -> io::Result<Vec<MovedDocument>> {
        Ok(self.clone())
    }
}
