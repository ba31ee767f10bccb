//! Figures by time.

use std::io;

use super::super::error::Result;
use headcount_domain::Window;
use headcount_domain::figures::{CountedMoney, EventFigures, Report, ReportQuestion, Series};
use headcount_domain::queries::Unconverted;
use headcount_domain::time::Buckets;

use super::super::events::Scan;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::GoalSet;
use super::goal_sums::add_sum;
use super::people::visit_chosen;

/// Answers a [`ReportQuestion`], in sorts of `sort_bytes` each.
pub(in super::super) fn report(scan: &Scan<'_>, question: &ReportQuestion, sort_bytes: usize) -> Result<Report> {
    let ReportQuestion { windows, interval, predicate, goal } = question;
    let divided = |window: Window| VisitWindow::Divided(Buckets::new(window, *interval, scan.timezone));
    let asked = VisitQuestion {
        windows: [Some(divided(windows.window)), windows.previous.map(divided)],
        predicate,
        goals: GoalSet::new(goal.as_slice()),
        only_goals: false,
        needs_sessions: true,
        dimensions: &[],
        details: None,
    };
    let mut counts = SeriesCounts {
        windows: asked.windows.each_ref().map(|buckets| CountedSeries::new(buckets.as_ref().map_or(0, VisitWindow::buckets))),
        unconverted: Unconverted::new(),
    };
    visit_chosen(scan, &asked, sort_bytes, &mut counts)?;
    let SeriesCounts { windows: [current, previous], unconverted } = counts;
    Ok(Report { current: current.series, previous: windows.previous.map(|_| previous.series), unconverted })
}

struct SeriesCounts {
    windows: [CountedSeries; 2],
    unconverted: Unconverted,
}

/// The figures of a window, with the identity that was counted last in each bucket.
struct CountedSeries {
    series: Series,
    last_of_window: u64,
    last_of_bucket: Vec<u64>,
    /// The same, of identities that converted.
    last_converter: u64,
    last_converter_of_bucket: Vec<u64>,
}

impl CountedSeries {
    fn new(buckets: usize) -> Self {
        let series = Series { totals: EventFigures::default(), buckets: vec![EventFigures::default(); buckets] };
        let last = || vec![0; buckets];
        Self { series, last_of_window: 0, last_of_bucket: last(), last_converter: 0, last_converter_of_bucket: last() }
    }

    /// Changes the figures of a bucket and those of the window.
    fn change(&mut self, bucket: u16, change: impl Fn(&mut EventFigures)) {
        change(&mut self.series.totals);
        self.series.buckets.get_mut(usize::from(bucket)).into_iter().for_each(change);
    }

    fn add_user(&mut self, bucket: u16, identity: u64, converts: bool) {
        let is_new = |last: &mut u64| u64::from(std::mem::replace(last, identity) != identity);
        let (at, Series { totals, buckets }) = (usize::from(bucket), &mut self.series);
        totals.unique_users += is_new(&mut self.last_of_window);
        if converts {
            totals.converters += is_new(&mut self.last_converter);
        }
        let Some(figures) = buckets.get_mut(at) else { return };
        figures.unique_users += self.last_of_bucket.get_mut(at).map_or(0, is_new);
        if converts {
            figures.converters += self.last_converter_of_bucket.get_mut(at).map_or(0, is_new);
        }
    }
}

impl VisitCounts for SeriesCounts {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, _: &[u8]) -> io::Result<()> {
        for (window, bucket) in self.windows.iter_mut().zip(event.buckets) {
            let Some(bucket) = bucket else { continue };
            window.change(bucket, |figures| add_event(figures, event));
            if let Some(identity) = of.identity {
                window.add_user(bucket, identity.number, !event.goals_met.is_empty());
            }
        }
        add_unconverted(&mut self.unconverted, event);
        Ok(())
    }

    fn session(&mut self, session: &CountedSession, holds: [bool; 2], _: &[u8]) -> io::Result<()> {
        for ((window, began), holds) in self.windows.iter_mut().zip(session.began).zip(holds) {
            if let Some(bucket) = began.filter(|_| holds) {
                window.change(bucket, |figures| {
                    figures.sessions += 1;
                    figures.bounces += u64::from(session.is_bounce);
                    figures.duration_ms += session.duration_ms;
                });
            }
        }
        Ok(())
    }
}

/// Adds a chosen event to figures, apart from its identity and its session.
pub(super) fn add_event(figures: &mut EventFigures, event: &Carried<'_>) {
    figures.events += 1;
    figures.pageviews += u64::from(event.is_pageview);
    if let Some(CountedMoney { amount, is_order, unconverted: None }) = event.money {
        figures.revenue += amount;
        figures.orders += i64::from(is_order);
    }
}

/// Adds the money of a chosen event of the first window that has no rate.
pub(super) fn add_unconverted(sums: &mut Unconverted, event: &Carried<'_>) {
    if event.buckets[0].is_none() {
        return;
    }
    event.money.into_iter().for_each(|money| add_without_rate(sums, money));
}

/// Adds money that has no rate, and nothing else.
pub(super) fn add_without_rate(sums: &mut Unconverted, money: CountedMoney) {
    if let CountedMoney { amount, is_order, unconverted: Some(currency) } = money {
        add_sum(sums, currency, (amount, is_order.into()));
    }
}
