//! Which companies and groups were active on a day, and how much: what top lists are drawn from. A company is counted under
//! each key that it was told by.

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
        self.change(day.0, |cell| {
            if !cell.by_type.contains_key(kind) {
                cell.by_type.insert(kind.into(), BTreeMap::new());
            }
            let Some(groups) = cell.by_type.get_mut(kind) else { return };
            let activity = groups.entry(key).or_default();
            activity.events += sign.factor() * events;
            match sign {
                Sign::Plus => activity.revenue += revenue,
                Sign::Minus => activity.revenue -= revenue,
            }
            if *activity == Activity::default() {
                groups.remove(&key);
            }
            if groups.is_empty() {
                cell.by_type.remove(kind);
            }
        });
    }

    /// Every group of a type that was active in `window`, once for each of its days.
    pub fn of_type(&self, kind: &str, window: Window) -> impl Iterator<Item = (RecordKey, Activity)> {
        let days = self.range(window.start.0, window.end.0);
        days.filter_map(move |(_, cell)| cell.by_type.get(kind)).flatten().map(|(key, activity)| (*key, *activity))
    }
}
