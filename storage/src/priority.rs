//! The priority of threads.

/// How much lower the priority of work in the background is, as `nice` counts it: while the processors are busy, such a thread gets a third of what
/// others get. With much less, merges and sealing would fall behind for as long as events keep coming.
#[cfg(target_os = "linux")]
const BACKGROUND: i32 = 5;

/// Lowers the priority of the current thread: folding events and answering questions go first.
///
/// Only Linux knows priorities of threads. Elsewhere, and where the system refuses it, nothing changes.
pub fn run_in_background() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, BACKGROUND) {
        tracing::debug!(%error, "a thread in the background has the priority of all others");
    }
}
