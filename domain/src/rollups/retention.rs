//! Retention: identities that have an id, by the week and by the month of their first event, and in
//! which of the following ones they were active.
//!
//! An identity is counted once in each interval in which it was active, at the number of intervals
//! after its first one. If its first event moves to another interval, because of a late event or a
//! link, all its counts move. They are at most [`CohortInterval::FOLLOWED`] at each length of
//! interval: answers go no further, so the rest is not counted.

use crate::cells::Cells;
use crate::contribution::Sign;
use crate::facts::{DirtyRange, Facts, Span};
use crate::rollups::rollup::rollup;
use crate::time::CohortInterval;

/// The number of the interval of the first event, and the number of intervals since. A row holds
/// the number of identities that were active then.
pub type CohortAndOffset = (i32, u8);

/// Adds the intervals that begin to be active on a day that `change` touches.
fn contribute(
    interval: CohortInterval,
    facts: &Facts,
    (change, moves): (&DirtyRange, bool),
    sign: Sign,
    cells: &mut Cells<CohortAndOffset, i64>,
) {
    let Some(first) = facts.first_day() else { return };
    let days = if moves { Span { first, last: interval.last_followed(first) } } else { change.days };
    let mut previous = facts.active_before(days.first).map(|day| interval.index_of(day));
    let mut cohort = None;
    for day in facts.active_days(days) {
        let active = interval.index_of(day);
        if previous.replace(active) == Some(active) {
            continue;
        }
        let cohort = *cohort.get_or_insert_with(|| interval.index_of(first));
        match u8::try_from(active.saturating_sub(cohort)) {
            Ok(offset) if offset < CohortInterval::FOLLOWED => cells.add((cohort, offset), sign.factor()),
            _ => break,
        }
    }
}

rollup! {
    /// Identities by the week of their first event.
    RetentionByWeek: tag 26, "retention_by_week", room Sled, version 1, figure Retention, undated,
    key CohortAndOffset => value i64,
    of WithId when |change| change.new_day,
    |facts, change, sign, cells| contribute(CohortInterval::Week, facts, (change, change.first_week), sign, cells)
}
rollup! {
    /// Identities by the month of their first event.
    RetentionByMonth: tag 27, "retention_by_month", room Sled, version 1, figure Retention, undated,
    key CohortAndOffset => value i64,
    of WithId when |change| change.new_day,
    |facts, change, sign, cells| contribute(CohortInterval::Month, facts, (change, change.first_month), sign, cells)
}
