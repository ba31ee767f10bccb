//! Retention: what was frozen below the floor of each project.
//!
//! A floor freezes, on each day below it, who was active and since when not, the touches of the
//! orders, the sessions, and how many events there were. From then on events of these days are
//! dropped, and nothing else moves what is frozen; money can't move anyway.

use crate::acquisition::{Origin, channel, origin};
use crate::answers::{account_or_identity, touch};
use crate::event::Event;
use crate::facts::{Account, Facts, Session};
use crate::rows::{self, Rows, has_day};
use crate::time::day_of;
use chrono::NaiveDate;
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};

/// Who an entity is: at the level `account` or `identity`.
pub(crate) const LEVELS: [&str; 2] = ["account", "identity"];
/// Which touch of an entity counts.
pub(crate) const MODELS: [&str; 2] = ["first_touch", "last_touch"];

/// An entity that was active on a day, and its last active day before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) day: NaiveDate,
    pub(crate) before: Option<NaiveDate>,
}

/// A session as its day shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The day of its entry.
    pub day: NaiveDate,
    /// Where it came from.
    pub origin: Origin,
    /// Its channel.
    pub channel: String,
    /// Whether it has one event.
    pub is_bounce: bool,
    /// The time from its first event to its last.
    pub duration_ms: i64,
}

/// How many events a day has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    pub(crate) events: usize,
    pub(crate) pageviews: usize,
}

/// The frozen days of a project.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// The first day that is not frozen.
    pub floor: NaiveDate,
    active: BTreeMap<&'static str, Vec<Active>>,
    /// By order, model and level.
    touches: BTreeMap<(usize, &'static str, &'static str), Origin>,
    visits: Vec<Visit>,
    events: BTreeMap<NaiveDate, EventCounts>,
    /// By rollup.
    rows: BTreeMap<&'static str, Rows>,
}

impl Frozen {
    /// Freezes the days of a project below `floor`, except those that are frozen `already`.
    pub(crate) fn new(facts: &Facts<'_>, timezone: Tz, project: &str, floor: NaiveDate, already: Option<Frozen>) -> Frozen {
        let mut frozen = already.unwrap_or_else(|| Frozen {
            floor: NaiveDate::MIN,
            active: BTreeMap::new(),
            touches: BTreeMap::new(),
            visits: Vec::new(),
            events: BTreeMap::new(),
            rows: BTreeMap::new(),
        });
        let is_new = |day: NaiveDate| frozen.floor <= day && day < floor;
        for level in LEVELS {
            let new: Vec<Active> = active(facts, timezone, project, level).into_iter().filter(|one| is_new(one.day)).collect();
            frozen.active.entry(level).or_default().extend(new);
        }
        for index in facts.of_project(project).filter(|&index| is_new(day_of(facts.events[index].at_ms, timezone))) {
            for (model, level) in MODELS.into_iter().flat_map(|model| LEVELS.map(|level| (model, level))) {
                frozen.touches.insert((index, model, level), touch(facts, project, index, level, model));
            }
        }
        let new: Vec<Visit> = visits(facts, timezone, project).into_iter().filter(|visit| is_new(visit.day)).collect();
        frozen.visits.extend(new);
        frozen.events.extend(events(facts, timezone, project).into_iter().filter(|(day, _)| is_new(*day)));
        for (rollup, rows) in rows::rows(facts, timezone, project) {
            let new = rows.into_iter().filter(|(key, _)| has_day(key, is_new) == Some(true));
            frozen.rows.entry(rollup).or_default().extend(new);
        }
        Frozen { floor, ..frozen }
    }
}

/// The days on which each entity of a project was active.
pub(crate) fn active(facts: &Facts<'_>, timezone: Tz, project: &str, level: &str) -> Vec<Active> {
    let mut days: BTreeMap<Account, BTreeSet<NaiveDate>> = BTreeMap::new();
    for index in facts.of_project(project) {
        if let Some(entity) = account_or_identity(facts, index, level) {
            days.entry(entity).or_default().insert(day_of(facts.events[index].at_ms, timezone));
        }
    }
    let of = |days: BTreeSet<NaiveDate>| {
        let days: Vec<NaiveDate> = days.into_iter().collect();
        let before = |at: usize| at.checked_sub(1).map(|at| days[at]);
        (0..days.len()).map(|at| Active { day: days[at], before: before(at) }).collect::<Vec<_>>()
    };
    days.into_values().flat_map(of).collect()
}

