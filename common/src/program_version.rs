//! What a version of the program says and writes, so far as machines that run two versions have to know it.

/// The version of what events are folded into. It rises whenever another list of stored types does (`state_version` of the engine), so that machines know which of two is the
/// later one. A partition does not move to a lower one.
const FOLD_VERSION: u32 = 1;

/// Returns the version of what events are folded into.
#[must_use]
pub fn fold_version() -> u32 {
    if is_next() { FOLD_VERSION + 1 } else { FOLD_VERSION }
}

/// Returns the version of the code that answers, which is part of each entity tag: a later one may say more about the same data, and clients are to see it.
#[must_use]
pub fn answers_version() -> &'static str {
    if is_next() { concat!(env!("CARGO_PKG_VERSION"), "+next") } else { env!("CARGO_PKG_VERSION") }
}

/// Whether this process stands for the version after this one, which folds, answers and writes otherwise: tests run nodes of two versions with one program. Only in builds for
/// development, and only if the variable `TEST_HEADCOUNT_IS_NEXT` is there.
#[must_use]
pub fn is_next() -> bool {
    #[cfg(debug_assertions)]
    {
        static IS_NEXT: std::sync::LazyLock<bool> =
            std::sync::LazyLock::new(|| std::env::var_os("TEST_HEADCOUNT_IS_NEXT").is_some());
        *IS_NEXT
    }
    #[cfg(not(debug_assertions))]
    {
        false
    }
}
