//! Distinct entities over any window, as a sum.
//!
//! An entity that is active on day `d` is counted there under the *gap* since its previous active
//! day (or under [`FIRST`]). Among the days of a window, only the entity's first one has a gap that
//! reaches before the window's start. The number of distinct entities is therefore the sum of the
//! cells whose gap does. Exact, retractable and small.

use super::rollup::rollup;
use crate::cells::{Cells, count_of};
use crate::contribution::Sign;
use crate::facts::{DirtyRange, Facts};
use crate::time::{Day, Window};

/// The gap of a first active day: longer than any other.
pub const FIRST: u32 = u32::MAX;

/// A day, and the gap in days since the previous active day. A row holds the number of entities
/// active on the day with this gap.
pub type DayAndGap = (i32, u32);

/// Returns the number of entities active on a day.
pub(crate) fn on_the_day(cells: &Cells<DayAndGap, i64>, day: Day) -> u64 {
    count_of(cells.under(day.0).map(|(_, count)| count).sum())
}

/// Adds the active days of `facts` that `change` touches, each under its gap. A day that was
/// already active keeps its contribution.
pub(super) fn contribute(facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<DayAndGap, i64>) {
    let mut previous = facts.active_before(change.days.first);
    for day in facts.active_days(change.days) {
        let gap = previous.map_or(FIRST, |before| day.0.abs_diff(before.0));
        cells.add((day.0, gap), sign.factor());
        previous = Some(day);
    }
}

/// Returns the number of distinct entities of `window`.
pub fn total(cells: &Cells<DayAndGap, i64>, window: Window) -> u64 {
    let (first, last) = (window.start.0, window.end.0);
    // An entity counts on its first active day of the window, whose gap reaches before the window.
    let rows = cells.between(first, last).filter(|((day, gap), _)| *gap >= day.abs_diff(first).saturating_add(1));
    count_of(rows.map(|(_, count)| count).sum())
}

rollup! {
    /// Active accounts per day: companies, and identities without a company. The divisor of `arpa`.
    ActiveAccounts: tag 2, "active_accounts", room Sled, version 1, figure Accounts, dated,
    key DayAndGap => value i64,
    of Account when |change| change.new_day,
    |facts, change, sign, cells| contribute(facts, change, sign, cells)
}

rollup! {
    /// Unique users: the active identities per day, and the distinct identities over any window.
    UniqueUsers: tag 1, "unique_users", room Sled, version 1, figure Users, dated,
    key DayAndGap => value i64,
    of Identity when |change| change.new_day,
    |facts, change, sign, cells| contribute(facts, change, sign, cells)
}
