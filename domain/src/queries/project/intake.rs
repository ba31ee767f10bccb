//! The recorded events of a window, by the day of their receipt.

use serde::{Deserialize, Serialize};

use crate::cells::count_of;
use crate::fault::Fault;
use crate::queries::answers::Intake;
use crate::queries::partial::{Query, Reader};
use crate::records::Source;
use crate::rollups::beginning_of;
use crate::time::{Timezone, Window};
use crate::versions::Depends;

/// Asks for the events that were received on the days of a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct IntakeQuery {
    /// The days of receipt.
    pub window: Window,
    /// The timezone of the days.
    pub timezone: Timezone,
}

impl Query for IntakeQuery {
    type Partial = Intake;

    fn depends(&self) -> Depends {
        Depends::Everything
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Intake, Fault> {
        let receipts = &reader.project.rollups.receipts;
        // A day of any timezone begins and ends within a day of the same date in UTC.
        let (first, last) = (self.window.start.0.saturating_sub(1), self.window.end.0.saturating_add(1));
        let (mut recorded, mut without_consent) = (0, 0);
        for (quarter, row) in receipts.between(first, last) {
            if self.window.contains(self.timezone.day_of(beginning_of(quarter))) {
                recorded += row.recorded;
                without_consent += row.without_consent;
            }
        }
        let last = receipts.iter().rev().find(|(_, row)| row.recorded > 0);
        Ok(Intake {
            recorded: count_of(recorded),
            without_consent: count_of(without_consent),
            last: last.map(|(quarter, row)| row.last(quarter)),
        })
    }
}
