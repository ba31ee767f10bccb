//! The pass that finds the identities for which conditions on people hold.

use std::io;

use headcount_domain::filter::PeopleCondition;
use headcount_domain::{Predicate, RecordKey, Window};

use super::super::condition_counts::{ConditionEvents, count_fits};
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
    let events = |window: Window| {
        conditions
            .iter()
            .map(move |condition| ConditionEvents { days: condition.within.days(window), predicate: &condition.predicate })
    };
    let counted: Vec<_> = windows.into_iter().flatten().flat_map(events).collect();
    let found = RecordSorter::new(scan.scratch(), sort_bytes);
    let mut found = FoundPeople { conditions, others: held(conditions, &vec![0; counted.len()]), found };
    if counted.iter().any(|condition| condition.predicate.needs_session()) {
        by_session(scan, &counted, sort_bytes, &mut found)?;
    } else {
        count_fits(scan, &counted, sort_bytes, &mut |identity, counts| found.add(identity, counts))?;
    }
    Ok(Some(People::new(found.found.finish()?, found.others)?))
}

/// Counts the events that fit each condition, session by session.
fn by_session(scan: &Scan<'_>, counted: &[ConditionEvents<'_>], sort_bytes: usize, found: &mut FoundPeople<'_>) -> Result<()> {
    let predicates: Vec<Predicate> = counted.iter().map(|condition| condition.predicate.clone()).collect();
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(Window::ALL)), None],
        predicate: &Predicate::default(),
        goals: GoalSet::dated(&predicates, counted.iter().map(|condition| condition.days).collect()),
        only_goals: true,
        needs_sessions: true,
        dimensions: &[],
        details: None,
    };
    let mut counts = PeopleCounts { identity: None, counts: vec![0; predicates.len()], found };
    visit(scan, &asked, None, sort_bytes, &mut counts)?;
    Ok(counts.end()?)
}

/// Returns the windows in which conditions hold. `counts` has the events that fit each condition.
fn held(conditions: &[PeopleCondition], counts: &[u32]) -> HeldWindows {
    let holds = |counts: &[u32]| conditions.iter().zip(counts).all(|(condition, count)| condition.holds(*count));
    let windows = counts.chunks(conditions.len()).enumerate();
    windows.fold(0, |held, (window, counts)| held | HeldWindows::from(holds(counts)) << window)
}

/// The identities that were found.
struct FoundPeople<'q> {
    conditions: &'q [PeopleCondition],
    /// The windows of identities without a fitting event.
    others: HeldWindows,
    found: RecordSorter,
}

impl FoundPeople<'_> {
    /// Adds an identity unless its windows are `others`. `counts` has, for each window, its events
    /// that fit each condition.
    fn add(&mut self, identity: RecordKey, counts: &[u32]) -> io::Result<()> {
        let held = held(self.conditions, counts);
        if held != self.others { self.found.push(&[&bytes(identity), &[held]]) } else { Ok(()) }
    }
}

/// Counts the events that fit conditions, of one identity after the other.
struct PeopleCounts<'f, 'q> {
    identity: Option<CountedIdentity>,
    counts: Vec<u32>,
    found: &'f mut FoundPeople<'q>,
}

impl PeopleCounts<'_, '_> {
    /// Adds the identity that was counted.
    fn end(&mut self) -> io::Result<()> {
        let Some(identity) = self.identity.take() else { return Ok(()) };
        self.found.add(identity.key, &self.counts)?;
        self.counts.fill(0);
        Ok(())
    }
}

impl VisitCounts for PeopleCounts<'_, '_> {
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
