//! The figures of goals.

use std::io;

use headcount_domain::figures::{CountedMoney, GoalsQuestion, GoalsReport, WindowGoals};
use headcount_domain::queries::Unconverted;

use super::super::error::Result;
use super::super::events::Scan;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::GoalSet;
use super::people::visit_chosen;
use super::report::add_unconverted;

/// Answers a [`GoalsQuestion`], in sorts of `sort_bytes` each.
pub(in super::super) fn goals(scan: &Scan<'_>, question: &GoalsQuestion, sort_bytes: usize) -> Result<GoalsReport> {
    let GoalsQuestion { windows, predicate, goals } = question;
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(windows.window)), windows.previous.map(VisitWindow::Whole)],
        predicate,
        goals: GoalSet::new(goals),
        only_goals: false,
        needs_sessions: true,
        dimensions: &[],
        details: None,
    };
    let counts = || WindowCounts { last: 0, last_of_goals: vec![0; goals.len()], figures: WindowGoals::new(goals.len()) };
    let mut counts = GoalCounts { windows: [counts(), counts()], unconverted: Unconverted::new() };
    visit_chosen(scan, &asked, sort_bytes, &mut counts)?;
    let GoalCounts { windows: [current, previous], unconverted } = counts;
    Ok(GoalsReport { current: current.figures, previous: windows.previous.map(|_| previous.figures), unconverted })
}

struct GoalCounts {
    windows: [WindowCounts; 2],
    unconverted: Unconverted,
}

/// The figures of a window, with the identities that were counted last.
struct WindowCounts {
    last: u64,
    last_of_goals: Vec<u64>,
    figures: WindowGoals,
}

impl WindowCounts {
    fn add(&mut self, of: CountedOwner<'_>, event: &Carried<'_>) {
        let is_new =
            |last: &mut u64| of.identity.is_some_and(|identity| std::mem::replace(last, identity.number) != identity.number);
        self.figures.unique_users += u64::from(is_new(&mut self.last));
        for goal in event.goals_met {
            let Some((figures, last)) = self.figures.goals.get_mut(*goal).zip(self.last_of_goals.get_mut(*goal)) else {
                continue;
            };
            figures.conversions += 1;
            figures.converters += u64::from(is_new(last));
            if let Some(CountedMoney { amount, unconverted: None, .. }) = event.money {
                figures.revenue += amount;
            }
        }
    }
}

impl VisitCounts for GoalCounts {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, _: &[u8]) -> io::Result<()> {
        for (window, counts) in self.windows.iter_mut().enumerate() {
            if event.buckets[window].is_some() {
                counts.add(of, event);
            }
        }
        if !event.goals_met.is_empty() {
            add_unconverted(&mut self.unconverted, event);
        }
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
