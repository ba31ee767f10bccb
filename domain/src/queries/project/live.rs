//! The figures of the current day from rollups, and the place where recent events begin.

use serde::{Deserialize, Serialize};

use crate::cells::count_of;
use crate::fault::Fault;
use crate::queries::answers::Today;
use crate::queries::partial::{Query, Reader};
use crate::records::Source;
use crate::rollups::{distinct, quarter_of};
use crate::time::{Day, Instant, Window};
use crate::versions::Depends;

/// Asks for the figures of a day, and for the position before the first event that was received
/// since an instant.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TodayQuery {
    /// The day.
    pub day: Day,
    /// The instant.
    pub since: Instant,
}

impl Query for TodayQuery {
    type Partial = Today;

    fn depends(&self) -> Depends {
        Depends::Everything
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Today, Fault> {
        let (project, day) = (&reader.project, self.day);
        let rollups = &project.rollups;
        let money = project.revenue_metrics(Window { start: day, end: day });
        let sessions: i64 = rollups.traffic.between(day.0, day.0).map(|(_, visits)| visits.sessions).sum();
        let (since, _) = quarter_of(self.since);
        let recent = rollups.receipts.between(since.0, i32::MAX).filter(|(quarter, _)| *quarter >= since);
        Ok(Today {
            position: project.versions.of(&Depends::Everything),
            unique_users: distinct::on_the_day(&rollups.unique_users, day),
            sessions: count_of(sessions),
            revenue: money.total_revenue,
            orders: money.orders,
            before_recent: recent.filter_map(|(_, receipts)| receipts.before()).min(),
        })
    }
}
