//! The versions of this program's formats and rules, for machines that run two program versions.

use headcount_domain::rollups::STORED_ROWS;

/// The part of [`fold_version`] besides the versions of rows. When a kind of rows is removed, its
/// version is added here.
const FOLD_VERSION: u32 = 1;
/// The sum of the versions of rows in the first program version.
const FIRST_ROWS: u32 = 22;

/// Returns the version of the rules that make state from events. It rises with the list of stored
/// types (`state_version` of the engine), so machines know which of two versions is later. A
/// partition does not move to a lower one.
pub fn fold_version() -> u32 {
    let rows: u32 = STORED_ROWS.iter().map(|rows| u32::from(rows.version)).sum();
    FOLD_VERSION + u32::from(is_next()) + rows - FIRST_ROWS
}

/// Returns the version of the code that makes answers. It is part of each entity tag, so that
/// clients see new answers of a later version about the same data.
pub fn answers_version() -> &'static str {
    if is_next() { concat!(env!("CARGO_PKG_VERSION"), "+next") } else { env!("CARGO_PKG_VERSION") }
}

/// Whether this process acts as the next program version, which folds, answers and writes
/// differently. Tests use it to run nodes of two versions with one program. It works only in
/// development builds, if the variable `TEST_HEADCOUNT_IS_NEXT` exists.
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
