//! Groups of events, more than fit into memory.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::io;
use std::sync::atomic::AtomicBool;

use headcount_domain::aggregate::{Aggregate, GroupFigures, GroupKey, Ranking, Total};

use super::error::{Result, check};
use super::record_sort::RecordSorter;
use super::spill_dir::SpillDir;

/// Memory of a group besides its key, roughly: its entry in the table, and the allocation of its
/// key.
const OVERHEAD: usize = 128;
/// The bytes of a stored group.
pub(super) const GROUP: usize = 8 + 8 + 16 + 8 + 1;
/// The number of groups after which a scan checks whether somebody still waits for it.
const CHECK_EVERY: u64 = 4_096;

/// Takes the key of a group and its figures.
pub(super) type VisitGroup<'v> = dyn FnMut(&[u8], GroupFigures) -> Result<()> + 'v;

/// Counts and sums by key. Groups that don't fit into memory are sorted on disk and merged at the
/// end.
pub(super) struct GroupTable {
    groups: HashMap<Box<[u8]>, GroupFigures, RandomState>,
    /// The bytes in memory.
    pub(super) bytes: usize,
    /// Maximum number of bytes in memory.
    most: usize,
    spilled: RecordSorter,
    has_spilled: bool,
}

impl GroupTable {
    /// Creates a table that keeps at most `most` bytes in memory, and half as many to sort, and the
    /// others in `scratch`.
    pub(super) fn new(scratch: &SpillDir, most: usize) -> Self {
        Self { groups: HashMap::default(), bytes: 0, most, spilled: RecordSorter::new(scratch, most / 2), has_spilled: false }
    }

    /// Adds events to the group of `key`.
    pub(super) fn add(&mut self, key: &[u8], group: GroupFigures) -> io::Result<()> {
        if let Some(known) = self.groups.get_mut(key) {
            known.merge(group);
            return Ok(());
        }
        let bytes = key.len() + OVERHEAD;
        if self.bytes + bytes > self.most && !self.groups.is_empty() {
            self.spill()?;
        }
        self.bytes += bytes;
        self.groups.insert(key.into(), group);
        Ok(())
    }

    /// Returns the first `limit` groups, or `None` if some groups are on disk, so that only
    /// [`GroupTable::finish`] can tell.
    pub(super) fn answer(&self, sums: bool, limit: usize) -> Option<Aggregate> {
        if self.has_spilled {
            return None;
        }
        let mut ranking = Ranking::new(sums, limit);
        self.groups.iter().for_each(|(key, group)| ranking.add(GroupKey::read(key), *group));
        Some(ranking.finish())
    }

