//! The priority of threads.

/// How much lower the priority of work in the background is, as `nice` counts it: while the processors are busy, such a thread gets a third of what
/// others get. With much less, merges and sealing would fall behind for as long as events keep coming.
#[cfg(target_os = "linux")]
const BACKGROUND: i32 = 5;

/// Lowers the priority of the current thread, so that folding events and answering questions go first.
///
/// Only Linux knows priorities of threads. Elsewhere, and where the system refuses it, nothing changes.
pub fn run_in_background() {
    #[cfg(target_os = "linux")]
    if let Err(error) = lower(BACKGROUND) {
        tracing::debug!(%error, "a thread in the background has the priority of all others");
    }
}

#[cfg(target_os = "linux")]
fn lower(by: i32) -> rustix::io::Result<()> {
    use rustix::process::{getpriority_process, setpriority_process};
    // For Linux, the process without a number is the current thread.
    setpriority_process(None, (getpriority_process(None)? + by).min(19))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_thread_that_asks_is_in_the_background() {
        let before = getpriority_process(None).unwrap();
        let lowered = std::thread::spawn(|| {
            run_in_background();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (before + BACKGROUND).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
