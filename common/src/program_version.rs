//! What a version of the program says and writes, so far as machines that run two versions have to know it.

use headcount_domain::rollups::STORED_ROWS;

/// What [`fold_version`] is beside the versions of rows. Rows that go add theirs here.
const FOLD_VERSION: u32 = 1;
/// The sum of the versions of rows in the first version.
const FIRST_ROWS: u32 = 22;

/// Returns the version of what events are folded into. It rises with the list of stored types
/// (`state_version` of the engine), so that machines know which of two is the later one. A partition does not move to a
/// lower one.
#[must_use]
pub fn fold_version() -> u32 {
    let rows: u32 = STORED_ROWS.iter().map(|rows| u32::from(rows.version)).sum();
    FOLD_VERSION + u32::from(is_next()) + rows - FIRST_ROWS
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
