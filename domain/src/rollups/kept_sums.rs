//! Events of groups in the windows that top lists were asked for lately, kept up to date while
//! events come in: adding up the rows of
//! [`GroupActivity`](super::GroupActivity) for each question takes most of its time.

use crate::cells::{CellDifference, Cells, VisitDifference};
use crate::contribution::Sign;
use crate::ids::RecordKey;
use crate::rollups::ActiveGroup;
use crate::time::{Day, Window};

/// How many windows are kept: a number for each group and window.
const MOST_WINDOWS: usize = 4;
/// How many changes a window outlives without being asked for.
const MOST_CHANGES: u32 = 1 << 20;
/// How many rounds of evictions it outlives: those of some minutes while memory is short all the
/// time.
const EVICTION_ROUNDS: u32 = 1 << 14;

/// The number of events of each group of a type in a window.
#[derive(Debug)]
struct WindowSums {
    kind: RecordKey,
    start: Day,
    end: Day,
    /// By the number of the group. Groups without events may be missing at the end.
    sums: Vec<i64>,
    /// The number of changes since it was asked for.
    changes: u32,
}

impl WindowSums {
    fn is_of(&self, kind: RecordKey, window: Window) -> bool {
        (self.kind, self.start, self.end) == (kind, window.start, window.end)
    }
}

/// See the module. It holds nothing that [`GroupActivity`](super::GroupActivity) does not, so that
/// it may be empty at any time.
#[derive(Debug, Default)]
pub struct KeptSums {
    /// The one asked for last comes last.
    windows: Vec<WindowSums>,
}

impl KeptSums {
    /// Returns the number of events of each of the first `groups` groups of a type in a window, by
    /// number; from `compute` if they are not kept yet.
    pub fn sums(&mut self, kind: RecordKey, window: Window, groups: usize, compute: impl FnOnce() -> Vec<i64>) -> &[i64] {
        match self.windows.iter().position(|kept| kept.is_of(kind, window)) {
            Some(at) => self.windows[at..].rotate_left(1),
            None => {
                if self.windows.len() >= MOST_WINDOWS {
                    self.windows.remove(0);
                }
                let Window { start, end, .. } = window;
                self.windows.push(WindowSums { kind, start, end, sums: compute(), changes: 0 });
            }
        }
        let Some(last) = self.windows.last_mut() else { return &[] };
        last.changes = 0;
        last.sums.resize(last.sums.len().max(groups), 0);
        last.sums.get(..groups).unwrap_or_default()
    }

    /// Returns the numbers of events of some groups of a type in a window, if they are kept.
    pub(crate) fn sums_of(&self, kind: RecordKey, window: Window, numbers: &[u32]) -> Option<Vec<i64>> {
        let kept = self.windows.iter().find(|kept| kept.is_of(kind, window))?;
        Some(numbers.iter().map(|number| kept.sums.get(*number as usize).copied().unwrap_or_default()).collect())
    }

    /// Adds or takes out events of a group on `day`.
    pub fn count(&mut self, day: Day, kind: RecordKey, number: u32, events: u64, sign: Sign) {
        if self.windows.is_empty() {
            return;
        }
        let (events, number) = (sign.factor() * i64::try_from(events).unwrap_or(i64::MAX), number as usize);
        for kept in &mut self.windows {
            kept.changes += 1;
            if kept.kind == kind && (kept.start..=kept.end).contains(&day) {
                if kept.sums.len() <= number {
                    kept.sums.resize(number + 1, 0);
                }
                kept.sums[number] += events;
            }
        }
        self.windows.retain(|kept| kept.changes < MOST_CHANGES);
    }

    /// Takes part in a round of an eviction: windows that nobody has asked for during many of them
    /// are forgotten.
    pub fn evict(&mut self) {
        self.windows.iter_mut().for_each(|kept| kept.changes += MOST_CHANGES / EVICTION_ROUNDS);
        self.windows.retain(|kept| kept.changes < MOST_CHANGES);
    }

