//! Events of companies and groups by day and by block of days: the source of top lists. A company
//! is counted under each of its reported keys.
//!
//! An event is counted in its day, and in the blocks of 4, 16, 64 and 256 days that contain the
//! day. A window is covered by a few of these, some of them subtracted: a year less a week is
//! cheaper than 51 weeks. Groups are identified by their number within the project
//! ([`GroupNumbers`](crate::indexes::GroupNumbers)), so that sums fit a list.

use std::collections::BTreeSet;

use crate::cells::{Cells, Room, StoredCells};
use crate::contribution::Sign;
use crate::ids::RecordKey;
use crate::time::{Day, Window};

/// The key of a type, the bucket of a day or block, and the number of a group. A row holds the
/// group's number of events.
pub type ActiveGroup = (RecordKey, i32, u32);

/// See the module.
#[derive(Debug)]
pub struct GroupActivity;

impl StoredCells for GroupActivity {
    const TAG: u8 = 11;
    const NAME: &'static str = "group_activity";
    const ROOM: Room = Room::Tables;
    type Key = ActiveGroup;
    type Value = i64;
}

/// The days and blocks that add up to a window: their buckets, and whether each is added or
/// subtracted.
#[derive(Debug, Clone)]
pub struct Cover(Vec<(i32, Sign)>);

/// The number of low bits of a day that each level drops: blocks of 1, 4, 16, 64 and 256 days.
const LEVELS: [u32; 5] = [0, 2, 4, 6, 8];
const TOP: usize = LEVELS.len() - 1;

/// Returns the bucket of a block. Each level has its own range of buckets; a day's bucket is the
/// day number.
fn bucket(level: usize, block: i32) -> i32 {
    let level = i32::try_from(level).unwrap_or_default();
    (level << 28) + block
}

/// The range of the buckets of days.
const DAYS: (i32, i32) = (-(1 << 27), (1 << 27) - 1);

impl Cover {
    /// Returns the fewest blocks of `level` and below that add up to the days from `first` to
    /// `last`.
    fn of(first: i32, last: i32, level: usize, sign: Sign) -> Vec<(i32, Sign)> {
        let digits = LEVELS[level];
        let mut cover = Vec::new();
        for block in (first >> digits)..=(last >> digits) {
            let (from, to) = (block << digits, ((block + 1) << digits) - 1);
            let (first, last) = (first.max(from), last.min(to));
            if (first, last) == (from, to) {
                cover.push((bucket(level, block), sign));
                continue;
            }
            let inside = Self::of(first, last, level - 1, sign);
            let rest = match (first == from, last == to) {
                (true, _) => Some((last + 1, to)),
                (_, true) => Some((from, first - 1)),
                _ => None,
            };
            let outside = rest.map(|(first, last)| Self::of(first, last, level - 1, sign.opposite()));
            match outside.filter(|outside| outside.len() + 1 < inside.len()) {
                Some(outside) => {
                    cover.push((bucket(level, block), sign));
                    cover.extend(outside);
                }
                None => cover.extend(inside),
            }
        }
        cover
    }
}

impl Cells<ActiveGroup, i64> {
    /// Adds or takes out events of a group on `day`.
    pub fn count(&mut self, day: Day, kind: RecordKey, number: u32, events: u64, sign: Sign) {
        if events == 0 {
            return;
        }
        let events = sign.factor() * i64::try_from(events).unwrap_or(i64::MAX);
        for (level, digits) in LEVELS.into_iter().enumerate() {
            self.add((kind, bucket(level, day.0 >> digits), number), events);
        }
    }

    /// Removes the rows of groups of a type, those of frozen days, too.
    pub(crate) fn remove_groups(&mut self, kind: RecordKey, numbers: &BTreeSet<u32>) {
        let theirs = self.under(kind).map(|(key, _)| key).filter(|(.., number)| numbers.contains(number));
        theirs.collect::<Vec<_>>().into_iter().for_each(|key| self.remove(key));
    }

