//! Closes an engine within a bounded time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::handle::Engine;
use super::running::RunningEngine;
use crate::intake_counts::logged;

/// How long closing may take, without [`JOIN_TIMEOUT`].
const CLOSE_TIMEOUT: Duration = Duration::from_secs(7);
/// How long the engine's threads may take to end after that.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

impl Engine {
    /// Refuses new events, finishes the events in flight as far as that is quick, writes
    /// checkpoints and stops, within seven seconds. Acknowledged events are safe without this
    /// call; it makes the next start quick. If logged events can't be applied in time, the next
    /// start applies them, and their senders get the answer that the outcome is unknown.
    pub async fn close(&self) {
        self.admission.close();
        self.features().iter().for_each(|feature| feature.close());
        let until = tokio::time::Instant::now() + CLOSE_TIMEOUT;
        let group = Arc::clone(&self.ingest.log);
        if !finished(until, move || group.close()).await {
            tracing::warn!("the log takes too long to close");
        }
        if tokio::time::timeout_at(until, self.inner.verifications.close()).await.is_err() {
            tracing::warn!("a verification does not end; it is left behind");
        }
        for drain in self.questions.shards.drain() {
            if tokio::time::timeout_at(until, drain).await.is_err() {
                tracing::warn!("a last checkpoint took too long; the next start replays the log instead");
            }
        }
        let engine = self.clone();
        let close_intake = move || {
            logged(engine.ingest.counts.close());
            engine.keep_time();
            engine.features().iter().for_each(|feature| feature.save());
        };
        if !finished(until.max(tokio::time::Instant::now() + JOIN_TIMEOUT), close_intake).await {
            tracing::warn!("the counts of dropped events take too long to write");
        }
        self.admission.health.stop();
        let threads = self.inner.threads.lock().take();
        if let Some(threads) = threads
            && !finished(tokio::time::Instant::now() + JOIN_TIMEOUT, move || threads.stop()).await
        {
            tracing::warn!("a thread of the engine does not end; it is left behind");
        }
    }
}

/// Runs blocking work on a new thread. Returns `false` if it was not done in time. The work
/// continues then, and the caller's runtime does not wait for it.
async fn finished(until: tokio::time::Instant, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, wait) = oneshot::channel();
    let thread = std::thread::Builder::new().name("close".into()).spawn(move || {
        work();
        let _ = done.send(());
    });
    thread.is_ok() && matches!(tokio::time::timeout_at(until, wait).await, Ok(Ok(())))
}

impl Drop for RunningEngine {
    /// An engine that was not closed stops without a last checkpoint.
    fn drop(&mut self) {
        // Ends scans whose client has left.
        self.admission.close();
        self.ingest.log.close();
        self.ingest.features.all().iter().for_each(|feature| feature.close());
        self.admission.health.stop();
        // A closed engine has released the directory, and its files may belong to another engine.
        let Some(threads) = self.threads.get_mut().take() else { return };
        // A node gave its partitions up together with their progress. A task must not wait for
        // brokers here.
        if self.ingest.questions.logged.has_files() {
            self.ingest.features.all().iter().for_each(|feature| feature.save());
            logged(self.ingest.counts.close());
        }
        threads.stop();
    }
}
