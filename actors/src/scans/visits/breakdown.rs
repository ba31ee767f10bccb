//! EventFigures by the values of a property.

use std::io;

use super::super::error::Result;
use headcount_domain::figures::{Breakdown, BreakdownQuestion, RankedRows};
use headcount_domain::queries::Unconverted;

use super::super::events::Scan;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow, values_of};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::GoalSet;
use super::people::visit_chosen;
use super::report::{add_event, add_unconverted};
use super::rows::RowTable;

/// Answers a [`BreakdownQuestion`], in tables and sorts of `sort_bytes` each.
pub(in super::super) fn breakdown(scan: &Scan<'_>, question: &BreakdownQuestion, sort_bytes: usize) -> Result<Breakdown> {
    let BreakdownQuestion { windows, dimension, predicate, goal, search, order_by, limit } = question;
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(windows.window)), windows.previous.map(VisitWindow::Whole)],
        predicate,
        goals: GoalSet::new(goal.as_slice()),
        only_goals: false,
        needs_sessions: true,
        dimensions: std::slice::from_ref(dimension),
        details: None,
    };
    let rows = RowTable::new(scan.scratch(), sort_bytes);
    let mut counts = RowCounts { rows, unconverted: Unconverted::new() };
    visit_chosen(scan, &asked, sort_bytes, &mut counts)?;
    let mut ranked = RankedRows::new(*order_by, *limit, windows.previous.is_some());
    counts.rows.finish(scan.cancelled, &mut |key, figures, previous| {
        if search.selects(key) {
            ranked.add(key, figures, previous);
        }
    })?;
    Ok(ranked.finish(counts.unconverted))
}

struct RowCounts {
    rows: RowTable,
    unconverted: Unconverted,
}

impl VisitCounts for RowCounts {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let row = self.rows.row(values_of(key).next().unwrap_or_default())?;
        for (window, figures) in row.iter_mut().enumerate().filter(|(window, _)| event.buckets[*window].is_some()) {
            add_event(&mut figures.figures, event);
            if let Some(identity) = of.identity {
                figures.add_identity(identity.number, !event.goals_met.is_empty());
            }
            if let Some(session) = of.session.filter(|session| session.began[window].is_some()) {
                figures.add_session(session);
            }
        }
        add_unconverted(&mut self.unconverted, event);
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
