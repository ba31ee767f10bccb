//! How many events of each identity fit conditions on people that don't depend on sessions.

use std::collections::HashMap;
use std::io;

use headcount_domain::cache::table::KeyHashBuilder;
use headcount_domain::filter::{MAX_AT_LEAST, MAX_PEOPLE};
use headcount_domain::{Event, IdentityLink, KeyHasher, Position, Predicate, RecordKey, SentKeys, Window};

use super::error::{Result, check};
use super::events::{Scan, Tally, TallyError};
use super::group_ids::GroupIds;
use super::identities::{KEY, bytes, key_of};
use super::identity_sort::IdentitySorter;
use super::sealed_group::SealedGroup;

/// The events that fit a condition.
pub(super) struct ConditionEvents<'q> {
    /// Their days.
    pub(super) days: Window,
    pub(super) predicate: &'q Predicate,
}

/// The conditions of a question and its segment, in two windows.
const MOST: usize = 4 * MAX_PEOPLE;
/// An id, the first event that fits, and how many fit each condition.
const FITS: usize = KEY + 8 + 2 * MOST;
// Counts end at the largest `u16`, which no condition can ask for.
const _: () = assert!(MAX_AT_LEAST <= u16::MAX as u32);

/// Passes each identity with a fitting event to `visit`, in their order, with the number of its
/// events that fit each condition.
pub(super) fn count_fits(
    scan: &Scan<'_>,
    conditions: &[ConditionEvents<'_>],
    sort_bytes: usize,
    visit: &mut dyn FnMut(RecordKey, &[u32]) -> io::Result<()>,
) -> Result<()> {
    let mut fits = IdentitySorter::new(scan, sort_bytes);
    let read = |group: &SealedGroup<'_>| ReadFits::of(conditions, group, scan.hasher());
    scan.tally(0, None, &read, &mut FitsTally { hasher: scan.hasher(), conditions, fits: &mut fits })?;
    let (mut counts, mut last) = (vec![0_u32; conditions.len()], None);
    for record in fits.resolve(scan)?.finish()? {
        check(scan.cancelled)?;
        let record = record?;
        let identity = key_of(&record[..KEY]);
        if let Some(before) = last.replace(identity).filter(|last| *last != identity) {
            visit(before, &counts)?;
            counts.fill(0);
        }
        for (count, more) in counts.iter_mut().zip(record[KEY + 8..].chunks_exact(2)) {
            *count = count.saturating_add(more.try_into().map_or(0, u16::from_be_bytes).into());
        }
    }
    Ok(last.map_or(Ok(()), |last| visit(last, &counts))?)
}

/// The events of an id that fit conditions.
struct Fits {
    /// The first of them. No other id has it, so that no records are equal.
    first: Position,
    counts: [u16; MOST],
}

impl Fits {
    fn at(first: Position) -> Self {
        Self { first, counts: [0; MOST] }
    }

    /// Counts an event that fits a condition.
    fn add(&mut self, condition: usize) {
        self.counts.get_mut(condition).into_iter().for_each(|count| *count = count.saturating_add(1));
    }

    fn record(&self, named: RecordKey) -> [u8; FITS] {
        let mut record = [0; FITS];
        record[..KEY].copy_from_slice(&bytes(named));
        record[KEY..KEY + 8].copy_from_slice(&self.first.to_be_bytes());
        let places = record[KEY + 8..].chunks_exact_mut(2);
        places.zip(self.counts).for_each(|(place, count)| place.copy_from_slice(&count.to_be_bytes()));
        record
    }
}

/// The links of a row group's events, and the events of each id that fit.
struct ReadFits {
    links: Vec<IdentityLink>,
    fits: HashMap<RecordKey, Fits, KeyHashBuilder>,
}

impl ReadFits {
    fn of(conditions: &[ConditionEvents<'_>], group: &SealedGroup<'_>, hasher: &KeyHasher) -> Result<Self, TallyError> {
        let (counted, mut ids) = (group.counted()?, GroupIds::read(group, hasher)?);
        let mut read = Self { links: ids.links(group, &counted), fits: HashMap::default() };
        let mut visitors = None;
        for (condition, ConditionEvents { days, predicate }) in conditions.iter().enumerate() {
            let mut rows = counted.clone();
            group.retain_days(&mut rows, *days)?;
            group.retain_matching(&mut rows, predicate)?;
            if rows.is_empty() {
                continue;
            }
            if visitors.is_none() {
                visitors = Some(group.visitors()?);
            }
            rows.for_each(|row| {
                let visitor = || visitors.as_ref().and_then(|visitors| Some(hasher.visitor(visitors[row]?)));
                let Some(named) = ids.named(row).or_else(visitor) else { return };
                read.fits.entry(named).or_insert_with(|| Fits::at(group.order_of(row))).add(condition);
            });
        }
        Ok(read)
    }
}

/// Sorts the fitting events by the identity behind their ids.
struct FitsTally<'t, 's> {
    hasher: &'t KeyHasher,
    conditions: &'t [ConditionEvents<'t>],
    fits: &'t mut IdentitySorter<'s, FITS>,
}

impl Tally<ReadFits> for FitsTally<'_, '_> {
    fn group(&mut self, read: ReadFits) -> Result<()> {
        read.links.into_iter().try_for_each(|link| self.fits.link(link))?;
        Ok(read.fits.into_iter().try_for_each(|(named, fits)| self.fits.add(named, fits.record(named)))?)
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let keys = SentKeys::of(&event.who, self.hasher);
        keys.link(position).map_or(Ok(()), |link| self.fits.link(link))?;
        let Some(named) = keys.named() else { return Ok(()) };
        let mut fits = None;
        for (condition, ConditionEvents { days, predicate }) in self.conditions.iter().enumerate() {
            if days.contains(event.day) && predicate.matches_event(event) {
                fits.get_or_insert_with(|| Fits::at(position)).add(condition);
            }
        }
        Ok(fits.map_or(Ok(()), |fits| self.fits.add(named, fits.record(named)))?)
    }
}