    /// Returns the cover of a window for groups of a type. If there is no activity beyond an end of
    /// the window, the cover extends to the end of a block.
    pub fn cover(&self, kind: RecordKey, window: Window) -> Cover {
        let mut days = self.between((kind, DAYS.0), (kind, DAYS.1)).map(|((_, day, _), _)| day);
        let Some(least) = days.next() else { return Cover(Vec::new()) };
        let greatest = days.next_back().unwrap_or(least);
        let (first, last) = (window.start.0.max(least), window.end.0.min(greatest));
        if first > last {
            return Cover(Vec::new());
        }
        let whole = (1 << LEVELS[TOP]) - 1;
        let first = if first == least { first & !whole } else { first };
        let last = if last == greatest { last | whole } else { last };
        Cover(Cover::of(first, last, TOP, Sign::Plus))
    }

    /// Returns the number of events of each group of a type, by number; `groups` is the number of
    /// groups.
    pub fn sums(&self, kind: RecordKey, groups: usize, cover: &Cover) -> Vec<i64> {
        let mut sums = vec![0; groups];
        for (bucket, sign) in &cover.0 {
            self.visit_numbers((kind, *bucket), |number, events| {
                if let Some(sum) = sums.get_mut(number as usize) {
                    *sum += sign.factor() * events;
                }
            });
        }
        sums
    }

    /// Returns the numbers of events of some groups of a type.
    pub(crate) fn sums_of(&self, kind: RecordKey, numbers: &[u32], cover: &Cover) -> Vec<i64> {
        let of =
            |number: u32, (bucket, sign): &(i32, Sign)| sign.factor() * self.get((kind, *bucket, number)).unwrap_or_default();
        numbers.iter().map(|number| cover.0.iter().map(|block| of(*number, block)).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: RecordKey = RecordKey(7);
    const SQUAD: RecordKey = RecordKey(8);

    /// Some days have no events, and group 1 has fewer than group 0.
    fn events(number: u32, day: i32) -> u64 {
        if day.rem_euclid(7) == 3 { 0 } else { u64::from((day + 3000).unsigned_abs()) * u64::from(number == 0) + 1 }
    }

    fn compare(first: i32, last: i32, windows: impl Iterator<Item = (i32, i32)>) {
        let mut cells: Cells<ActiveGroup, i64> = Cells::default();
        for (day, number) in (first..=last).flat_map(|day| [(day, 0), (day, 1)]) {
            cells.count(Day(day), TEAM, number, events(number, day), Sign::Plus);
        }
        for (start, end) in windows {
            let cover = cells.cover(TEAM, Window { start: Day(start), end: Day(end) });
            assert!(cover.0.len() <= 20 + (last - first).unsigned_abs() as usize / 256, "{start} to {end}: {cover:?}");
            let expected = [0, 1].map(|number| -> i64 {
                (start.max(first)..=end.min(last)).map(|day| i64::try_from(events(number, day)).unwrap()).sum()
            });
            assert_eq!(cells.sums(TEAM, 2, &cover), expected, "{start} to {end}");
            assert_eq!(cells.sums_of(TEAM, &[0, 1], &cover), expected, "{start} to {end}");
            assert_eq!(cells.sums(SQUAD, 2, &cover), [0, 0]);
        }
    }

    #[test]
    fn every_window_counts_each_of_its_days_once() {
        compare(-40, 100, (-60..110).flat_map(|start| (start..start + 40).map(move |end| (start, end))));
        compare(-300, 1500, (-310..1500).step_by(13).flat_map(|start| (start..1510).step_by(17).map(move |end| (start, end))));
    }

    #[test]
    fn what_is_taken_out_leaves_nothing() {
        let mut cells: Cells<ActiveGroup, i64> = Cells::default();
        for sign in [Sign::Plus, Sign::Minus] {
            (0..40).for_each(|day| cells.count(Day(day * 7), TEAM, 5, 3, sign));
        }
        assert!(cells.is_empty());
    }
}
