//! How many events of each identity fit conditions on people that don't depend on sessions.

use std::collections::HashMap;
use std::io;

use headcount_domain::cache::table::KeyHashBuilder;
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

/// An id, the number of a condition, the first event that fits, and the number of events that fit.
const FITS: usize = KEY + 1 + 8 + 4;

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
        if let Some(count) = counts.get_mut(usize::from(record[KEY])) {
            *count = count.saturating_add(record[KEY + 9..].try_into().map_or(0, u32::from_be_bytes));
        }
    }
    Ok(last.map_or(Ok(()), |last| visit(last, &counts))?)
}

/// Some events of an id that fit a condition.
struct Fits {
    named: RecordKey,
    condition: usize,
    /// The first of them. No other id has it, so that no records are equal.
    first: Position,
    count: u32,
}

impl Fits {
    fn record(&self) -> [u8; FITS] {
        let mut record = [0; FITS];
        record[..KEY].copy_from_slice(&bytes(self.named));
        record[KEY] = u8::try_from(self.condition).unwrap_or(u8::MAX);
        record[KEY + 1..KEY + 9].copy_from_slice(&self.first.to_be_bytes());
        record[KEY + 9..].copy_from_slice(&self.count.to_be_bytes());
        record
    }
}

/// The links of a row group's events, and the events of each id that fit.
struct ReadFits {
    links: Vec<IdentityLink>,
    fits: Vec<Fits>,
}

impl ReadFits {
    fn of(conditions: &[ConditionEvents<'_>], group: &SealedGroup<'_>, hasher: &KeyHasher) -> Result<Self, TallyError> {
        let mut ids = GroupIds::read(group, hasher)?;
        let mut read = Self { links: ids.links(group, &group.counted()?), fits: Vec::new() };
        let mut visitors = None;
        for (condition, ConditionEvents { days, predicate }) in conditions.iter().enumerate() {
            let mut rows = group.counted()?;
            group.retain_days(&mut rows, *days)?;
            group.retain_matching(&mut rows, predicate)?;
            if rows.is_empty() {
                continue;
            }
            if visitors.is_none() {
                visitors = Some(group.visitors()?);
            }
            let mut of_ids: HashMap<RecordKey, Fits, KeyHashBuilder> = HashMap::default();
            rows.for_each(|row| {
                let visitor = || visitors.as_ref().and_then(|visitors| Some(hasher.visitor(visitors[row]?)));
                let named = ids.named(row).or_else(visitor);
                let Some(named) = named else { return };
                let first = || Fits { named, condition, first: group.order_of(row), count: 0 };
                of_ids.entry(named).or_insert_with(first).count += 1;
            });
            read.fits.extend(of_ids.into_values());
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
        Ok(read.fits.into_iter().try_for_each(|fits| self.fits.add(fits.named, fits.record()))?)
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let keys = SentKeys::of(&event.who, self.hasher);
        keys.link(position).map_or(Ok(()), |link| self.fits.link(link))?;
        let Some(named) = keys.named() else { return Ok(()) };
        for (condition, ConditionEvents { days, predicate }) in self.conditions.iter().enumerate() {
            if days.contains(event.day) && predicate.matches_event(event) {
                self.fits.add(named, Fits { named, condition, first: position, count: 1 }.record())?;
            }
        }
        Ok(())
    }
}