/// The sessions of a project.
#[must_use]
pub fn visits(facts: &Facts<'_>, timezone: Tz, project: &str) -> Vec<Visit> {
    let visit = |session: &Session| {
        let (entry, brought_by): (&Event, &Event) = (&facts.events[session.entry()], facts.brought_by(session));
        let is_bounce = session.events.len() == 1;
        let duration_ms = facts.events[session.last()].at_ms - entry.at_ms;
        let (day, origin) = (day_of(entry.at_ms, timezone), origin(brought_by));
        Visit { day, origin, channel: channel(brought_by), is_bounce, duration_ms }
    };
    let is_its = |session: &&Session| facts.events[session.entry()].project == project;
    facts.sessions.iter().filter(is_its).map(visit).collect()
}

/// The numbers of events of a project, by day.
fn events(facts: &Facts<'_>, timezone: Tz, project: &str) -> BTreeMap<NaiveDate, EventCounts> {
    let mut days: BTreeMap<NaiveDate, EventCounts> = BTreeMap::new();
    for index in facts.of_project(project) {
        let event = &facts.events[index];
        let day = days.entry(day_of(event.at_ms, timezone)).or_default();
        day.events += 1;
        day.pageviews += usize::from(event.is_pageview());
    }
    days
}

/// The days of a project: frozen below its floor, and as the facts have them from there on.
pub(crate) struct Days<'f> {
    pub(crate) facts: &'f Facts<'f>,
    pub(crate) timezone: Tz,
    pub(crate) project: &'f str,
    pub(crate) frozen: Option<&'f Frozen>,
}

impl Days<'_> {
    fn is_live(&self, day: NaiveDate) -> bool {
        self.frozen.is_none_or(|frozen| day >= frozen.floor)
    }

    /// Returns who was active on each day.
    pub(crate) fn active(&self, level: &str) -> Vec<Active> {
        let live = active(self.facts, self.timezone, self.project, level).into_iter().filter(|one| self.is_live(one.day));
        let frozen = self.frozen.and_then(|frozen| frozen.active.get(level)).into_iter().flatten().cloned();
        frozen.chain(live).collect()
    }

    /// Returns the touch of an order.
    pub(crate) fn touch(&self, order: usize, level: &'static str, model: &'static str) -> Origin {
        let frozen = self.frozen.and_then(|frozen| frozen.touches.get(&(order, model, level))).cloned();
        frozen.unwrap_or_else(|| touch(self.facts, self.project, order, level, model))
    }

    /// Returns the sessions.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        let live = visits(self.facts, self.timezone, self.project).into_iter().filter(|visit| self.is_live(visit.day));
        self.frozen.into_iter().flat_map(|frozen| frozen.visits.clone()).chain(live).collect()
    }

    /// Returns the rows of every rollup that is compared by rows.
    pub(crate) fn rows(&self) -> BTreeMap<&'static str, Rows> {
        let mut all = rows::rows(self.facts, self.timezone, self.project);
        for (rollup, rows) in &mut all {
            rows.retain(|key, _| has_day(key, |day| self.is_live(day)) != Some(false));
            rows.extend(
                self.frozen
                    .and_then(|frozen| frozen.rows.get(rollup))
                    .into_iter()
                    .flatten()
                    .map(|(key, sum)| (key.clone(), *sum)),
            );
        }
        all
    }

    /// Returns how many events each day has.
    pub(crate) fn events(&self) -> BTreeMap<NaiveDate, EventCounts> {
        let live = events(self.facts, self.timezone, self.project).into_iter().filter(|(day, _)| self.is_live(*day));
        self.frozen.into_iter().flat_map(|frozen| frozen.events.clone()).chain(live).collect()
    }
}
