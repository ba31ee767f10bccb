//! Events, pageviews and durations of sessions per day, which a report of whole days tells beside
//! users, sessions and money.
//!
//! Nearly every event changes these rows, so folding adds what it changes. They are a contribution
//! of facts only where all of an identity is added or taken out.

use crate::cells::{Cells, Key, count_of};
use crate::contribution::Sign;
use crate::facts::{Session, Span, Sums};
use crate::rollups::rollup::rollup;
use crate::time::{Day, Window};

/// What a row holds the sum of. The numbers are permanent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Pageviews.
    Pageviews,
    /// Events that are no pageviews: each event is in one row.
    OtherEvents,
    /// The durations of the sessions that began on the day, in milliseconds.
    Duration,
}

impl Counted {
    const ALL: [Self; 3] = [Self::Pageviews, Self::OtherEvents, Self::Duration];
}

impl Key for Counted {
    const BYTES: usize = 1;

    fn pack(self, to: &mut [u8]) {
        (self as u8).pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        Self::ALL.get(usize::from(u8::unpack(from))).copied().unwrap_or(Self::Duration)
    }
}

/// A day, and what is counted of it.
pub type DayAndCounted = (i32, Counted);

/// The sums of some days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DaysActivity {
    /// The number of events.
    pub events: u64,
    /// The number of pageviews.
    pub pageviews: u64,
    /// The durations of the sessions that began on these days, in milliseconds.
    pub duration_ms: u64,
}

rollup! {
    /// See the module. An event touches its day in any case, and a session its days whenever its
    /// end changes.
    Activity: tag 28, "activity", room Sled, version 1, figure Activity, dated by folding,
    key DayAndCounted => value i64,
    of Identity | Nobody when |change| change.days == Span::ALL,
    |facts, change, sign, cells| {
        facts.days(change.days).for_each(|entry| cells.count_events(entry.day, &entry.sums, sign));
        facts.sessions(change.sessions).for_each(|session| cells.count_duration(session, sign));
    }
}

impl Cells<DayAndCounted, i64> {
    /// Adds or takes out the events of a day.
    pub(crate) fn count_events(&mut self, day: Day, sums: &Sums, sign: Sign) {
        let others = sums.events.saturating_sub(sums.pageviews);
        self.add((day.0, Counted::Pageviews), sign.factor() * i64::from(sums.pageviews));
        self.add((day.0, Counted::OtherEvents), sign.factor() * i64::from(others));
    }

    /// Adds or takes out the duration of a session.
    pub(crate) fn count_duration(&mut self, session: &Session, sign: Sign) {
        self.lengthen(session.day, sign.factor() * session.duration_ms());
    }

    /// Adds to the duration of a session that began on `day`.
    pub(crate) fn lengthen(&mut self, day: Day, by_ms: i64) {
        self.add((day.0, Counted::Duration), by_ms);
    }

    /// Returns the sums of the days of a window.
    pub fn of_days(&self, window: Window) -> DaysActivity {
        let (mut pageviews, mut others, mut duration_ms) = (0, 0, 0);
        for ((_, counted), sum) in self.between(window.start.0, window.end.0) {
            match counted {
                Counted::Pageviews => pageviews += sum,
                Counted::OtherEvents => others += sum,
                Counted::Duration => duration_ms += sum,
            }
        }
        DaysActivity {
            events: count_of(pageviews.saturating_add(others)),
            pageviews: count_of(pageviews),
            duration_ms: count_of(duration_ms),
        }
    }
}
