//! Unique users of a window.

use serde::{Deserialize, Serialize};

use crate::project::Project;
use crate::queries::answers::UniqueUsers;
use crate::rollups::{self, RowsOf, RowsQuery, distinct};
use crate::time::Window;

/// Asks for the unique users of a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct UniqueUsersQuery {
    /// The days.
    pub window: Window,
}

impl RowsQuery for UniqueUsersQuery {
    type Rollup = rollups::UniqueUsers;
    type Answer = UniqueUsers;

    fn window(&self) -> Option<Window> {
        Some(self.window)
    }

    fn answer_from(&self, rows: &RowsOf<rollups::UniqueUsers>) -> UniqueUsers {
        let series = self.window.days().map(|day| (day, distinct::on_the_day(rows, day)));
        UniqueUsers { series: series.collect(), total: distinct::total(rows, self.window) }
    }
}

impl Project {
    /// Returns the unique users of `window` per day and in total.
    pub fn unique_users(&self, window: Window) -> UniqueUsers {
        UniqueUsersQuery { window }.answer_from(&self.rollups.unique_users)
    }
}
