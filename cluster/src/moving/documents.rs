//! Writes the documents that move into a cluster. Documents of an earlier attempt stay as they are.

use std::collections::BTreeMap;

use headcount_actors::{MovedDocument, MovingSource, PositionMap};
use headcount_common::{DocumentChange, Documents as _, DocumentsError, SharedValues as _, Visited};
use tokio::runtime::Handle;

use super::error::MoveError;
use crate::connection::Connection;
use crate::documents::DocumentStream;
use crate::values::BrokerValues;

/// Writes all documents. `positions` has the new positions of events. Returns the number of
/// documents.
pub(super) fn record(
    source: &MovingSource,
    positions: &PositionMap,
    (runtime, connection, replicas): (&Handle, &Connection, usize),
) -> Result<usize, MoveError> {
    let stream = |kind| DocumentStream::new(runtime, connection, kind, replicas);
    let mut count = write(&stream("profiles"), "profiles", source.profiles())?;
    count += write(&stream("privacy"), "privacy", source.privacy_requests())?;
    let cursors = BrokerValues::of_webhooks(runtime, connection, replicas);
    let webhooks = source.webhooks(positions, cursors.max_bytes())?;
    if webhooks.is_empty() {
        return Ok(count);
    }
    let mut documents = Vec::with_capacity(webhooks.len());
    for webhook in webhooks {
        let key = webhook.key;
        // Written first. Without it, all notifications would be sent again.
        write_cursor(&cursors, &key, &webhook.cursor).map_err(failed("webhooks", &key))?;
        documents.push(MovedDocument { key, content: webhook.webhook });
    }
    Ok(count + write(&stream("webhooks"), "webhooks", &documents)?)
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
    for MovedDocument { key, content } in documents {
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
