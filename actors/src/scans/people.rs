//! The identities for which conditions on people hold. They are found by a pass of its own, in the
//! order in which the next pass meets them.

use std::io;

use headcount_domain::filter::PeopleCondition;
use headcount_domain::{Predicate, RecordKey, Window};

use super::error::Result;
use super::events::Scan;
use super::identities::{KEY, bytes};
use super::record_sort::{RecordSorter, SortedRecords};
use super::visits::{
    Carried, CountedIdentity, CountedOwner, CountedSession, GoalSet, VisitCounts, VisitQuestion, VisitWindow, visit,
};

/// The windows of a question in which conditions hold: a bit for each.
pub(super) type HeldWindows = u8;

/// The identities for which all conditions hold in a window, with these windows.
pub(super) struct People {
    sorted: SortedRecords,
    /// The first identity that was not passed yet.
    next: Option<([u8; KEY], HeldWindows)>,
}

impl People {
    /// Finds the identities. `None` without conditions: they are all.
    pub(super) fn find(
        scan: &Scan<'_>,
        conditions: &[PeopleCondition],
        windows: [Option<Window>; 2],
        sort_bytes: usize,
    ) -> Result<Option<Self>> {
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
            dimensions: &[],
            details: None,
        };
        let found = RecordSorter::new(scan.scratch(), sort_bytes);
        let mut counts = PeopleCounts { conditions, identity: None, counts: vec![0; predicates.len()], found };
        visit(scan, &asked, sort_bytes, &mut counts)?;
        counts.end()?;
        let mut people = Self { sorted: counts.found.finish()?, next: None };
        people.advance()?;
        Ok(Some(people))
    }

    /// Returns the windows in which all conditions hold for an identity. Call it in the order of
    /// identities.
    pub(super) fn windows_of(&mut self, identity: RecordKey) -> io::Result<HeldWindows> {
        let key = bytes(identity);
        while self.next.is_some_and(|(next, _)| next < key) {
            self.advance()?;
        }
        Ok(self.next.filter(|(next, _)| *next == key).map_or(0, |(_, windows)| windows))
    }

    fn advance(&mut self) -> io::Result<()> {
        let record = self.sorted.next()?.and_then(|record| record.split_first_chunk::<KEY>());
        self.next = record.map(|(key, rest)| (*key, rest.first().copied().unwrap_or_default()));
        Ok(())
    }
}

/// Counts the events of one identity after the other.
struct PeopleCounts<'q> {
    conditions: &'q [PeopleCondition],
    identity: Option<CountedIdentity>,
    /// For each window, the events that fit each condition.
    counts: Vec<u32>,
    found: RecordSorter,
}

impl PeopleCounts<'_> {
    /// Adds the identity that was counted, if the conditions hold in any window.
    fn end(&mut self) -> io::Result<()> {
        let Some(identity) = self.identity.take() else { return Ok(()) };
        let holds = |counts: &[u32]| self.conditions.iter().zip(counts).all(|(condition, count)| condition.holds(*count));
        let windows = self.counts.chunks(self.conditions.len()).enumerate();
        let held = windows.fold(0, |held, (window, counts)| held | HeldWindows::from(holds(counts)) << window);
        self.counts.fill(0);
        if held > 0 { self.found.push(&[&bytes(identity.key), &[held]]) } else { Ok(()) }
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
