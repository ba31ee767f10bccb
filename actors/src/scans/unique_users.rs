//! Unique users of the events that match a predicate.

use std::mem;

use headcount_archive::ArchiveError;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::{Day, Event, Predicate, Window};

use super::active_users::{MarkCounts, Marks};
use super::decided::{flags, visit_matching};
use super::error::Result;
use super::events::Scan;
use super::kept_figures::KeptFigures;
use super::people::People;
use super::sealed_group::{Rows, SealedGroup};
use super::session_events::{SessionEvent, SessionQuestion};
use super::sessions::Sessions;
use super::user_marks::{GiveMarks, MarkVisitor, MarkedUsers, count_users, no_users};
use super::views::ViewRoom;
use super::visits::find_people;

/// Counts the users with an event that matches `predicate`, in sorts of `sort_bytes` each. Days of
/// users that are kept are advanced, and kept again if there is room.
pub(super) fn unique_users(
    scan: &Scan<'_>,
    window: Window,
    predicate: &Predicate,
    (kept, room): (&mut KeptFigures, &mut ViewRoom<'_>),
    sort_bytes: usize,
) -> Result<UniqueUsers> {
    let days = ActiveDays { window, predicate };
    let people = find_people(scan, predicate.people(), [Some(window), None], sort_bytes)?;
    if predicate.reads_sessions() {
        let users = by_session(scan, &days, people, sort_bytes)?;
        return Ok(days.answer(users.count(days.count(), None, scan.cancelled)?));
    }
    let mut counted = match mem::take(kept) {
        KeptFigures::Users(counted) => counted,
        _ => no_users(scan, &days),
    };
    let counts = count_users(scan, (&days, people), &mut counted, room, sort_bytes);
    // What was counted before a failure is counted.
    if counted.is_whole {
        *kept = KeptFigures::Users(counted);
    }
    counts.map(|counts| days.answer(counts))
}

/// The days of a window on which users had a matching event.
struct ActiveDays<'q> {
    window: Window,
    predicate: &'q Predicate,
}

impl ActiveDays<'_> {
    fn mark_of(&self, day: Day) -> Marks {
        Marks::one(usize::try_from(day.since(self.window.start)).unwrap_or_default())
    }

    fn answer(&self, counts: MarkCounts) -> UniqueUsers {
        UniqueUsers { series: self.window.days().zip(counts.of_mark).collect(), total: counts.total }
    }
}

impl GiveMarks for ActiveDays<'_> {
    type Sums = ();

    fn sums(&self) {}

    fn count(&self) -> usize {
        self.window.len()
    }

    fn rows(
        &self,
        group: &SealedGroup<'_>,
        mut rows: Rows,
        (): &mut (),
        mark: &mut dyn FnMut(usize, Marks),
    ) -> Result<(), ArchiveError> {
        group.retain_days(&mut rows, self.window)?;
        group.retain_matching(&mut rows, self.predicate)?;
        if rows.is_empty() {
            return Ok(());
        }
        let days = group.days()?;
        rows.for_each(|row| mark(row, self.mark_of(days.as_ref().map_or_else(|day| *day, |days| days[row]))));
        Ok(())
    }

    fn event(&self, event: &Event, (): &mut (), mark: &mut MarkVisitor<'_>) {
        if self.window.contains(event.day) && self.predicate.matches_event(event) {
            mark(self.mark_of(event.day));
        }
    }

    fn add(&self, (): (), (): &mut ()) {}
}

/// Returns the identities of matching events in matching sessions, with their days.
fn by_session(scan: &Scan<'_>, days: &ActiveDays<'_>, people: Option<People>, sort_bytes: usize) -> Result<MarkedUsers> {
    let &ActiveDays { window, predicate } = days;
    let mut sessions = Sessions::new(scan, sort_bytes);
    let question = SessionQuestion { window, predicate, grouping: None };
    let carry = |event: &SessionEvent<'_>, carried: &mut Vec<u8>| {
        carried.extend_from_slice(&flags(event.parts, event.entry, event.has_source, event.matches));
        carried.extend_from_slice(&event.day.0.to_be_bytes());
    };
    // An event without ids is nobody's.
    scan.visit_sessions(&question, &carry, &mut sessions, &mut |_| Ok(()))?;
    let mut identities = MarkedUsers::new(scan, sort_bytes);
    visit_matching(sessions, scan, (predicate, people), None, sort_bytes, &mut |identity, day| {
        identities.push(identity, days.mark_of(Day(day.try_into().map_or(0, i32::from_be_bytes))))
    })?;
    Ok(identities)
}
