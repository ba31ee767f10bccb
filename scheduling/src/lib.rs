//! The scheduling of threads by the kernel.
//!
//! Linux gives a busy thread a turn of a few milliseconds. A thread that wakes up must wait for the
//! end of the turn, whatever the priorities. But a thread that asks for long turns is interrupted
//! at once by threads with short turns. Its share of the processors stays the same, and no thread
//! waits for it.

use std::io;

/// A longer turn than the usual turns of up to 3 ms, in nanoseconds. The longer it is, the longer a
/// thread waits for its next turn on a busy machine.
#[cfg(target_os = "linux")]
const LONG_TURN: u64 = 10_000_000;

/// Lowers the priority of the current thread to `nice` below the process, and asks for long turns,
/// so that other threads interrupt it when they wake up. Linux grants long turns from version 6.12
/// on; before, only the priority changes. On other systems nothing changes.
///
/// # Errors
/// The system refuses it; nothing has changed.
#[cfg(target_os = "linux")]
pub fn stand_back(nice: i32) -> io::Result<()> {
    let process = attributes(i32::try_from(std::process::id()).unwrap_or(0))?;
    let mut attributes = attributes(0)?;
    // A thread inherits the priority of its creator, which may already have a low priority.
    attributes.sched_nice = (process.sched_nice + nice).max(attributes.sched_nice).min(19);
    attributes.sched_runtime = LONG_TURN;
    #[expect(unsafe_code, reason = "no safe library has this system call")]
    // SAFETY: the kernel reads `size` bytes of a structure that outlives the call. Thread 0 is the
    // current one, and there are no flags.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does nothing.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn stand_back(_nice: i32) -> io::Result<()> {
    Ok(())
}

/// Reads the scheduling of a thread; 0 is the current thread, and the id of the process its first
/// thread.
#[cfg(target_os = "linux")]
fn attributes(thread: i32) -> io::Result<libc::sched_attr> {
    /// The size of the structure in the first version of the system call, which every kernel knows.
    const SIZE: u32 = 48;
    let mut attributes = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    #[expect(unsafe_code, reason = "no safe library has this system call")]
    // SAFETY: the kernel writes at most `SIZE` bytes to a structure that has them and outlives the
    // call. There are no flags.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, SIZE, 0) };
    if result == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const _: () = assert!(size_of::<libc::sched_attr>() >= 48);

    #[test]
    fn only_the_thread_that_asks_stands_back() {
        let before = attributes(0).unwrap();
        let after = std::thread::spawn(|| {
            stand_back(5).unwrap();
            // Once more, like a thread that a background thread has started.
            std::thread::spawn(|| stand_back(5).map(|()| attributes(0).unwrap())).join().unwrap().unwrap()
        });
        let after = after.join().unwrap();
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, (before.sched_nice + 5).min(19));
        // Kernels before 6.12 report no turns.
        assert!(after.sched_runtime == LONG_TURN || before.sched_runtime == 0, "{after:?}");
        let unchanged = attributes(0).unwrap();
        assert_eq!((unchanged.sched_nice, unchanged.sched_runtime), (before.sched_nice, before.sched_runtime));
    }

    #[test]
    fn the_lowest_priority_stays_the_lowest() {
        let lowest = std::thread::spawn(|| {
            stand_back(40).unwrap();
            stand_back(1).unwrap();
            attributes(0).unwrap().sched_nice
        });
        assert_eq!(lowest.join().unwrap(), 19);
    }
}
