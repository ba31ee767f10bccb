//! Merging tables: which ones are merged, and the pairs of several tables as one sequence.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::Result;
use super::reader::{Table, TableCursor};
use super::writer::TableWriter;

/// The minimum number of tables in a merge.
const FAN_IN: usize = 4;
/// The number of pairs between two checks of the stop flag.
const PAIRS_PER_CHECK: usize = 4096;

/// Chooses which of a set's tables to merge, given their sizes, oldest first, and the layout's
/// `merge_percent`.
pub(super) type MergePlan = fn(&[u64], u64) -> Option<Range<usize>>;

/// The relative size of the newer tables, in percent of the oldest, at which a set at rest is
/// merged.
const MERGE_AT_REST_PERCENT: u64 = 20;

/// Chooses the tables to merge by the sizes of all tables, oldest first. Sizes grow geometrically
/// with age, so each pair is rewritten only a logarithmic number of times. `merge_percent`: see
/// [`Layout`](super::Layout).
pub(super) fn plan(sizes: &[u64], merge_percent: u64) -> Option<Range<usize>> {
    let mut start = sizes.len().checked_sub(1)?;
    let mut total = *sizes.get(start)?;
    while let Some(older) = start.checked_sub(1) {
        if 100 * sizes[older] > merge_percent * total {
            break;
        }
        total += sizes[older];
        start = older;
    }
    let range = start..sizes.len();
    (range.len() >= FAN_IN).then_some(range)
}

/// Like [`plan`], but for a set with too many tables: if sizes suggest no merge, chooses the
/// cheapest one.
pub(super) fn plan_at_once(sizes: &[u64], merge_percent: u64) -> Option<Range<usize>> {
    let cheapest = || {
        let windows = sizes.windows(FAN_IN).enumerate();
        windows.min_by_key(|(_, window)| window.iter().sum::<u64>()).map(|(start, _)| start..start + FAN_IN)
    };
    plan(sizes, merge_percent).or_else(cheapest)
}

/// Like [`plan`], but for a set that does not change for a while: merges all tables if the newer
/// ones are not much smaller than the oldest. So each rest rewrites a pair at most six times.
pub(super) fn plan_at_rest(sizes: &[u64], _merge_percent: u64) -> Option<Range<usize>> {
    let (oldest, newer) = sizes.split_first()?;
    let is_worth_it = !newer.is_empty() && 100 * newer.iter().sum::<u64>() >= MERGE_AT_REST_PERCENT * oldest;
    is_worth_it.then_some(0..sizes.len())
}

/// Visits the pairs of several tables in key order. For each key, only the newest pair.
pub(crate) struct MergeCursor<'t> {
    /// Newest table first.
    cursors: Vec<TableCursor<'t>>,
    /// The cursor at the current pair.
    at: usize,
}

impl<'t> MergeCursor<'t> {
    /// A cursor before the first pair whose key is at least `from`. `tables` are oldest first.
    pub(crate) fn seek(tables: &'t [Arc<Table>], from: &[u8]) -> Result<Self> {
        let mut cursors = Vec::with_capacity(tables.len());
        for table in tables.iter().rev() {
            cursors.extend(TableCursor::seek(table, from)?);
        }
        let at = cursors.len();
        Ok(Self { cursors, at })
    }

    /// Advances to the next pair; returns `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.at < self.cursors.len() {
            self.leave(self.at)?;
        }
        let Some(mut least) = self.cursors.len().checked_sub(1) else { return Ok(false) };
        let mut repeated = false;
        for newer in (0..least).rev() {
            let order = self.cursors[newer].compare(&self.cursors[least]);
            if order.is_le() {
                least = newer;
                repeated |= order.is_eq();
            }
        }
        self.at = least;
        // Skip the pairs of older tables with the same key.
        for older in (least + 1..self.cursors.len()).rev().filter(|_| repeated) {
            if self.cursors[older].key() == self.cursors[least].key() {
                self.leave(older)?;
            }
        }
        Ok(true)
    }

    fn leave(&mut self, cursor: usize) -> Result<()> {
        if !self.cursors[cursor].advance()? {
            self.cursors.remove(cursor);
        }
        Ok(())
    }

    /// The key of the current pair.
    pub(crate) fn key(&self) -> &[u8] {
        self.cursors[self.at].key()
    }

    /// The value of the current pair; `None` if the key is deleted.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.cursors[self.at].value()
    }
}

