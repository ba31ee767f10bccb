//! The floor of a project: the first day whose figures still change.
//!
//! Retention raises it. Rows of rollups below it are frozen: events, links and late changes don't
//! alter them, and events of those days are dropped. Facts keep all their days, so gaps, sessions,
//! first touches and links above the floor stay exact.

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
    /// Its new floor, unless it is already higher.
    pub day: Day,
}

impl FloorMove {
    /// Returns a record of a project that changes nothing: a floor below every event.
    pub fn mark(project: ProjectId) -> Self {
        Self { project, day: Day(i32::MIN) }
    }

    /// Whether it changes nothing.
    pub fn is_mark(&self) -> bool {
        self.day == Day(i32::MIN)
    }
}

/// A floor that is being raised. With many orders it takes several steps: see
/// [`Project::raise_floor`].
#[derive(Debug, Clone)]
pub struct RisingFloor {
    day: Day,
    /// The position of the record.
    position: Position,
    /// The number of tables without deferred orders so far.
    table: usize,
    /// The next row to process in the current table; `None` for its first row.
    next: Option<DayAndUnder>,
}

impl RisingFloor {
    /// Creates a floor that rises to `day` by the record at `position`.
    pub fn new(day: Day, position: Position) -> Self {
        Self { day, position, table: 0, next: None }
    }
}

/// The number of days that are touched one by one when the floor rises.
const MAX_TOUCHED_DAYS: u32 = 64;

impl Project {
    /// Returns the first day whose figures still change; `None` if all do.
    pub fn floor(&self) -> Option<Day> {
        self.floor
    }

    /// Whether an event is dropped because its day lies below the floor. Such an event must not be
    /// applied.
    pub fn drops(&self, event: &Event) -> bool {
        self.floor.is_some_and(|floor| event.day < floor)
    }

    /// Restores a saved floor.
    pub fn restore_floor(&mut self, floor: Option<Day>) {
        self.floor = floor;
        self.rollups.set_floor(floor);
    }

    /// Takes a step in raising the floor that processes up to `most` rows. Returns whether the
    /// floor is raised, or was as high before: it never falls.
    ///
    /// Answers don't change between two steps. But no event may be applied and no checkpoint begun
    /// before the last step: the checkpoint would contain resolved touches that a replay up to it
    /// does not have.
    pub fn raise_floor(&mut self, rising: &mut RisingFloor, most: usize) -> bool {
        let (former, day) = (self.floor, rising.day);
        if former.is_none_or(|former| day > former) {
            if !self.resolve_deferred(rising, former, most) {
                return false;
            }
            self.restore_floor(Some(day));
            // Readers of events no longer see these days, and a window that began on them may begin
            // at the floor.
            match former.and_then(|former| Some((former.0, u32::try_from(day.0.checked_sub(former.0)?).ok()?))) {
                Some((former, days)) if days <= MAX_TOUCHED_DAYS => {
                    (former..=day.0).for_each(|day| self.touched.day(FigureKind::Events, Day(day)));
                }
                _ => self.touched.all_days(FigureKind::Events),
            }
        }
        self.versions.touch(&self.touched, rising.position);
        self.touched.clear();
        true
    }

    /// Resolves the deferred touches of orders from the day `from` to the day before the new floor,
    /// so that later touches don't move these orders. Processes up to `most` rows, and returns
    /// whether it is finished.
    fn resolve_deferred(&mut self, rising: &mut RisingFloor, from: Option<Day>, most: usize) -> bool {
        let first = from.map_or(i32::MIN, |day| day.0);
        let Some(last) = rising.day.0.checked_sub(1) else { return true };
        let rollups = &mut self.rollups;
        let Rollups { deferred_by_identity: identities, deferred_by_account: accounts, .. } = rollups;
        let (cells, deferred) = match rising.table {
            0 => (&mut rollups.first_touch_by_identity, identities),
            1 => (&mut rollups.last_touch_by_identity, identities),
            2 => (&mut rollups.first_touch_by_account, accounts),
            3 => (&mut rollups.last_touch_by_account, accounts),
            _ => return true,
        };
        rising.next = match rising.next {
            None => name_touches(cells, deferred, cells.between(first, last).take(most.saturating_add(1)).collect(), most),
            Some(next) => name_touches(cells, deferred, cells.since(next, last).take(most.saturating_add(1)).collect(), most),
        };
        rising.table += usize::from(rising.next.is_none());
        // The answers about these days stay the same, so no version changes.
        rollups.drain(&mut Touched::default());
        false
    }
}

/// Resolves the deferred touches of up to `most` rows. Returns the key of the next row, if any.
fn name_touches(
    cells: &mut Cells<DayAndUnder, TouchSums>,
    deferred: &DeferredAttribution,
    rows: Vec<(DayAndUnder, TouchSums)>,
    most: usize,
) -> Option<DayAndUnder> {
    let next = rows.get(most).map(|(key, _)| *key);
    for ((day, under), sums) in rows.into_iter().take(most) {
        let Under::Deferred(key) = under else { continue };
        cells.remove((day, under));
        cells.change((day, Under::Touch(deferred.get(key).flatten())), |row| row.add(sums, Sign::Plus));
    }
    next
}
