//! Multi-threaded runtimes for connections to brokers.

use headcount_api::command::Failure;
pub(crate) use headcount_api::command::threaded_runtime;
use tokio::runtime::{Handle, Runtime};

/// A [`threaded_runtime`] that does not wait for its tasks on drop, since the drop may happen in a
/// task of another runtime.
pub(crate) struct ThreadedRuntime {
    /// The handle that spawns tasks.
    pub(crate) handle: Handle,
    runtime: Option<Runtime>,
}

impl ThreadedRuntime {
    /// Creates the runtime.
    pub(crate) fn start() -> Result<Self, Failure> {
        let runtime = threaded_runtime()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }
}

impl Drop for ThreadedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
