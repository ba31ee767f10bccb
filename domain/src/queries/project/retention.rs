//! Returning people, by the week or month of their first event.

use serde::{Deserialize, Serialize};

use crate::cells::count_of;
use crate::fault::Fault;
use crate::queries::answers::{Listed, RetentionCohort};
use crate::queries::partial::{Query, Reader};
use crate::records::Source;
use crate::time::{CohortInterval, Day};
use crate::versions::{Depends, FigureKind};

/// Asks for the identities that were first seen in each of the last intervals, and how many of them
/// came back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RetentionQuery {
    /// The length of the intervals.
    pub interval: CohortInterval,
    /// The number of cohorts, newest first; at most [`CohortInterval::FOLLOWED`].
    pub cohorts: u8,
    /// A day of the current interval, which is the last one.
    pub today: Day,
}

impl Query for RetentionQuery {
    type Partial = Listed<RetentionCohort>;

    fn depends(&self) -> Depends {
        Depends::AllDays(&[FigureKind::Retention])
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Listed<RetentionCohort>, Fault> {
        let rollups = &reader.project.rollups;
        let cells = match self.interval {
            CohortInterval::Week => &rollups.retention_by_week,
            CohortInterval::Month => &rollups.retention_by_month,
        };
        let running = self.interval.index_of(self.today);
        let cohorts = self.cohorts.min(CohortInterval::FOLLOWED);
        let cohort = |age: u8| {
            let number = running.saturating_sub(age.into());
            let mut returned = vec![0; usize::from(age) + 1];
            for ((_, offset), count) in cells.under(number) {
                // The time of an event may be ahead of the clock.
                if let Some(active) = returned.get_mut(usize::from(offset)) {
                    *active = count_of(count);
                }
            }
            RetentionCohort { cohort: self.interval.label(number), users: returned[0], returned }
        };
        let before = running.saturating_sub(cohorts.into());
        let truncated = cells.between(i32::MIN, before).next().is_some();
        Ok(Listed { rows: (0..cohorts).map(cohort).collect(), truncated })
    }
}
