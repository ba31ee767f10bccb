//! Unique users of the events that match a predicate.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use headcount_domain::filter::Predicate;
use headcount_domain::ids::RecordKey;
use headcount_domain::intake::fields::Entry;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::{Day, Window};

use super::events::{Scan, ScanError, check};
use super::external_sort::Sorter;
use super::links::{KEY, Links, bytes, key_of};
use super::sessions::{InSession, Sessions, ends_before};

/// An identity and a day.
const ACTIVE: usize = KEY + 4;

/// Counts the users with an event that matches `predicate`, in sorts of `sort_bytes` each.
pub(super) fn unique_users(
    scan: &Scan<'_>,
    window: Window,
    predicate: &Predicate,
    sort_bytes: usize,
) -> Result<UniqueUsers, ScanError> {
    let active = if predicate.needs_session() {
        by_session(scan, window, predicate, sort_bytes)?
    } else {
        by_event(scan, window, predicate, sort_bytes)?
    };
    count(active, window, scan.cancelled)
}

/// Returns the identities and days of matching events.
fn by_event(scan: &Scan<'_>, window: Window, predicate: &Predicate, sort_bytes: usize) -> Result<Sorter<ACTIVE>, ScanError> {
    let dir = scan.engine.data_dir();
    let mut links = Links::new(scan.engine.hasher(), dir, sort_bytes);
    let mut active: Sorter<ACTIVE> = Sorter::new(dir, ACTIVE, sort_bytes);
    scan.visit_events(&mut |position, event| match links.see(position, event)?.named() {
        Some(key) if window.contains(event.day) && predicate.matches_event(event) => active.push(on_day(key, event.day)),
        _ => Ok(()),
    })?;
    let mut links = links.sorted()?;
    let mut identities = Sorter::new(dir, ACTIVE, sort_bytes);
    for active in active.finish()? {
        check(scan.cancelled)?;
        let (key, day) = read(&active?);
        identities.push(on_day(links.resolve(key)?, day))?;
    }
    Ok(identities)
}

/// The event itself matches, apart from its session.
const MATCHES: u8 = 1;
/// The session matches if this event is its entry.
const ENTRY_MATCHES: u8 = 2;

/// Returns the identities and days of matching events in matching sessions.
fn by_session(scan: &Scan<'_>, window: Window, predicate: &Predicate, sort_bytes: usize) -> Result<Sorter<ACTIVE>, ScanError> {
    let dir = scan.engine.data_dir();
    let mut sessions = Sessions::new(scan.engine.hasher(), dir, sort_bytes);
    scan.visit_events(&mut |position, event| {
        let Some(named) = sessions.keys(position, event)?.named().filter(|_| !ends_before(window, event)) else { return Ok(()) };
        let matches = window.contains(event.day) && predicate.matches_event(event);
        let entry_matches = predicate.matches_entry(Some(&Entry::of(event)));
        let flags = if matches { MATCHES } else { 0 } | if entry_matches { ENTRY_MATCHES } else { 0 };
        let [a, b, c, d] = event.day.0.to_be_bytes();
        sessions.add(named, position, event, &[flags, a, b, c, d])
    })?;
    let mut identities = Sorter::new(dir, ACTIVE, sort_bytes);
    let mut entry_matches = false;
    sessions.visit(scan.cancelled, &mut |InSession { identity, is_entry, carried }| {
        let [flags, day @ ..] = <[u8; 5]>::try_from(carried).unwrap_or_default();
        if is_entry {
            entry_matches = flags & ENTRY_MATCHES > 0;
        }
        match flags & MATCHES > 0 && entry_matches {
            true => identities.push(on_day(identity, Day(i32::from_be_bytes(day)))),
            false => Ok(()),
        }
    })?;
    Ok(identities)
}

fn count(active: Sorter<ACTIVE>, window: Window, cancelled: &AtomicBool) -> Result<UniqueUsers, ScanError> {
    let (mut by_day, mut total, mut last) = (BTreeMap::<Day, u64>::new(), 0, None::<RecordKey>);
    for active in active.finish()? {
        check(cancelled)?;
        let (identity, day) = read(&active?);
        total += u64::from(last != Some(identity));
        last = Some(identity);
        *by_day.entry(day).or_default() += 1;
    }
    let count = |day: Day| by_day.get(&day).copied().unwrap_or(0);
    Ok(UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total })
}

fn on_day(key: RecordKey, day: Day) -> [u8; ACTIVE] {
    let mut active = [0; ACTIVE];
    active[..KEY].copy_from_slice(&bytes(key));
    active[KEY..].copy_from_slice(&day.0.to_be_bytes());
    active
}

fn read(active: &[u8; ACTIVE]) -> (RecordKey, Day) {
    let (key, day) = active.split_at(KEY);
    (key_of(key), Day(day.try_into().map_or(0, i32::from_be_bytes)))
}
