//! The floor of a project: the first day whose figures still change.
//!
//! Retention raises it. Rows of rollups below it are frozen: events, links and late changes alter them no more, and events of those days are
//! dropped. Facts keep all their days, so that gaps, sessions, first touches and links above the floor stay exact.

use serde::{Deserialize, Serialize};

use crate::cells::Cells;
use crate::contribution::Sign;
use crate::ids::ProjectId;
use crate::intake::event::{Event, Position};
use crate::project::Project;
use crate::rollups::{DayAndUnder, DeferredAttribution, Rollups, TouchSums, Under};
use crate::time::Day;
use crate::versions::{FigureKind, Touched};

/// A record of the log that raises the floor of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorMove {
    /// The project.
    pub project: ProjectId,
    /// Its floor from here on, unless it is higher already.
    pub day: Day,
}

/// The number of days that are touched one by one when the floor rises.
const MAX_TOUCHED_DAYS: u32 = 64;

impl Project {
    /// Returns the first day whose figures still change; `None` if all do.
    #[must_use]
    pub fn floor(&self) -> Option<Day> {
        self.floor
    }

    /// Whether an event is dropped because its day lies below the floor. Such an event must not be applied.
    #[must_use]
    pub fn drops(&self, event: &Event) -> bool {
        self.floor.is_some_and(|floor| event.day < floor)
    }

    /// Restores a saved floor.
    pub fn restore_floor(&mut self, floor: Option<Day>) {
        self.floor = floor;
        self.rollups.set_floor(floor);
    }

    /// Raises the floor to `day`, by the record at `position`. It never falls.
    pub fn raise_floor(&mut self, day: Day, position: Position) {
        let former = self.floor;
        if former.is_none_or(|former| day > former) {
            self.resolve_deferred(former, day);
            self.restore_floor(Some(day));
            // What reads events does not see those days any more, and a window that began there may begin at the floor.
            match former.and_then(|former| Some((former.0, u32::try_from(day.0.checked_sub(former.0)?).ok()?))) {
                Some((former, days)) if days <= MAX_TOUCHED_DAYS => {
                    (former..=day.0).for_each(|day| self.touched.day(FigureKind::Events, Day(day)));
                }
                _ => self.touched.all_days(FigureKind::Events),
            }
        }
        self.versions.touch(&self.touched, position);
        self.touched.clear();
    }

    /// Names the touches of the orders from the day `from` to the day before `until` whose attribution is deferred: another touch must not move
    /// them any more.
    fn resolve_deferred(&mut self, from: Option<Day>, until: Day) {
        let first = from.map_or(i32::MIN, |day| day.0);
        let Some(last) = until.0.checked_sub(1) else { return };
        let rollups = &mut self.rollups;
        let Rollups { deferred_by_identity: identities, deferred_by_account: accounts, .. } = rollups;
        name_touches(&mut rollups.first_touch_by_identity, identities, first, last);
        name_touches(&mut rollups.last_touch_by_identity, identities, first, last);
        name_touches(&mut rollups.first_touch_by_account, accounts, first, last);
        name_touches(&mut rollups.last_touch_by_account, accounts, first, last);
        // The answers about these days stay the same, so no version changes.
        rollups.drain(&mut Touched::default());
    }
}

fn name_touches(cells: &mut Cells<DayAndUnder, TouchSums>, deferred: &DeferredAttribution, first: i32, last: i32) {
    let is_deferred = |(_, under): &DayAndUnder| matches!(under, Under::Deferred(_));
    let rows: Vec<(DayAndUnder, TouchSums)> = cells.between(first, last).filter(|(key, _)| is_deferred(key)).collect();
    for ((day, under), sums) in rows {
        let Under::Deferred(key) = under else { continue };
        cells.remove((day, under));
        cells.change((day, Under::Touch(deferred.get(key).flatten())), |row| row.add(sums, Sign::Plus));
    }
}
