//! Sessions and bounces per day, by what brought them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::acquisition::Channel;
use crate::facts::{Change, Facts, Touch};
use crate::rollup::{Cell, Cells, Kept, Level, Rollup, Sign};

/// Sessions that the same thing brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visits {
    /// How many sessions.
    pub sessions: i64,
    /// How many of them have exactly one event.
    pub bounces: i64,
}

impl Visits {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Visits) -> Visits {
        Visits { sessions: self.sessions + other.sessions, bounces: self.bounces + other.bounces }
    }
}

/// The sessions that began on one day, by channel and touch; no touch is `(direct)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitsByTouch {
    /// The rows.
    pub rows: BTreeMap<(Channel, Option<Touch>), Visits>,
}

impl Cell for VisitsByTouch {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub struct Traffic;

impl Kept for Traffic {
    const TAG: u8 = 10;
    const NAME: &'static str = "traffic";
    type Cell = VisitsByTouch;
}

impl Rollup for Traffic {
    fn concerned(level: Level, change: Change) -> bool {
        level == Level::Identity && !change.sessions.is_empty()
    }

    fn contribute(_: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<VisitsByTouch>) {
        for session in facts.sessions(change.sessions) {
            cells.change(session.day.0, |cell| {
                let key = (session.channel, session.touch);
                let visits = cell.rows.entry(key).or_default();
                visits.sessions += sign.factor();
                visits.bounces += sign.factor() * i64::from(session.events == 1);
                if *visits == Visits::default() {
                    cell.rows.remove(&key);
                }
            });
        }
    }
}
