//! Writes the documents that move into a cluster. Documents of an earlier attempt stay as they are.

use std::collections::BTreeMap;

use headcount_actors::{MovedDocument, MovingSource, PositionMap};
use headcount_common::{DocumentChange, Documents as _, DocumentsError, SharedValues as _, Visited};
use tokio::runtime::Handle;

use super::error::MoveError;
use crate::connection::Connection;
use crate::documents::DocumentStream;
use crate::values::{BrokerValues, OF_DOCUMENTS};

/// Writes all documents. `positions` has the new positions of events. Returns the number of
/// documents.
pub(super) fn record(
    source: &MovingSource,
    positions: &PositionMap,
    (runtime, connection, replicas): (&Handle, &Connection, usize),
) -> Result<usize, MoveError> {
    let cursors = BrokerValues::new((runtime, connection, replicas), OF_DOCUMENTS);
    let mut count = 0;
    for (kind, documents) in source.documents(positions, cursors.max_bytes())? {
        // Written first. Without them, all notifications would be sent again.
        for MovedDocument { key, value, .. } in &documents {
            let written = value.as_ref().map(|value| write_cursor(&cursors, key, value));
            written.transpose().map_err(failed(kind, key))?;
        }
        count += write(&DocumentStream::new(runtime, connection, kind, replicas), kind, &documents)?;
    }
    Ok(count)
}

fn failed(stream: &'static str, key: &str) -> impl FnOnce(DocumentsError) -> MoveError {
    let key = key.to_owned();
    move |source| MoveError::Document { stream, key, source }
}

/// Writes documents to a stream that no other process writes. Returns the number of documents.
fn write(stream: &DocumentStream, name: &'static str, documents: &[MovedDocument]) -> Result<usize, MoveError> {
    if documents.is_empty() {
        return Ok(0);
    }
    let mut there: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut follow = || {
        stream.follow(&mut |DocumentChange { key, content }| {
            there.insert(key.to_owned(), content.unwrap_or_default().to_owned());
            Ok(Visited::Applied)
        })
    };
    let mut last = follow()?;
    for MovedDocument { key, content, .. } in documents {
        if there.get(key).is_some_and(|there| there == content) {
            continue;
        }
        stream.put(last, DocumentChange { key, content: Some(content) }).map_err(failed(name, key))?;
        last = stream.follow(&mut |_| Ok(Visited::Applied))?;
    }
    Ok(documents.len())
}

fn write_cursor(cursors: &BrokerValues, key: &str, value: &[u8]) -> Result<(), DocumentsError> {
    let found = cursors.read(key)?;
    let revision = found.as_ref().map_or(0, |(_, revision)| *revision);
    if found.is_some_and(|(found, _)| found == value) {
        return Ok(());
    }
    cursors.write(key, value, revision).map(drop)
}