    fn spill(&mut self) -> io::Result<()> {
        (self.bytes, self.has_spilled) = (0, true);
        for (key, group) in self.groups.drain() {
            // The length comes first, so that equal keys are next to each other.
            let length = u32::try_from(key.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            self.spilled.push(&[&length.to_be_bytes(), &key, &encode(&group)])?;
        }
        Ok(())
    }

    /// Returns the first `limit` groups: by sum if `sums`, else by count.
    pub(super) fn finish(self, sums: bool, limit: usize, cancelled: &AtomicBool) -> Result<Aggregate> {
        if let Some(answer) = self.answer(sums, limit) {
            return Ok(answer);
        }
        let mut ranking = Ranking::new(sums, limit);
        self.visit(cancelled, &mut |key, group| {
            ranking.add(GroupKey::read(key), group);
            Ok(())
        })?;
        Ok(ranking.finish())
    }

    /// Passes each group to `visit`, once.
    pub(super) fn visit(mut self, cancelled: &AtomicBool, visit: &mut VisitGroup<'_>) -> Result<()> {
        if !self.has_spilled {
            return self.groups.iter().try_for_each(|(key, group)| visit(key, *group));
        }
        self.spill()?;
        let mut sorted = self.spilled.finish()?;
        let mut open: Option<(Vec<u8>, GroupFigures)> = None;
        let mut seen = 0_u64;
        while let Some(record) = sorted.next()? {
            seen += 1;
            if seen.is_multiple_of(CHECK_EVERY) {
                check(cancelled)?;
            }
            let (key, group) = record.get(4..).unwrap_or_default().split_at(record.len().saturating_sub(4 + GROUP));
            let group = decode(group);
            match &mut open {
                Some((of, sum)) if of == key => sum.merge(group),
                other => {
                    if let Some((key, group)) = other.replace((key.to_vec(), group)) {
                        visit(&key, group)?;
                    }
                }
            }
        }
        open.map_or(Ok(()), |(key, group)| visit(&key, group))
    }
}

/// Encodes a group as [`GROUP`] bytes.
pub(super) fn encode(group: &GroupFigures) -> [u8; GROUP] {
    let mut bytes = [0; GROUP];
    bytes[..8].copy_from_slice(&group.count.to_le_bytes());
    bytes[8..16].copy_from_slice(&group.summed.to_le_bytes());
    bytes[16..32].copy_from_slice(&group.total.low.to_le_bytes());
    bytes[32..40].copy_from_slice(&group.total.carry.to_le_bytes());
    bytes[40] = group.total.has_too_large.into();
    bytes
}

/// Decodes what [`encode`] wrote.
pub(super) fn decode(bytes: &[u8]) -> GroupFigures {
    let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).unwrap_or_default();
    let low = bytes.get(16..32).and_then(|low| low.try_into().ok()).map_or(0, i128::from_le_bytes);
    let total = Total { low, carry: i64::from_le_bytes(word(32)), has_too_large: bytes.get(40) == Some(&1) };
    GroupFigures { count: u64::from_le_bytes(word(0)), summed: u64::from_le_bytes(word(8)), total }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use headcount_domain::aggregate::Summand;

    use super::*;

    #[test]
    fn groups_that_do_not_fit_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        for most in [600, 20_000, 1 << 20] {
            let scratch = SpillDir::new(dir.path());
            let mut table = GroupTable::new(&scratch, most);
            let mut expected: BTreeMap<Vec<u8>, GroupFigures> = BTreeMap::new();
            for number in 0..5_000_i128 {
                // Keys that are prefixes of each other, and sums that are out of range in between.
                let key = [&[0], &*vec![b'a'; (number % 9) as usize], (number * 7 % 613).to_string().as_bytes()].concat();
                let sign = if number % 1_226 < 613 { 1 } else { -1 };
                let group = GroupFigures::of(match number % 3 {
                    0 => Summand::None,
                    _ => Summand::Micros(sign * (10_i128.pow(38) - number)),
                });
                table.add(&key, group).unwrap();
                expected.entry(key).or_default().merge(group);
                assert!(table.bytes <= most.max(200));
            }
            assert_eq!(table.has_spilled, most < 1 << 20);
            assert!(table.spilled.runs() > 0 || most > 600);
            assert_eq!(scratch.written() > 0, table.spilled.runs() > 0, "{most} bytes");
            for sums in [false, true] {
                let mut ranking = Ranking::new(sums, 1_000);
                expected.iter().for_each(|(key, group)| ranking.add(GroupKey::read(key), *group));
                let mut copy = GroupTable::new(&scratch, most);
                if sums {
                    std::mem::swap(&mut copy, &mut table);
                } else {
                    expected.iter().for_each(|(key, group)| copy.add(key, *group).unwrap());
                }
                let answer = copy.finish(sums, 1_000, &AtomicBool::new(false)).unwrap();
                assert_eq!(answer, ranking.finish(), "{most} bytes");
                assert_eq!((answer.total_groups, answer.truncated), (expected.len() as u64, expected.len() > 1_000));
            }
        }
    }

    #[test]
    fn a_group_reads_back() {
        let total = Total { low: -5, carry: -1, has_too_large: true };
        for group in [GroupFigures::default(), GroupFigures { count: 1, summed: u64::MAX, total }] {
            assert_eq!(decode(&encode(&group)), group);
        }
    }
}
