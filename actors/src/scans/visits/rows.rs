//! Rows of figures by value, more than fit into memory.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::io;
use std::sync::atomic::AtomicBool;

use headcount_domain::Amount;
use headcount_domain::aggregate::GroupKey;
use headcount_domain::figures::EventFigures;

use super::super::error::{Result, check};
use super::super::record_sort::RecordSorter;
use super::super::spill_dir::SpillDir;
use super::fold::CountedSession;

/// Memory of a row besides its key, roughly: its entry in the table, and the allocation of its key.
const OVERHEAD: usize = 2 * WINDOW_BYTES + 96;
/// The bytes of the figures of a window.
const WINDOW_BYTES: usize = 15 * 8 + 16;
/// The number of rows after which a scan checks whether somebody still waits for it.
const CHECK_EVERY: u64 = 4_096;

/// The figures of a row in one window, with the first and the last identity and session that it
/// counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowFigures {
    pub(super) figures: EventFigures,
    identities: (u64, u64),
    /// The identities that converted.
    converters: (u64, u64),
    sessions: (u64, u64),
    /// Whether the last session is a bounce.
    last_bounces: bool,
}

/// Notes one more number of a sequence that never falls. Returns whether it is a new one.
fn note(ends: &mut (u64, u64), number: u64) -> bool {
    let (first, last) = *ends;
    *ends = (if first == 0 { number } else { first }, number);
    last != number
}

/// Joins two sequences, the second of which goes on where the first one ends. Returns whether both
/// have the number in between.
fn join(ends: &mut (u64, u64), next: (u64, u64)) -> bool {
    if next.0 == 0 {
        return false;
    }
    let before = ends.1;
    *ends = (if ends.0 == 0 { next.0 } else { ends.0 }, next.1);
    before == next.0
}

impl RowFigures {
    /// Counts the identity of an event, which converts or not.
    pub(super) fn add_identity(&mut self, number: u64, converts: bool) {
        self.figures.unique_users += u64::from(note(&mut self.identities, number));
        self.figures.converters += u64::from(converts && note(&mut self.converters, number));
    }

    /// Counts a session.
    pub(super) fn add_session(&mut self, session: &CountedSession) {
        if note(&mut self.sessions, session.number) {
            self.figures.sessions += 1;
            self.figures.bounces += u64::from(session.is_bounce);
            self.last_bounces = session.is_bounce;
        }
    }

    /// Adds what was counted after this. A session in both is counted once.
    fn merge(&mut self, next: &Self) {
        let (sum, other) = (&mut self.figures, &next.figures);
        sum.unique_users += other.unique_users - u64::from(join(&mut self.identities, next.identities));
        sum.converters += other.converters - u64::from(join(&mut self.converters, next.converters));
        let is_in_both = join(&mut self.sessions, next.sessions);
        sum.sessions += other.sessions - u64::from(is_in_both);
        sum.bounces += other.bounces - u64::from(is_in_both && self.last_bounces);
        if next.sessions.0 > 0 {
            self.last_bounces = next.last_bounces;
        }
        sum.pageviews += other.pageviews;
        sum.events += other.events;
        sum.revenue += other.revenue;
        sum.orders += other.orders;
    }

    fn write(&self, to: &mut Vec<u8>) {
        let EventFigures { unique_users, converters, sessions, bounces, duration_ms, pageviews, events, revenue, orders } =
            self.figures;
        let counts = [unique_users, converters, sessions, bounces, duration_ms, pageviews, events, orders.cast_unsigned()];
        let ends = [self.identities, self.converters, self.sessions, (self.last_bounces.into(), 0)];
        let ends: Vec<u64> = ends.into_iter().flat_map(|(first, last)| [first, last]).take(7).collect();
        counts.iter().chain(&ends).for_each(|count| to.extend_from_slice(&count.to_le_bytes()));
        to.extend_from_slice(&revenue.micros().to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_le_bytes)
        };
        let revenue = bytes.get(15 * 8..WINDOW_BYTES).and_then(|micros| micros.try_into().ok()).map_or(0, i128::from_le_bytes);
        let figures = EventFigures {
            unique_users: word(0),
            converters: word(1),
            sessions: word(2),
            bounces: word(3),
            duration_ms: word(4),
            pageviews: word(5),
            events: word(6),
            orders: word(7).cast_signed(),
            revenue: Amount::from_micros(revenue),
        };
        let ends = |at: usize| (word(at), word(at + 1));
        Self { figures, identities: ends(8), converters: ends(10), sessions: ends(12), last_bounces: word(14) == 1 }
    }
}

/// Figures of two windows by key. Rows that don't fit into memory are sorted on disk and merged at
/// the end.
pub(super) struct RowTable {
    rows: HashMap<Box<[u8]>, [RowFigures; 2], RandomState>,
    bytes: usize,
    /// Maximum number of bytes in memory.
    most: usize,
    spilled: RecordSorter,
    /// How often rows were moved to disk.
    spills: u64,
}

impl RowTable {
    /// Creates a table that keeps at most `most` bytes in memory, and half as many to sort, and the
    /// others in `scratch`.
    pub(super) fn new(scratch: &SpillDir, most: usize) -> Self {
        Self { rows: HashMap::default(), bytes: 0, most, spilled: RecordSorter::new(scratch, most / 2), spills: 0 }
    }

