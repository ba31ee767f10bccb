//! Several runs as one: for scans, and to be written as a run of their own.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::reader::{Run, RunCursor, RunDir, RunName};
use super::writer::RunWriter;
use crate::store::StoreError;

/// So many runs of about one size are merged.
const FAN_IN: usize = 4;
/// How many pairs are merged before it is looked whether that is still wanted.
const PAIRS_A_LOOK: usize = 4096;

/// Which runs should become one, given the sizes of all of them, oldest first. Sizes grow geometrically with age, so a
/// pair is rewritten a number of times that grows with the logarithm of the data.
pub(crate) fn plan(sizes: &[u64]) -> Option<Range<usize>> {
    let mut start = sizes.len().checked_sub(1)?;
    let mut total = *sizes.get(start)?;
    while let Some(older) = start.checked_sub(1) {
        if sizes[older] > 2 * total {
            break;
        }
        total += sizes[older];
        start = older;
    }
    let range = start..sizes.len();
    (range.len() >= FAN_IN).then_some(range)
}

/// As [`plan`], where there are too many runs: if none should become one by their sizes, those that cost least.
pub(crate) fn plan_at_once(sizes: &[u64]) -> Option<Range<usize>> {
    let cheapest = || {
        let windows = sizes.windows(FAN_IN).enumerate();
        windows.min_by_key(|(_, window)| window.iter().sum::<u64>()).map(|(start, _)| start..start + FAN_IN)
    };
    plan(sizes).or_else(cheapest)
}

/// The pairs of several runs in the order of their keys, each key once, as the newest run that has it says.
pub(crate) struct MergeCursor<'r> {
    /// Newest first.
    cursors: Vec<RunCursor<'r>>,
    /// The one that stands at the present pair.
    at: usize,
}

impl<'r> MergeCursor<'r> {
    /// Stands before the first pair whose key is `from` or greater. `runs` are oldest first.
    pub(crate) fn seek(runs: &'r [Arc<Run>], from: &[u8]) -> Result<Self, StoreError> {
        let mut cursors = Vec::with_capacity(runs.len());
        for run in runs.iter().rev() {
            cursors.extend(RunCursor::seek(run, from)?);
        }
        let at = cursors.len();
        Ok(Self { cursors, at })
    }

    /// Goes to the next pair; false if there is none.
    pub(crate) fn advance(&mut self) -> Result<bool, StoreError> {
        if self.at < self.cursors.len() {
            self.leave(self.at)?;
        }
        let Some(mut least) = self.cursors.len().checked_sub(1) else { return Ok(false) };
        for older in (0..least).rev() {
            if self.cursors[older].key() <= self.cursors[least].key() {
                least = older;
            }
        }
        self.at = least;
        // What older runs say of the same key doesn't count any more.
        for older in (least + 1..self.cursors.len()).rev() {
            if self.cursors[older].key() == self.cursors[least].key() {
                self.leave(older)?;
            }
        }
        Ok(true)
    }

    fn leave(&mut self, cursor: usize) -> Result<(), StoreError> {
        if !self.cursors[cursor].advance()? {
            self.cursors.remove(cursor);
        }
        Ok(())
    }

    /// The key of the present pair.
    pub(crate) fn key(&self) -> &[u8] {
        self.cursors[self.at].key()
    }

    /// Its value; `None`: the key holds nothing any more.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.cursors[self.at].value()
    }
}

/// Writes `runs`, oldest first, as one. `oldest`: no older run is left out, so keys that hold nothing can go. `None`: it was
/// stopped.
pub(crate) fn write(
    runs: &[Arc<Run>],
    oldest: bool,
    dir: &RunDir,
    name: RunName,
    stop: &AtomicBool,
) -> Result<Option<Run>, StoreError> {
    let mut writer = RunWriter::create(dir, name, Some(runs.iter().map(|run| run.footer.count).sum()))?;
    let mut pairs = MergeCursor::seek(runs, &[])?;
    let mut seen = 0_usize;
    while pairs.advance()? {
        if pairs.value().is_some() || !oldest {
            writer.push(pairs.key(), pairs.value())?;
        }
        seen += 1;
        if seen.is_multiple_of(PAIRS_A_LOOK) && stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    writer.finish().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

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
        assert_eq!(plan_at_once(&[27, 9, 3, 1]), Some(0..4));
        assert_eq!(plan_at_once(&[81, 27, 9, 3, 1]), Some(1..5));
        assert_eq!(plan_at_once(&[3, 1]), None);
    }

    #[test]
    fn runs_stay_few_and_little_is_written_twice() {
        for step in [MIB / 256, MIB / 16, MIB, 10 * MIB] {
            let (mut sizes, mut merged) = (Vec::new(), 0);
            for _ in 0..2_000 {
                sizes.push(step);
                if let Some(range) = plan(&sizes) {
                    let total = sizes.drain(range).sum();
                    sizes.push(total);
                    merged += total;
                }
                assert!(sizes.len() <= 14, "{sizes:?}");
            }
            assert!(merged < 8 * 2_000 * step, "each pair {} times", merged / 2_000 / step);
        }
    }

    /// A partition whose run is small is not written anew at each checkpoint.
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
