//! Unique users of a window.

use crate::project::Project;
use crate::queries::answers::UniqueUsers;
use crate::rollups::distinct;
use crate::time::Window;

impl Project {
    /// Unique users per day of `window`.
    #[must_use]
    pub fn unique_users(&self, window: Window) -> UniqueUsers {
        let cells = &self.rollups.unique_users;
        let series = window.days().map(|day| (day, distinct::on_the_day(cells, day)));
        UniqueUsers { series: series.collect(), total: distinct::total(cells, window) }
    }
}
