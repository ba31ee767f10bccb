//! Which companies and groups were active on a day, and how much: what top lists are drawn from. A company is counted under
//! each key that it was told by.
//!
//! Each is counted twice: in its day, and in the block of 16 days that the day lies in. A window is covered by the blocks
//! that it holds as a whole and by the days at its ends, so that a long one reads little more than a short one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::groups::GroupSums;
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::rollup::{Cell, Cells, Kept, Sign};
use crate::time::{Day, Window};

/// What one group did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// How many events.
    pub events: i64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
}

/// The groups of one day, by type and key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveGroups {
    by_type: BTreeMap<Box<str>, BTreeMap<RecordKey, Activity>>,
}

impl Cell for ActiveGroups {
    fn is_empty(&self) -> bool {
        self.by_type.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub struct GroupActivity;

impl Kept for GroupActivity {
    const TAG: u8 = 11;
    const NAME: &'static str = "group_activity";
    type Cell = ActiveGroups;
}

impl Cells<ActiveGroups> {
    /// Adds or takes out what a group did on `day`.
    pub fn count(&mut self, day: Day, kind: &str, key: RecordKey, sums: &GroupSums, sign: Sign) {
        let (events, revenue) = (i64::try_from(sums.events).unwrap_or(i64::MAX), sums.revenue);
        if events == 0 && revenue == Amount::ZERO {
            return;
        }
        let did = Activity { events: sign.factor() * events, revenue };
        for bucket in [day.0, block_bucket(day.0.div_euclid(BLOCK_DAYS))] {
            self.change(bucket, |cell| cell.count(kind, key, did, sign));
        }
    }

    /// Every group of a type that was active in `window`, once for each of its days or blocks.
    pub fn of_type(&self, kind: &str, window: Window) -> impl Iterator<Item = (RecordKey, Activity)> {
        let (first, last) = (window.start.0, window.end.0);
        // The first block that begins in the window, and the first one that doesn't end in it.
        let from = (first + BLOCK_DAYS - 1).div_euclid(BLOCK_DAYS);
        let to = (last + 1).div_euclid(BLOCK_DAYS);
        let covers = match from < to {
            true => [(first, from * BLOCK_DAYS - 1), (block_bucket(from), block_bucket(to - 1)), (to * BLOCK_DAYS, last)],
            false => [(first, last), (0, -1), (0, -1)],
        };
        let cells = covers.into_iter().flat_map(|(first, last)| self.range(first, last));
        cells.filter_map(move |(_, cell)| cell.by_type.get(kind)).flatten().map(|(key, activity)| (*key, *activity))
    }
}

/// How many days a block has.
const BLOCK_DAYS: i32 = 16;

/// The bucket of a block: beyond those of all days.
fn block_bucket(block: i32) -> i32 {
    (1 << 28) + block
}

impl ActiveGroups {
    fn count(&mut self, kind: &str, key: RecordKey, did: Activity, sign: Sign) {
        if !self.by_type.contains_key(kind) {
            self.by_type.insert(kind.into(), BTreeMap::new());
        }
        let Some(groups) = self.by_type.get_mut(kind) else { return };
        let activity = groups.entry(key).or_default();
        activity.events += did.events;
        match sign {
            Sign::Plus => activity.revenue += did.revenue,
            Sign::Minus => activity.revenue -= did.revenue,
        }
        if *activity == Activity::default() {
            groups.remove(&key);
        }
        if groups.is_empty() {
            self.by_type.remove(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_counts_each_of_its_days_once() {
        let mut cells = Cells::default();
        for day in -40..100 {
            let sums = GroupSums { events: 1, ..GroupSums::default() };
            cells.count(Day(day), "team", RecordKey(1), &sums, Sign::Plus);
        }
        for first in -40..60 {
            for days in 1..40 {
                let window = Window { start: Day(first), end: Day(first + days - 1) };
                let events: i64 = cells.of_type("team", window).map(|(_, did)| did.events).sum();
                assert_eq!(events, i64::from(days), "{window:?}");
            }
        }
    }
}
