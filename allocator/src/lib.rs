//! The allocator of the program and of its measurements, and its settings.
//!
//! Events are allocated on one thread and freed on another, which mimalloc is good at: with the system's allocator a fifth of
//! an event's time is its own.

pub use mimalloc::MiMalloc;

/// How long freed memory is kept before it goes back to the operating system, in milliseconds.
///
/// The default of a second is as long as a checkpoint takes: at a high rate the process kept a third more than it used.
const PURGE_DELAY_MS: core::ffi::c_long = 100;

/// Sets the allocator up. Call it first in `main`, before there is another thread. `MIMALLOC_PURGE_DELAY` in the environment takes precedence.
pub fn configure() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    #[expect(unsafe_code, reason = "mimalloc has no safe call for its options")]
    // SAFETY: the call stores a number that other threads read when they free memory. No other thread runs yet.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
    }
}

/// `mi_option_purge_delay` in `mimalloc.h`, which the bindings do not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_the_option_is_that_of_the_purge_delay() {
        #[expect(unsafe_code, reason = "mimalloc has no safe call for its options")]
        // SAFETY: reads a number.
        let read = || unsafe { libmimalloc_sys::mi_option_get(super::PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(read(), 1000, "the default of mimalloc 3: another number would be another option");
            super::configure();
            assert_eq!(read(), super::PURGE_DELAY_MS);
        }
    }
}
