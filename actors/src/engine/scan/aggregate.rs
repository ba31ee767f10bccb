//! Counts and sums of events by the values of a property.

use std::sync::atomic::AtomicBool;

use headcount_domain::aggregate::{Aggregate, GroupFigures, Grouping, Summand};
use headcount_domain::filter::Predicate;
use headcount_domain::intake::event::Event;
use headcount_domain::intake::fields::Entry;
use headcount_domain::time::Window;

use super::events::{Scan, ScanError};
use super::group_table::{GROUP, GroupTable, decode, encode};
use super::sessions::{InSession, Sessions, ends_before};

/// What is asked for.
pub(super) struct AggregateQuestion<'q> {
    pub(super) window: Window,
    pub(super) predicate: &'q Predicate,
    pub(super) grouping: &'q Grouping,
    pub(super) limit: usize,
}

/// Groups events, in tables and sorts of `sort_bytes` each.
pub(super) fn aggregate(scan: &Scan<'_>, question: &AggregateQuestion<'_>, sort_bytes: usize) -> Result<Aggregate, ScanError> {
    let groups = GroupTable::new(scan.engine.data_dir(), sort_bytes);
    let groups = if question.predicate.needs_session() || question.grouping.is_by_session() {
        by_session(scan, question, groups, sort_bytes)?
    } else {
        by_event(scan, question, groups)?
    };
    groups.finish(question.grouping.sums(), question.limit, scan.cancelled)
}

/// Groups events of which nothing but themselves is asked.
fn by_event(scan: &Scan<'_>, question: &AggregateQuestion<'_>, mut groups: GroupTable) -> Result<GroupTable, ScanError> {
    let AggregateQuestion { window, predicate, grouping, .. } = question;
    let mut key = Vec::new();
    scan.visit_events(&mut |_, event| {
        if !window.contains(event.day) || !predicate.matches_event(event) {
            return Ok(());
        }
        key.clear();
        grouping.write_key(event, &mut key);
        groups.add(&key, grouping.contribution(event))
    })?;
    Ok(groups)
}

/// The event itself matches, apart from its session.
const MATCHES: u8 = 1;
/// The session matches if this event is its entry.
const ENTRY_MATCHES: u8 = 2;

/// Groups events by their sessions, or with filters on them.
///
/// Each event carries what counts if it is its session's entry, and what it adds to its group.
fn by_session(
    scan: &Scan<'_>,
    question: &AggregateQuestion<'_>,
    mut groups: GroupTable,
    sort_bytes: usize,
) -> Result<GroupTable, ScanError> {
    let AggregateQuestion { window, predicate, grouping, .. } = question;
    let mut sessions = Sessions::new(scan.engine.hasher(), scan.engine.data_dir(), sort_bytes);
    let mut carried = Vec::new();
    scan.visit_events(&mut |position, event| {
        let matches = window.contains(event.day) && predicate.matches_event(event);
        let Some(named) = sessions.keys(position, event)?.named() else {
            // An event without ids has no session.
            if matches && predicate.matches_entry(None) {
                carried.clear();
                grouping.write_key(event, &mut carried);
                groups.add(&carried, grouping.contribution(event))?;
            }
            return Ok(());
        };
        if ends_before(*window, event) {
            return Ok(());
        }
        carry(question, event, matches, &mut carried);
        sessions.add(named, position, event, &carried)
    })?;
    collect(sessions, grouping, scan.cancelled, &mut groups)?;
    Ok(groups)
}

/// Writes what an event carries: flags, and if its session may be counted, the key of a group.
fn carry(question: &AggregateQuestion<'_>, event: &Event, matches: bool, carried: &mut Vec<u8>) {
    let AggregateQuestion { predicate, grouping, .. } = question;
    let entry = Entry::of(event);
    let entry_matches = predicate.matches_entry(Some(&entry));
    carried.clear();
    carried.push(if matches { MATCHES } else { 0 } | if entry_matches { ENTRY_MATCHES } else { 0 });
    if grouping.is_by_session() {
        if entry_matches {
            grouping.write_session_key(&entry, carried);
        }
    } else if matches {
        carried.extend_from_slice(&encode(&grouping.contribution(event)));
        grouping.write_key(event, carried);
    }
}

fn collect(
    sessions: Sessions<'_>,
    grouping: &Grouping,
    cancelled: &AtomicBool,
    groups: &mut GroupTable,
) -> Result<(), ScanError> {
    let (mut entry_matches, mut entry_key) = (false, Vec::new());
    sessions.visit(cancelled, &mut |InSession { is_entry, carried, .. }| {
        let (flags, rest) = carried.split_first().map_or((0, carried), |(flags, rest)| (*flags, rest));
        if is_entry {
            entry_matches = flags & ENTRY_MATCHES > 0;
            if grouping.is_by_session() {
                entry_key.clear();
                entry_key.extend_from_slice(rest);
            }
        }
        if flags & MATCHES == 0 || !entry_matches {
            return Ok(());
        }
        if grouping.is_by_session() {
            groups.add(&entry_key, GroupFigures::of(Summand::None))
        } else {
            let (group, key) = rest.split_at(GROUP.min(rest.len()));
            groups.add(key, decode(group))
        }
    })
}
