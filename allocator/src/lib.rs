//! The allocator of the program and its benchmarks, and its configuration.
//!
//! Events are allocated on one thread and freed on another. mimalloc handles this well; the system allocator takes a fifth of the
//! CPU time of an event.

pub use mimalloc::MiMalloc;

/// Delay in milliseconds before freed memory is returned to the operating system.
///
/// The default of a second is about as long as a checkpoint: at a high event rate the process held a third more memory than it used.
const PURGE_DELAY_MS: core::ffi::c_long = 100;

/// Configures the allocator. Must be called at the start of `main`, before any other thread runs. The environment variable
/// `MIMALLOC_PURGE_DELAY` takes precedence.
pub fn configure() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    #[expect(unsafe_code, reason = "mimalloc has no safe function for its options")]
    // SAFETY: the call stores a number that other threads read when they free memory. No other thread runs yet.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
    }
}

/// `mi_option_purge_delay` of `mimalloc.h`, which the bindings lack.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

#[cfg(test)]
mod tests {
    #[test]
    fn the_option_is_the_purge_delay() {
        #[expect(unsafe_code, reason = "mimalloc has no safe function for its options")]
        // SAFETY: reads a number.
        let read = || unsafe { libmimalloc_sys::mi_option_get(super::PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(read(), 1000, "the default of mimalloc 3 for this option");
            super::configure();
            assert_eq!(read(), super::PURGE_DELAY_MS);
        }
    }
}
