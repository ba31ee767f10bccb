//! The end of an engine, within a bounded time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Engine, Inner, Threads};
use crate::shard::Drain;

/// How long closing may take, but for [`JOIN_TIMEOUT`].
const CLOSE_TIMEOUT: Duration = Duration::from_secs(7);
/// How long the engine's threads may take to end after that.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

impl Engine {
    /// Takes no more events, finishes those under way as far as that is quick, writes everything down and stops, within
    /// [`CLOSE_TIMEOUT`]. Events that were answered are safe without this; it makes the next start quick. What is in the log
    /// and can't be applied in time is applied by the next start, and its senders hear that the outcome is unknown.
    pub async fn close(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        let until = tokio::time::Instant::now() + CLOSE_TIMEOUT;
        let group = Arc::clone(&self.inner.log);
        if !finished(until, move || group.close()).await {
            tracing::warn!("the log takes too long to close");
        }
        let mut drains = Vec::new();
        for shard in &self.inner.shards {
            let (done, wait) = oneshot::channel();
            #[expect(clippy::disallowed_methods, reason = "one message per shard, at the end")]
            shard.do_send(Drain(done));
            drains.push(wait);
        }
        for drain in drains {
            if tokio::time::timeout_at(until, drain).await.is_err() {
                tracing::warn!("a last checkpoint took too long; the next start replays the log instead");
            }
        }
        self.inner.health.stop();
        let threads = self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(threads) = threads
            && !finished(tokio::time::Instant::now() + JOIN_TIMEOUT, move || threads.stop()).await
        {
            tracing::warn!("a thread of the engine does not end; it is left behind");
        }
    }
}

/// Does something that blocks on a thread of its own. `false`: it was not done in time, and goes on; the caller's runtime
/// does not wait for it at its end.
async fn finished(until: tokio::time::Instant, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, wait) = oneshot::channel();
    let thread = std::thread::Builder::new().name("close".into()).spawn(move || {
        work();
        let _ = done.send(());
    });
    thread.is_ok() && matches!(tokio::time::timeout_at(until, wait).await, Ok(Ok(())))
}

impl Drop for Inner {
    /// An engine that nobody closed stops all the same, without a last checkpoint.
    fn drop(&mut self) {
        self.log.close();
        self.health.stop();
        if let Some(threads) = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            threads.stop();
        }
    }
}

impl Threads {
    fn stop(self) {
        let Self { system, system_thread, keeper, keeper_thread, verifier, _lock } = self;
        verifier.stop();
        keeper.stop_trying();
        drop(keeper);
        system.stop();
        let _ = system_thread.join();
        // The keeper ends when the shards, which hold its other handles, are gone.
        let _ = keeper_thread.join();
    }
}
