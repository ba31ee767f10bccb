//! Distinct entities over any window, as a sum.
//!
//! An entity that is active on day `d` is counted there under the *gap* since its previous active day (or under
//! [`FIRST`]). Of the days of a window, an entity's first one is the only one whose gap reaches before the window's
//! start: so the distinct total is the sum of the cells whose gap does. Exact, retractable, and small.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Change, Facts};
use crate::rollup::{Cell, Cells, Level, Sign};
use crate::time::Window;

/// The gap of a first active day: longer than any.
pub const FIRST: u32 = u32::MAX;

/// How many entities were active on a day, by the gap in days since each one's previous active day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distinct {
    by_gap: BTreeMap<u32, i64>,
}

impl Distinct {
    fn add(&mut self, gap: u32, count: i64) {
        let total = self.by_gap.entry(gap).or_default();
        *total += count;
        if *total == 0 {
            self.by_gap.remove(&gap);
        }
    }

    /// How many were active on the day.
    #[must_use]
    pub fn on_the_day(&self) -> u64 {
        self.by_gap.values().sum::<i64>().unsigned_abs()
    }

    /// How many of them had not been active in the `days` days before.
    #[must_use]
    pub fn not_seen_for(&self, days: u32) -> u64 {
        self.by_gap.range(days.saturating_add(1)..).map(|(_, count)| *count).sum::<i64>().unsigned_abs()
    }
}

impl Cell for Distinct {
    fn is_empty(&self) -> bool {
        self.by_gap.is_empty()
    }
}

/// A day that was active already stays what it is.
pub(super) fn concerned(own: Level, level: Level, change: Change) -> bool {
    level == own && change.new_day
}

/// Adds the active days of `facts` that `change` touches, each under its gap.
pub(super) fn contribute(facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<Distinct>) {
    let mut previous = facts.active_before(change.days.first);
    for day in facts.active_days(change.days) {
        let gap = previous.map_or(FIRST, |before| day.0.abs_diff(before.0));
        cells.change(day.0, |cell| cell.add(gap, sign.factor()));
        previous = Some(day);
    }
}

/// The distinct entities of `window`.
#[must_use]
pub fn total(cells: &Cells<Distinct>, window: Window) -> u64 {
    let (first, last) = (window.start.0, window.end.0);
    cells.range(first, last).map(|(day, cell)| cell.not_seen_for(day.abs_diff(first))).sum()
}