    /// Forgets all windows: groups were removed.
    pub fn clear(&mut self) {
        self.windows.clear();
    }

    /// Passes the sums that differ from what the rows of `activity` add up to to `visit`. Returns
    /// the number of sums that were compared.
    pub fn compare(&self, activity: &Cells<ActiveGroup, i64>, visit: &mut VisitDifference<'_>) -> u64 {
        let mut compared = 0;
        for WindowSums { kind, start, end, sums, .. } in &self.windows {
            let cover = activity.cover(*kind, Window { start: *start, end: *end });
            let recomputed = activity.sums(*kind, sums.len(), &cover);
            let different = (0..).zip(sums.iter().zip(&recomputed)).filter(|(_, (kept, recomputed))| kept != recomputed);
            for (number, (kept, recomputed)) in different {
                let key = format!("{kind:?} group {number} from {start} to {end}");
                let (stored, recomputed) = (Some(kept.to_string()), Some(recomputed.to_string()));
                visit(&|| CellDifference {
                    rollup: "kept_sums",
                    key: key.clone(),
                    stored: stored.clone(),
                    recomputed: recomputed.clone(),
                });
            }
            compared += sums.len() as u64;
        }
        compared
    }

    /// Returns the approximate memory, in bytes.
    pub fn weight(&self) -> usize {
        self.windows.iter().map(|kept| size_of::<WindowSums>() + kept.sums.capacity() * size_of::<i64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: RecordKey = RecordKey(7);
    const SQUAD: RecordKey = RecordKey(8);

    fn window(start: i32, end: i32) -> Window {
        Window { start: Day(start), end: Day(end) }
    }

    #[test]
    fn a_kept_window_follows_what_is_counted_in_it() {
        let mut kept = KeptSums::default();
        assert_eq!(kept.sums(TEAM, window(3, 5), 2, || vec![1, 2]), [1, 2]);
        kept.count(Day(3), TEAM, 0, 10, Sign::Plus);
        kept.count(Day(5), TEAM, 3, 4, Sign::Plus);
        kept.count(Day(4), TEAM, 1, 2, Sign::Minus);
        kept.count(Day(2), TEAM, 0, 100, Sign::Plus);
        kept.count(Day(6), TEAM, 0, 100, Sign::Plus);
        kept.count(Day(4), SQUAD, 0, 100, Sign::Plus);
        assert_eq!(kept.sums_of(TEAM, window(3, 5), &[3, 0, 9]), Some(vec![4, 11, 0]));
        assert_eq!(kept.sums_of(TEAM, window(3, 6), &[3]), None);
        assert_eq!(kept.sums(TEAM, window(3, 5), 5, || unreachable!("it is kept")), [11, 0, 0, 4, 0]);
        kept.clear();
        assert_eq!(kept.sums(TEAM, window(3, 5), 1, || vec![7]), [7]);
    }

    #[test]
    fn the_windows_asked_for_last_stay() {
        let mut kept = KeptSums::default();
        let ask = |kept: &mut KeptSums, end: i32| {
            let mut computed = false;
            kept.sums(TEAM, window(0, end), 1, || {
                computed = true;
                vec![0]
            });
            computed
        };
        assert!((0..4).all(|end| ask(&mut kept, end)));
        assert!(!ask(&mut kept, 0));
        assert!(ask(&mut kept, 4), "in place of that until day 1");
        assert!(!ask(&mut kept, 0));
        assert!(ask(&mut kept, 1));
        let weight = kept.weight();
        (0..MOST_CHANGES).for_each(|_| kept.count(Day(0), SQUAD, 0, 1, Sign::Plus));
        assert!(weight > 0 && kept.weight() == 0, "nobody asks any more");
        assert!(ask(&mut kept, 0));
        (1..EVICTION_ROUNDS).for_each(|_| kept.evict());
        assert!(!ask(&mut kept, 0));
        (0..EVICTION_ROUNDS).for_each(|_| kept.evict());
        assert!(ask(&mut kept, 0));
    }
}
