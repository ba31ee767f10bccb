//! Hints that a lease has changed hands, so that a node looks at it at once. Hints may be lost or
//! late: nothing depends on them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use headcount_common::PARTITIONS;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::timing::stopped;
use crate::connection::Connection;
use crate::lease;
use crate::record::BUCKET;

/// The pause before the next attempt to listen.
const PAUSE: Duration = Duration::from_secs(1);

/// Hints that leases have changed hands.
#[derive(Debug)]
pub(super) struct Hints {
    /// A notification for each partition.
    changed: Vec<Notify>,
}

impl Hints {
    pub(super) fn new() -> Self {
        Self { changed: (0..PARTITIONS).map(|_| Notify::new()).collect() }
    }

    /// Returns when the lease of a partition seems to have changed hands since the last call.
    pub(super) async fn changed(&self, partition: u16) {
        match self.changed.get(usize::from(partition)) {
            Some(changed) => changed.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Listens until the node stops.
    pub(super) async fn run(self: Arc<Self>, connection: Connection, mut stop: watch::Receiver<bool>) {
        // A write to a key of a bucket is a message with this subject.
        let prefix = format!("$KV.{BUCKET}.");
        loop {
            match connection.client.subscribe(format!("{prefix}lease.*")).await {
                Ok(mut messages) => {
                    let mut known = vec![None; usize::from(PARTITIONS)];
                    loop {
                        let message = tokio::select! {
                            message = messages.next() => message,
                            () = stopped(&mut stop) => return,
                        };
                        let Some(message) = message else { break };
                        let key = message.subject.strip_prefix(&prefix).unwrap_or_default();
                        self.note(key, &message.payload, &mut known);
                    }
                }
                Err(error) => tracing::debug!(%error, "changes of leases can't be heard"),
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stopped(&mut stop) => return,
            }
        }
    }

    /// Handles a write to a key. `known` has the last holder of each lease.
    fn note(&self, key: &str, value: &[u8], known: &mut [Option<Option<String>>]) {
        let number = key.strip_prefix("lease.").and_then(|number| number.parse::<u16>().ok());
        let Some(partition) = number.filter(|number| lease::key_of(*number) == key).map(usize::from) else { return };
        let (Ok(holder), Some(known)) = (lease::holder_of(key, value), known.get_mut(partition)) else { return };
        // A renewal changes no holder.
        if known.as_ref() != Some(&holder) {
            *known = Some(holder);
            self.changed[partition].notify_one();
        }
    }
}
