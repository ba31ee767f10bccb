//! Signs that a lease has changed, so that a node looks at it at once. They may be lost, late, or early: nothing depends on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use headcount_actors::PARTITIONS;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::timing::stopped;
use crate::connection::Connection;
use crate::lease;
use crate::record::BUCKET;

/// The pause before the next attempt to hear them.
const PAUSE: Duration = Duration::from_secs(1);
/// How long after a renewal is heard nodes look at it. Listeners get a message before the brokers have confirmed it; a renewal is in no hurry, so that one look suffices.
const RENEWAL_DELAY: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(super) struct Hints {
    /// By partition.
    changed: Vec<Notify>,
}

impl Hints {
    pub(super) fn new() -> Self {
        Self { changed: (0..PARTITIONS).map(|_| Notify::new()).collect() }
    }

    /// Returns once the lease of a partition seems to have changed since the last call.
    pub(super) async fn changed(&self, partition: u16) {
        match self.changed.get(usize::from(partition)) {
            Some(changed) => changed.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Listens until the node stops.
    pub(super) async fn run(self: Arc<Self>, connection: Connection, mut stop: watch::Receiver<bool>) {
        // What is written to a key of a bucket is a message with this subject.
        let prefix = format!("$KV.{BUCKET}.");
        loop {
            match connection.client.subscribe(format!("{prefix}lease.*")).await {
                Ok(mut messages) => {
                    let mut known = vec![None; usize::from(PARTITIONS)];
                    let mut renewed = VecDeque::new();
                    loop {
                        let message = tokio::select! {
                            message = messages.next() => message,
                            partition = next_of(&mut renewed) => {
                                self.changed[partition].notify_one();
                                continue;
                            }
                            () = stopped(&mut stop) => return,
                        };
                        let Some(message) = message else { break };
                        let key = message.subject.strip_prefix(&prefix).unwrap_or_default();
                        self.note(key, &message.payload, &mut known, &mut renewed);
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

    /// Notes what was written to a key. `known` has the holder that each lease had last; `renewed` gets the partition of a renewal, and when to look at it.
    fn note(&self, key: &str, value: &[u8], known: &mut [Option<Option<String>>], renewed: &mut VecDeque<(Instant, usize)>) {
        let number = key.strip_prefix("lease.").and_then(|number| number.parse::<u16>().ok());
        let Some(partition) = number.filter(|number| lease::key_of(*number) == key).map(usize::from) else { return };
        let (Ok(holder), Some(known)) = (lease::holder_of(key, value), known.get_mut(partition)) else { return };
        if known.as_ref() == Some(&holder) {
            renewed.push_back((Instant::now() + RENEWAL_DELAY, partition));
        } else {
            *known = Some(holder);
            self.changed[partition].notify_one();
        }
    }
}

/// Removes the first partition once its time has come, and returns it.
async fn next_of(renewed: &mut VecDeque<(Instant, usize)>) -> usize {
    let Some((at, partition)) = renewed.front().copied() else { return std::future::pending().await };
    sleep_until(at).await;
    renewed.pop_front();
    partition
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_of(node: &str) -> Vec<u8> {
        format!(r#"{{"node":"{node}","boot":"b","nonce":1,"released":false}}"#).into_bytes()
    }

    #[tokio::test]
    async fn another_holder_is_looked_at_at_once_and_a_renewal_soon() {
        let hints = Hints::new();
        let (mut known, mut renewed) = (vec![None; usize::from(PARTITIONS)], VecDeque::new());
        for node in ["one", "two"] {
            hints.note("lease.007", &lease_of(node), &mut known, &mut renewed);
            assert!(renewed.is_empty());
            hints.changed(7).await;
        }
        let began = Instant::now();
        hints.note("lease.007", &lease_of("two"), &mut known, &mut renewed);
        assert_eq!(next_of(&mut renewed).await, 7);
        assert!(began.elapsed() >= RENEWAL_DELAY && renewed.is_empty());
        for (key, value) in [("lease.7", lease_of("one")), ("lease.999", lease_of("one")), ("lease.008", b"{".to_vec())] {
            hints.note(key, &value, &mut known, &mut renewed);
        }
        assert!(renewed.is_empty() && known[8].is_none(), "what is no lease is left alone");
    }
}
