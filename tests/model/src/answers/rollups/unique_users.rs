//! The identities that were active on each day, by the days since they were active before.

use crate::facts::Facts;
use crate::frozen::active;
use crate::rows::{Rows, key};
use chrono_tz::Tz;

pub(super) fn rows(facts: &Facts<'_>, timezone: Tz, project: &str) -> Rows {
    let mut rows = Rows::new();
    for one in active(facts, timezone, project, "identity") {
        let gap = one.before.map_or(i64::from(u32::MAX), |before| (one.day - before).num_days());
        *rows.entry(key(one.day, gap)).or_default() += 1;
    }
    rows
}
