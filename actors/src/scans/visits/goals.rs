//! The figures of goals.

use std::io;
use std::mem;

use headcount_archive::ArchiveError;
use headcount_domain::figures::{CountedMoney, GoalsQuestion, GoalsReport, WindowGoals};
use headcount_domain::queries::Unconverted;
use headcount_domain::{Day, Event, Predicate};

use super::super::active_users::Marks;
use super::super::error::Result;
use super::super::events::Scan;
use super::super::kept_figures::KeptFigures;
use super::super::sealed_group::{Rows, SealedGroup};
use super::super::user_marks::{GiveMarks, MarkVisitor, count_users, no_users};
use super::super::views::ViewRoom;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::{GoalColumns, GoalSet};
use super::goal_sums::{GoalSums, count_conversion};
use super::people::visit_chosen;
use super::report::{add_unconverted, add_without_rate};

/// Answers a [`GoalsQuestion`], in sorts of `sort_bytes` each. Users that are kept are advanced,
/// and kept again if there is room.
pub(in super::super) fn goals(
    scan: &Scan<'_>,
    question: &GoalsQuestion,
    (kept, room): (&mut KeptFigures, &mut ViewRoom<'_>),
    sort_bytes: usize,
) -> Result<GoalsReport> {
    if question.predicate.needs_session() || question.goals.iter().any(Predicate::needs_session) {
        return by_session(scan, question, sort_bytes);
    }
    let marks = GoalMarks { question, set: GoalSet::new(&question.goals) };
    let mut counted = match mem::take(kept) {
        KeptFigures::Goals(counted) => counted,
        _ => no_users(scan, &marks),
    };
    let counts = count_users(scan, (&marks, None), &mut counted, room, sort_bytes);
    let answer = counts.map(|counts| marks.answer(&counted.sums, &counts.of_mark));
    // What was counted before a failure is counted.
    if counted.is_whole {
        *kept = KeptFigures::Goals(counted);
    }
    answer
}

/// Of each window, users have a mark for a chosen event, and one for each goal that they reached.
struct GoalMarks<'q> {
    question: &'q GoalsQuestion,
    set: GoalSet<'q>,
}

impl GoalMarks<'_> {
    /// The first mark of a window.
    fn first(&self, window: usize) -> usize {
        window * (1 + self.question.goals.len())
    }

    /// The windows that have a day.
    fn windows_of(&self, day: Day) -> [bool; 2] {
        let windows = self.question.windows;
        [windows.window.contains(day), windows.previous.is_some_and(|window| window.contains(day))]
    }

    /// Counts a chosen event that fits the goals `met`.
    fn count(&self, day: Day, met: &[usize], money: Option<CountedMoney>, sums: &mut GoalSums, mark: &mut MarkVisitor<'_>) {
        let windows = self.windows_of(day);
        for window in (0..2).filter(|window| windows[*window]) {
            let first = self.first(window);
            let mut marks = Marks::one(first);
            for goal in met {
                let next = Marks::one(first + 1 + goal);
                if next.block == marks.block {
                    marks.bits |= next.bits;
                } else {
                    mark(mem::replace(&mut marks, next));
                }
                let Some(figures) = sums.windows[window].goals.get_mut(*goal) else { continue };
                count_conversion(figures, money);
            }
            mark(marks);
        }
        if windows[0] && !met.is_empty() {
            money.into_iter().for_each(|money| add_without_rate(&mut sums.unconverted, money));
        }
    }

    fn answer(&self, sums: &GoalSums, of_mark: &[u64]) -> GoalsReport {
        let window = |window: usize| {
            let mut figures = sums.windows[window].clone();
            let mut users = of_mark.iter().skip(self.first(window)).copied();
            figures.unique_users = users.next().unwrap_or_default();
            figures.goals.iter_mut().zip(users).for_each(|(goal, users)| goal.converters = users);
            figures
        };
        let previous = self.question.windows.previous.map(|_| window(1));
        GoalsReport { current: window(0), previous, unconverted: sums.unconverted.clone() }
    }
}

impl GiveMarks for GoalMarks<'_> {
    type Sums = GoalSums;

    fn sums(&self) -> GoalSums {
        GoalSums::new(self.question.goals.len())
    }

    fn count(&self) -> usize {
        self.first(2)
    }

    fn rows(
        &self,
        group: &SealedGroup<'_>,
        mut rows: Rows,
        sums: &mut GoalSums,
        mark: &mut dyn FnMut(usize, Marks),
    ) -> Result<(), ArchiveError> {
        let days = group.days()?;
        let day_of = |row: usize| days.as_ref().map_or_else(|day| *day, |days| days[row]);
        rows.retain(|row| self.windows_of(day_of(row)).contains(&true));
        group.retain_matching(&mut rows, &self.question.predicate)?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut matching = vec![false; group.rows()];
        rows.for_each(|row| matching[row] = true);
        let (columns, money) = (GoalColumns::read(&self.set, group, &matching)?, group.money()?);
        let (mut write, mut carried, mut met) = (columns.writer(), Vec::new(), Vec::new());
        rows.for_each(|row| {
            carried.clear();
            write(row, &mut carried);
            self.set.met(&carried, &[], &mut met);
            let money = money.as_ref().and_then(|money| money.of(row));
            self.count(day_of(row), &met, money, sums, &mut |marks| mark(row, marks));
        });
        Ok(())
    }

    fn event(&self, event: &Event, sums: &mut GoalSums, mark: &mut MarkVisitor<'_>) {
        if !self.windows_of(event.day).contains(&true) || !self.question.predicate.matches_event(event) {
            return;
        }
        let (mut carried, mut met) = (Vec::new(), Vec::new());
        self.set.write_event(event, true, &mut carried);
        self.set.met(&carried, &[], &mut met);
        self.count(event.day, &met, CountedMoney::of(event), sums, mark);
    }

    fn add(&self, sums: GoalSums, to: &mut GoalSums) {
        to.add(sums);
    }
}

/// Counts goals, or events, that depend on sessions or on who the users are.
fn by_session(scan: &Scan<'_>, question: &GoalsQuestion, sort_bytes: usize) -> Result<GoalsReport> {
    let GoalsQuestion { windows, predicate, goals } = question;
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(windows.window)), windows.previous.map(VisitWindow::Whole)],
        predicate,
        goals: GoalSet::new(goals),
        only_goals: false,
        needs_sessions: predicate.reads_sessions() || goals.iter().any(Predicate::needs_session),
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
            count_conversion(figures, event.money);
            figures.converters += u64::from(is_new(last));
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
