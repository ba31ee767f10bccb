//! The figures of all events of whole days by time, from rollups. They remain after the events of
//! these days are removed.

use serde::{Deserialize, Serialize};

use super::event_figures::EventFigures;
use super::question::ComparedWindows;
use crate::cells::count_of;
use crate::fault::Fault;
use crate::queries::{Query, Reader, Unconverted};
use crate::records::Source;
use crate::rollups::{Rollups, Visits, distinct};
use crate::time::{Interval, Window};
use crate::versions::{Depends, FigureKind};

/// Asks for the figures of a window by day, week or month. For hours it returns the figures of
/// whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportQuery {
    /// The days.
    pub windows: ComparedWindows,
    /// The length of the buckets.
    pub interval: Interval,
}

impl Query for ReportQuery {
    type Partial = Report;

    fn depends(&self) -> Depends {
        let ComparedWindows { window, previous } = self.windows;
        Depends::TwoWindows(&[FigureKind::Users, FigureKind::Money, FigureKind::Traffic, FigureKind::Activity], window, previous)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Report, Fault> {
        let (rollups, ComparedWindows { window, previous }) = (&reader.project.rollups, self.windows);
        let series = |window: Window| {
            let buckets = window.divided(self.interval).into_iter().map(|days| figures(rollups, days)).collect();
            Series { totals: figures(rollups, window), buckets }
        };
        let unconverted = rollups.revenue.sums(window.start, window.end).unconverted.to_map();
        Ok(Report { current: series(window), previous: previous.map(series), unconverted })
    }
}

/// Returns the figures of all events of some days.
fn figures(rollups: &Rollups, days: Window) -> EventFigures {
    let visits = rollups.traffic.between(days.start.0, days.end.0);
    let visits = visits.fold(Visits::default(), |sum, (_, visits)| sum.plus(visits));
    let (activity, money) = (rollups.activity.of_days(days), rollups.revenue.sums(days.start, days.end));
    EventFigures {
        unique_users: distinct::total(&rollups.unique_users, days),
        converters: 0,
        sessions: count_of(visits.sessions),
        bounces: count_of(visits.bounces),
        duration_ms: activity.duration_ms,
        pageviews: activity.pageviews,
        events: activity.events,
        revenue: money.revenue,
        orders: money.orders,
    }
}

/// The figures of a window, and of each of its buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The figures of the window. Its unique users are a union, not the sum of the buckets.
    pub totals: EventFigures,
    /// The figures of the buckets, in order.
    pub buckets: Vec<EventFigures>,
}

/// The answer to a [`ReportQuestion`](super::ReportQuestion) or a
/// [`ReportQuery`](super::ReportQuery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The figures of the window.
    pub current: Series,
    /// The figures of the comparison window.
    pub previous: Option<Series>,
    /// The money of the window that is left out because it has no rate.
    pub unconverted: Unconverted,
}
