//! The figures of all events of whole days, frozen or live.

use super::Asked;
use super::figures::Figures;
use super::unique_users::firsts;
use crate::frozen::{Active, EventCounts, Visit};
use crate::time::Window;
use chrono::NaiveDate;
use std::collections::BTreeMap;

/// What each day of a project knows.
pub(super) struct WholeDays<'a, 'f> {
    asked: &'a Asked<'f>,
    project: &'a str,
    active: Vec<Active>,
    visits: Vec<Visit>,
    events: BTreeMap<NaiveDate, EventCounts>,
}

impl<'a, 'f> WholeDays<'a, 'f> {
    pub(super) fn of(asked: &'a Asked<'f>, project: &'a str) -> Self {
        let days = asked.days(project);
        Self { asked, project, active: days.active("identity"), visits: days.visits(), events: days.events() }
    }

    /// Returns the figures of the days of a window.
    pub(super) fn figures(&self, window: Window) -> Figures {
        let mut figures = Figures { users: firsts(&self.active, window), ..Figures::default() };
        for visit in self.visits.iter().filter(|visit| window.holds(visit.day)) {
            figures.sessions += 1;
            figures.bounces += usize::from(visit.is_bounce);
            figures.duration_ms += visit.duration_ms;
        }
        for (_, counts) in self.events.range(window.first..=window.last) {
            figures.events += counts.events;
            figures.pageviews += counts.pageviews;
        }
        // Money can't move.
        let indices = self.asked.facts.of_project(self.project).filter(|&index| window.holds(self.asked.day(index)));
        indices.for_each(|index| figures.till.add_in_project(&self.asked.facts.events[index]));
        figures
    }
}
