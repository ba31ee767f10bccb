//! Unique users: the active identities per day, and the distinct identities over any window.

use crate::rollups::at_level::at_level;
use crate::rollups::distinct;
use crate::rollups::distinct::DayAndGap;

at_level!(
    /// See the module.
    UniqueUsers, 1, "unique_users", DayAndGap => i64, Identity, distinct::concerned, distinct::contribute, Users
);
