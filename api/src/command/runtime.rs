//! The process of a command: its runtime, its signals, and a suffix unique to each run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::command::failure::Failure;

/// Creates a runtime on the calling thread.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("could not start", error))
}

/// Creates a runtime with its own threads, such as for connections to brokers. Its tasks continue
/// while the calling thread blocks.
pub fn threaded_runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| Failure::new("could not start", error))
}

/// Returns a future that ends on SIGTERM or SIGINT (control-C). Catches the signals from this call
/// on.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
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
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
