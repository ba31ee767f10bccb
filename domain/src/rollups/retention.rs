//! Retention: identities that have an id, by the week and by the month of their first event, and in which of the following ones they were active.
//!
//! An identity is counted once in each interval in which it was active, at the number of intervals after its first one. If its first event moves to another
//! interval, because of a late event or a link, all its counts move. They are at most [`CohortInterval::FOLLOWED`] at each length of interval:
//! answers go no further, so the rest is not counted.

use crate::cells::{Cells, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts, Span};
use crate::rollups::Rollup;
use crate::time::CohortInterval;
use crate::versions::FigureKind;

/// The number of the interval of the first event, and the number of intervals since. A row holds the number of identities that were active then.
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

macro_rules! by_interval {
    ($(#[$doc:meta])* $name:ident, $tag:literal, $text:literal, $interval:ident, $moves:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl StoredCells for $name {
            const TAG: u8 = $tag;
            const NAME: &'static str = $text;
            type Key = CohortAndOffset;
            type Value = i64;
        }

        impl Rollup for $name {
            const FIGURE: FigureKind = FigureKind::Retention;
            const DATED: bool = false;

            fn concerned(level: EntityKind, change: &DirtyRange) -> bool {
                level == EntityKind::WithId && change.new_day
            }

            fn contribute(
                _: EntityKind,
                facts: &Facts,
                change: &DirtyRange,
                sign: Sign,
                cells: &mut Cells<CohortAndOffset, i64>,
            ) {
                contribute(CohortInterval::$interval, facts, (change, change.$moves), sign, cells);
            }
        }
    };
}

by_interval!(
    /// Identities by the week of their first event.
    RetentionByWeek, 26, "retention_by_week", Week, first_week
);
by_interval!(
    /// Identities by the month of their first event.
    RetentionByMonth, 27, "retention_by_month", Month, first_month
);