/// The prefixes of keys whose pairs are dropped.
pub(crate) type KeyPrefixes<'p> = &'p [Vec<u8>];

/// Whether a table has a key that begins with one of `prefixes`, including deleted keys.
pub(super) fn holds(tables: &[Arc<Table>], prefixes: KeyPrefixes<'_>) -> Result<bool> {
    for prefix in prefixes {
        let mut pairs = MergeCursor::seek(tables, prefix)?;
        if pairs.advance()? && pairs.key().starts_with(prefix) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes `tables`, oldest first, as one table, without the keys that begin with one of `prefixes`.
/// With `oldest`, the tables include the oldest one, so deleted keys can be dropped. Returns `None`
/// if `stop` was set.
pub(super) fn merge(
    tables: &[Arc<Table>],
    oldest: bool,
    prefixes: KeyPrefixes<'_>,
    mut writer: TableWriter,
    stop: &AtomicBool,
) -> Result<Option<Table>> {
    let mut pairs = MergeCursor::seek(tables, &[])?;
    let mut seen = 0_usize;
    while pairs.advance()? {
        let is_dropped = prefixes.iter().any(|prefix| pairs.key().starts_with(prefix));
        if !is_dropped && (pairs.value().is_some() || !oldest) {
            writer.push(pairs.key(), pairs.value())?;
        }
        seen += 1;
        if seen.is_multiple_of(PAIRS_PER_CHECK) && stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    writer.finish().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn plan(sizes: &[u64]) -> Option<Range<usize>> {
        super::plan(sizes, 200)
    }

    #[test]
    fn sizes_grow_with_age() {
        assert_eq!(plan(&[]), None);
        assert_eq!(plan(&[MIB]), None);
        assert_eq!(plan(&[MIB, 1, 1, 1]), None);
        assert_eq!(plan(&[MIB, 1, 1, 1, 1]), Some(1..5));
        assert_eq!(plan(&[100 * MIB, 10 * MIB, 10 * MIB, 10 * MIB]), None);
        assert_eq!(plan(&[100 * MIB, 10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB]), Some(1..5));
        assert_eq!(plan(&[60 * MIB, 10 * MIB, 10 * MIB, 10 * MIB]), Some(0..4));
        assert_eq!(plan(&[27, 9, 3, 1]), None);
        assert_eq!(plan_at_once(&[27, 9, 3, 1], 200), Some(0..4));
        assert_eq!(plan_at_once(&[81, 27, 9, 3, 1], 200), Some(1..5));
        assert_eq!(plan_at_once(&[3, 1], 200), None);
    }

    #[test]
    fn tables_stay_few_and_little_is_rewritten() {
        let steps = [MIB / 256, MIB / 16, MIB, 10 * MIB];
        for (step, percent) in steps.into_iter().flat_map(|step| [(step, 125), (step, 200)]) {
            let (mut sizes, mut merged) = (Vec::new(), 0);
            for _ in 0..2_000 {
                sizes.push(step);
                if let Some(range) = super::plan(&sizes, percent) {
                    let total = sizes.drain(range).sum();
                    sizes.push(total);
                    merged += total;
                }
                assert!(sizes.len() <= 14, "{sizes:?}");
            }
            assert!(merged < 8 * 2_000 * step, "each pair {} times", merged / 2_000 / step);
        }
    }

    /// A partition with a small table is not rewritten at each checkpoint.
    #[test]
    fn small_checkpoints_rewrite_little() {
        let (mut sizes, mut merged) = (vec![2 * MIB], 0);
        for _ in 0..60 {
            sizes.extend([10_000]);
            if let Some(range) = plan(&sizes) {
                let total = sizes.drain(range).sum();
                sizes.push(total);
                merged += total;
            }
        }
        assert!(merged < 4 * MIB, "{merged} bytes in an hour of checkpoints");
    }
}
