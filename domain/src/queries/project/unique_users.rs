//! Unique users of a window.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::project::Project;
use crate::queries::answers::UniqueUsers;
use crate::queries::partial::{Query, Reader};
use crate::records::Source;
use crate::rollups::distinct;
use crate::time::Window;
use crate::versions::{Depends, FigureKind};

/// Asks for the unique users of a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct UniqueUsersQuery {
    /// The days.
    pub window: Window,
}

impl Query for UniqueUsersQuery {
    type Partial = UniqueUsers;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Users], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<UniqueUsers, Fault> {
        Ok(reader.project.unique_users(self.window))
    }
}

impl Project {
    /// Returns the unique users of `window` per day and in total.
    #[must_use]
    pub fn unique_users(&self, window: Window) -> UniqueUsers {
        let cells = &self.rollups.unique_users;
        let series = window.days().map(|day| (day, distinct::on_the_day(cells, day)));
        UniqueUsers { series: series.collect(), total: distinct::total(cells, window) }
    }
}