    /// Returns the row of `key`. Identities and sessions must be counted in the order of their
    /// numbers.
    pub(super) fn row(&mut self, key: &[u8]) -> io::Result<&mut [RowFigures; 2]> {
        if !self.rows.contains_key(key) {
            let bytes = key.len() + OVERHEAD;
            if self.bytes + bytes > self.most && !self.rows.is_empty() {
                self.spill()?;
            }
            self.bytes += bytes;
            self.rows.insert(key.into(), Default::default());
        }
        self.rows.get_mut(key).ok_or_else(|| io::Error::other("a row is missing"))
    }

    fn spill(&mut self) -> io::Result<()> {
        (self.bytes, self.spills) = (0, self.spills + 1);
        let mut figures = Vec::new();
        for (key, row) in self.rows.drain() {
            // The length comes first, so that equal keys are next to each other; then the parts of
            // a row are in order.
            let length = u32::try_from(key.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            figures.clear();
            row.iter().for_each(|window| window.write(&mut figures));
            self.spilled.push(&[&length.to_be_bytes(), &key, &self.spills.to_be_bytes(), &figures])?;
        }
        Ok(())
    }

    /// Passes each row with an event in the first window, or with a session, to `visit`.
    pub(super) fn finish(
        mut self,
        cancelled: &AtomicBool,
        visit: &mut dyn FnMut(GroupKey<'_>, EventFigures, EventFigures),
    ) -> Result<()> {
        let mut pass = |key: &[u8], [first, second]: &[RowFigures; 2]| {
            if first.figures.events > 0 || first.figures.sessions > 0 {
                visit(GroupKey::read(key), first.figures, second.figures);
            }
        };
        if self.spills == 0 {
            self.rows.iter().for_each(|(key, row)| pass(key, row));
            return Ok(());
        }
        self.spill()?;
        let mut sorted = self.spilled.finish()?;
        let mut open: Option<(Vec<u8>, [RowFigures; 2])> = None;
        let mut seen = 0_u64;
        while let Some(record) = sorted.next()? {
            seen += 1;
            if seen.is_multiple_of(CHECK_EVERY) {
                check(cancelled)?;
            }
            let (key, rest) = record.split_at(record.len().saturating_sub(8 + 2 * WINDOW_BYTES));
            let (key, rest) = (key.get(4..).unwrap_or_default(), rest.get(8..).unwrap_or_default());
            let (first, second) = rest.split_at(rest.len().min(WINDOW_BYTES));
            let row = [RowFigures::read(first), RowFigures::read(second)];
            match &mut open {
                Some((of, sum)) if of == key => sum.iter_mut().zip(&row).for_each(|(sum, part)| sum.merge(part)),
                other => {
                    if let Some((key, row)) = other.replace((key.to_vec(), row)) {
                        pass(&key, &row);
                    }
                }
            }
        }
        if let Some((key, row)) = open {
            pass(&key, &row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn rows_that_do_not_fit_count_everybody_once() {
        let dir = tempfile::tempdir().unwrap();
        for most in [800, 20_000, 1 << 20] {
            let mut table = RowTable::new(&SpillDir::new(dir.path()), most);
            let mut expected: BTreeMap<Vec<u8>, (BTreeSet<u64>, BTreeSet<u64>, u64)> = BTreeMap::new();
            for number in 0..6_000_u64 {
                // Identities and sessions rise, and each has many values.
                let (identity, session) = (1 + number / 40, 1 + number / 15);
                let is_bounce = session % 3 == 0;
                let session = CountedSession { number: session, began: [None; 2], is_bounce, duration_ms: 0 };
                let key = [&[0][..], (number * 7 % 29).to_string().as_bytes()].concat();
                let [first, second] = table.row(&key).unwrap();
                for figures in [first, second] {
                    figures.figures.events += 1;
                    figures.figures.revenue += Amount::from_micros(-3);
                    figures.add_identity(identity, identity % 2 == 0);
                    figures.add_session(&session);
                }
                let row = expected.entry(key).or_default();
                row.0.insert(identity);
                row.1.insert(session.number);
                row.2 += 1;
                assert!(table.bytes <= most);
            }
            assert_eq!(table.spills > 0, most == 800, "{most} bytes");
            let mut seen = 0;
            let visit = &mut |key: GroupKey<'_>, first: EventFigures, second: EventFigures| {
                let (identities, sessions, events) = &expected[key.as_bytes()];
                let converters = identities.iter().filter(|identity| **identity % 2 == 0).count() as u64;
                assert_eq!(first.converters, converters, "{most} bytes");
                let counts = (first.unique_users, first.sessions, first.bounces, first.events);
                let bounces = sessions.iter().filter(|session| **session % 3 == 0).count() as u64;
                assert_eq!(counts, (identities.len() as u64, sessions.len() as u64, bounces, *events), "{most} bytes");
                assert_eq!((first.revenue, first), (Amount::from_micros(-3 * i128::from(*events)), second));
                seen += 1;
            };
            table.finish(&AtomicBool::new(false), visit).unwrap();
            assert_eq!(seen, expected.len());
        }
    }

    #[test]
    fn figures_read_back() {
        let figures = EventFigures {
            unique_users: 1,
            converters: 6,
            sessions: 2,
            bounces: 3,
            duration_ms: 4,
            pageviews: 5,
            events: u64::MAX,
            revenue: Amount::from_micros(-7),
            orders: -8,
        };
        let row = RowFigures { figures, identities: (9, 10), converters: (13, 14), sessions: (11, 12), last_bounces: true };
        let mut bytes = Vec::new();
        row.write(&mut bytes);
        assert_eq!((bytes.len(), RowFigures::read(&bytes)), (WINDOW_BYTES, row));
    }
}
