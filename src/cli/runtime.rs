//! The process of a command: its runtime, its signals, and a suffix unique to each run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headcount_api::command::failure::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Creates a runtime on the calling thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("could not start", error))
}

/// Returns a future that ends on SIGTERM or SIGINT (control-C). Catches the signals from this call
/// on.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The time since the Unix epoch, which distinguishes this run from others.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
