//! Unique users: the active identities per day, and the distinct identities over any window.

use crate::rollups::distinct;
use crate::rollups::distinct::DayAndGap;
use crate::rollups::rollup::rollup;

rollup! {
    /// See the module.
    UniqueUsers: tag 1, "unique_users", room Sled, version 1, figure Users, dated,
    key DayAndGap => value i64,
    of Identity when |change| change.new_day,
    |facts, change, sign, cells| distinct::contribute(facts, change, sign, cells)
}
