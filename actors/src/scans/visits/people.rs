//! The pass that finds the identities for which conditions on people hold.

use std::io;

use headcount_domain::filter::PeopleCondition;
use headcount_domain::{Predicate, Window};

use super::super::error::Result;
use super::super::events::Scan;
use super::super::identities::bytes;
use super::super::people::{HeldWindows, People};
use super::super::record_sort::RecordSorter;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow};
use super::fold::{CountedIdentity, CountedOwner, CountedSession, VisitCounts, visit};
use super::goal_set::GoalSet;

/// Counts what `question` asks for, of the people for whom its conditions hold, in sorts of
/// `sort_bytes`.
pub(in super::super) fn visit_chosen(
    scan: &Scan<'_>,
    question: &VisitQuestion<'_>,
    sort_bytes: usize,
    counts: &mut dyn VisitCounts,
) -> Result<()> {
    let days = question.windows.each_ref().map(|window| window.as_ref().map(VisitWindow::days));
    let people = find_people(scan, question.predicate.people(), days, sort_bytes)?;
    visit(scan, question, people, sort_bytes, counts)
}

/// Finds the identities. `None` without conditions: they are all.
pub(in super::super) fn find_people(
    scan: &Scan<'_>,
    conditions: &[PeopleCondition],
    windows: [Option<Window>; 2],
    sort_bytes: usize,
) -> Result<Option<People>> {
    if conditions.is_empty() {
        return Ok(None);
    }
    let everything = Predicate::default();
    let counted = || windows.iter().flatten().flat_map(|window| conditions.iter().map(|condition| (*window, condition)));
    let predicates: Vec<Predicate> = counted().map(|(_, condition)| condition.predicate.clone()).collect();
    let days = counted().map(|(window, condition)| condition.within.days(window)).collect();
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(Window::ALL)), None],
        predicate: &everything,
        goals: GoalSet::dated(&predicates, days),
        only_goals: true,
        needs_sessions: predicates.iter().any(Predicate::needs_session),
        dimensions: &[],
        details: None,
    };
    let found = RecordSorter::new(scan.scratch(), sort_bytes);
    let none = vec![0; predicates.len()];
    let others = held(conditions, &none);
    let mut counts = PeopleCounts { conditions, identity: None, counts: none, others, found };
    visit(scan, &asked, None, sort_bytes, &mut counts)?;
    counts.end()?;
    Ok(Some(People::new(counts.found.finish()?, others)?))
}

/// Returns the windows in which conditions hold. `counts` has the events that fit each condition.
fn held(conditions: &[PeopleCondition], counts: &[u32]) -> HeldWindows {
    let holds = |counts: &[u32]| conditions.iter().zip(counts).all(|(condition, count)| condition.holds(*count));
    let windows = counts.chunks(conditions.len()).enumerate();
    windows.fold(0, |held, (window, counts)| held | HeldWindows::from(holds(counts)) << window)
}

/// Counts the events that fit conditions, of one identity after the other.
struct PeopleCounts<'q> {
    conditions: &'q [PeopleCondition],
    identity: Option<CountedIdentity>,
    /// For each window, the events that fit each condition.
    counts: Vec<u32>,
    /// The windows of identities without such events.
    others: HeldWindows,
    found: RecordSorter,
}

impl PeopleCounts<'_> {
    /// Adds the identity that was counted, unless its windows are `others`.
    fn end(&mut self) -> io::Result<()> {
        let Some(identity) = self.identity.take() else { return Ok(()) };
        let held = held(self.conditions, &self.counts);
        self.counts.fill(0);
        if held != self.others { self.found.push(&[&bytes(identity.key), &[held]]) } else { Ok(()) }
    }
}

impl VisitCounts for PeopleCounts<'_> {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, _: &[u8]) -> io::Result<()> {
        let Some(identity) = of.identity else { return Ok(()) };
        if self.identity.is_none_or(|counted| counted.number != identity.number) {
            self.end()?;
            self.identity = Some(identity);
        }
        for condition in event.goals_met {
            if let Some(count) = self.counts.get_mut(*condition) {
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
