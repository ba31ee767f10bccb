//! Counts and sums of events by the values of a property.

use std::io;

use super::error::Result;
use headcount_domain::aggregate::{Aggregate, GroupFigures, GroupKey, Grouping, Summand};
use headcount_domain::intake::fields::{Field, Scalar};
use headcount_domain::{Event, Position, Predicate, Window};

use super::decided::{flags, visit_matching};
use super::events::{Scan, Tally, TallyError};
use super::group_table::{GROUP, GroupTable, decode, encode};
use super::kept_figures::{CountedGroups, KeptFigures};
use super::sealed_group::SealedGroup;
use super::session_events::{SessionEvent, SessionQuestion};
use super::sessions::Sessions;
use super::visits::find_people;

/// What is asked for.
pub(super) struct AggregateQuestion<'q> {
    pub(super) window: Window,
    pub(super) predicate: &'q Predicate,
    pub(super) grouping: &'q Grouping,
    pub(super) limit: usize,
}

/// Groups events, in tables and sorts of `sort_bytes` each. Groups that are kept are advanced, and
/// kept again if they fit into a table.
pub(super) fn aggregate(
    scan: &Scan<'_>,
    question: &AggregateQuestion<'_>,
    kept: &mut KeptFigures,
    sort_bytes: usize,
) -> Result<Aggregate> {
    let (sums, limit) = (question.grouping.sums(), question.limit);
    let new = || GroupTable::new(scan.scratch(), sort_bytes);
    if question.predicate.needs_session() || question.grouping.is_by_session() {
        return by_session(scan, question, new(), sort_bytes)?.finish(sums, limit, scan.cancelled);
    }
    let mut groups = match std::mem::take(kept) {
        KeptFigures::Groups(groups) => groups,
        _ => CountedGroups { until: 0, table: new() },
    };
    let outcome = by_event(scan, question, &mut groups);
    match groups.table.answer(sums, limit) {
        Some(answer) => {
            // What was counted before a failure is counted.
            *kept = KeptFigures::Groups(groups);
            outcome.map(|()| answer)
        }
        None => outcome.and_then(|()| groups.table.finish(sums, limit, scan.cancelled)),
    }
}

/// Groups the events that `groups` does not count yet. For questions that need no sessions.
fn by_event(scan: &Scan<'_>, question: &AggregateQuestion<'_>, groups: &mut CountedGroups) -> Result<()> {
    let after = groups.until;
    let read = |group: &SealedGroup<'_>| read_groups(question, group);
    scan.tally(after, Some(question.window), &read, &mut GroupTally { question, groups, key: Vec::new() })?;
    groups.until = scan.until;
    Ok(())
}

/// The groups of a row group's events. A key may occur more than once.
#[derive(Default)]
struct ReadGroups {
    keys: Vec<u8>,
    /// The ends of the keys, with the figures of each.
    figures: Vec<(usize, GroupFigures)>,
    last: Position,
}

fn read_groups(question: &AggregateQuestion<'_>, group: &SealedGroup<'_>) -> Result<ReadGroups, TallyError> {
    let AggregateQuestion { window, predicate, grouping, .. } = question;
    let mut read = ReadGroups { last: group.last(), ..ReadGroups::default() };
    let mut rows = group.counted()?;
    group.retain_days(&mut rows, *window)?;
    group.retain_matching(&mut rows, predicate)?;
    if rows.is_empty() {
        return Ok(read);
    }
    let by = group.property(grouping.by())?;
    let codes = by.codes();
    let mut figures = vec![GroupFigures::default(); by.count()];
    match grouping.sum() {
        None => rows.for_each(|row| figures[codes[row] as usize].count += 1),
        Some(path) => {
            let summed = group.property(&Field::Metadata(path.clone()))?;
            let mut known = vec![None; summed.count()];
            rows.for_each(|row| {
                let code = summed.codes()[row];
                let one = known[code as usize].get_or_insert_with(|| GroupFigures::of(Summand::of(&summed.value(code))));
                figures[codes[row] as usize].merge(*one);
            });
        }
    }
    for (code, figures) in (0..).zip(figures).filter(|(_, figures)| figures.count > 0) {
        GroupKey::write(&by.value(code), &mut read.keys);
        read.figures.push((read.keys.len(), figures));
    }
    Ok(read)
}

/// Adds events to their groups.
struct GroupTally<'t> {
    question: &'t AggregateQuestion<'t>,
    groups: &'t mut CountedGroups,
    key: Vec<u8>,
}

impl Tally<ReadGroups> for GroupTally<'_> {
    fn group(&mut self, read: ReadGroups) -> Result<()> {
        let mut start = 0;
        for (end, figures) in read.figures {
            self.groups.table.add(&read.keys[start..end], figures)?;
            start = end;
        }
        self.groups.until = read.last;
        Ok(())
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let AggregateQuestion { window, predicate, grouping, .. } = self.question;
        if window.contains(event.day) && predicate.matches_event(event) {
            self.key.clear();
            grouping.write_key(event, &mut self.key);
            self.groups.table.add(&self.key, grouping.contribution(event))?;
        }
        self.groups.until = position;
        Ok(())
    }
}

/// Groups events by their sessions, or with filters on them.
///
/// Each event carries what it decides of its session, and its group and what it adds to it.
fn by_session(
    scan: &Scan<'_>,
    question: &AggregateQuestion<'_>,
    mut groups: GroupTable,
    sort_bytes: usize,
) -> Result<GroupTable> {
    let AggregateQuestion { window, predicate, grouping, .. } = *question;
    let people = find_people(scan, predicate.people(), [Some(window), None], sort_bytes)?;
    let mut sessions = Sessions::new(scan, sort_bytes);
    let question = SessionQuestion { window, predicate, grouping: Some(grouping).filter(|grouping| !grouping.is_by_session()) };
    let carry = |event: &SessionEvent<'_>, carried: &mut Vec<u8>| {
        if event.named.is_none() {
            // An event without ids has no session.
            if event.matches && predicate.holds_of_nobody(event.parts) {
                let (value, figures) = event.group.clone().unwrap_or((Scalar::Null, GroupFigures::of(Summand::None)));
                carried.extend_from_slice(&encode(&figures));
                GroupKey::write(&value, carried);
            }
            return;
        }
        carried.extend_from_slice(&flags(event.parts, event.entry, event.has_source, event.matches));
        if let Some((value, figures)) = &event.group {
            carried.extend_from_slice(&encode(figures));
            GroupKey::write(value, carried);
        } else if grouping.is_by_session() && event.is_interactive {
            grouping.write_session_key(event.entry, carried);
        }
    };
    scan.visit_sessions(&question, &carry, &mut sessions, &mut |carried| add_carried(&mut groups, carried))?;
    visit_matching(sessions, scan, (predicate, people), Some(grouping), sort_bytes, &mut |_, carried| match grouping
        .is_by_session()
    {
        true => groups.add(carried, GroupFigures::of(Summand::None)),
        false => add_carried(&mut groups, carried),
    })?;
    Ok(groups)
}

/// Adds what an event carries for its group, if there is one.
fn add_carried(groups: &mut GroupTable, carried: &[u8]) -> io::Result<()> {
    match carried.split_at_checked(GROUP) {
        Some((group, key)) => groups.add(key, decode(group)),
        None => Ok(()),
    }
}
