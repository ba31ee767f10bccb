//! The versions of a project, by figure and day.
//!
//! A version is the position of the last event that touched the figure on the day. Positions rise,
//! so the greatest version of some figures and days changes exactly when one of them is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::touched::{Depends, FigureKind, Touched};
use crate::cells::packed::{Columns, KeyBytes, MAX_KEY, Packed};
use crate::cells::parts::FrozenPart;
use crate::cells::{CellDifference, Key, Room, StoredCells, VisitDifference, unsigned};
use crate::intake::event::Position;
use crate::time::{Day, Window};

/// The versions of a project. A clone shares the versions, so that another thread can read them.
#[derive(Clone, Default)]
pub struct DayVersions(Arc<Mutex<VersionTable>>);

/// The number of days that are stored together.
const BLOCK_DAYS: i32 = 16;

/// The versions of the days of a block, by figure; 0 is a day without events.
struct VersionBlock {
    versions: [[Position; BLOCK_DAYS as usize]; FigureKind::COUNT],
    unsaved: bool,
}

#[derive(Default)]
struct VersionTable {
    /// The position of the last event that counted.
    last: Position,
    /// The last position that touched a figure on any day.
    latest: [Position; FigureKind::COUNT],
    /// The last position that touched a figure on all days.
    whole: [Position; FigureKind::COUNT],
    whole_unsaved: bool,
    blocks: BTreeMap<i32, Box<VersionBlock>>,
}

/// A row: the version of a figure on a day. [`WHOLE`] stands for all days.
type DayAndFigure = (i32, u8);

const WHOLE: i32 = i32::MIN;
/// The number of the part with the rows of [`WHOLE`]. Parts of blocks follow.
const WHOLE_PART: u32 = 0;
/// The part of the block of day 0.
const PART_OF_DAY_0: i32 = 1 << 28;

impl StoredCells for DayVersions {
    const TAG: u8 = 24;
    const NAME: &'static str = "day_versions";
    const ROOM: Room = Room::Sled;
    type Key = DayAndFigure;
    type Value = i64;
}

fn place(day: Day) -> (i32, usize) {
    (day.0.div_euclid(BLOCK_DAYS), usize::try_from(day.0.rem_euclid(BLOCK_DAYS)).unwrap_or_default())
}

fn packed(rows: impl Iterator<Item = (DayAndFigure, Position)>) -> Option<Arc<Packed>> {
    let mut part: Option<Packed> = None;
    for (key, version) in rows {
        let mut bytes: KeyBytes = [0; MAX_KEY];
        key.pack(&mut bytes[..DayAndFigure::BYTES]);
        let columns: Columns = [version.into(), 0, 0, 0];
        match &mut part {
            Some(part) => part.insert(part.count(), &bytes, &columns),
            None => part = Some(Packed::new(DayAndFigure::BYTES, &bytes, &columns)),
        }
    }
    part.map(Arc::new)
}

impl VersionBlock {
    fn rows(&self, block: i32) -> impl Iterator<Item = (DayAndFigure, Position)> {
        let days = (0..BLOCK_DAYS).zip(0usize..);
        days.flat_map(move |(offset, at)| {
            let version =
                move |figure: FigureKind| ((block * BLOCK_DAYS + offset, figure as u8), self.versions[figure as usize][at]);
            FigureKind::ALL.into_iter().map(version).filter(|(_, version)| *version != 0)
        })
    }
}

impl VersionTable {
    fn block(&mut self, number: i32) -> &mut VersionBlock {
        self.blocks
            .entry(number)
            .or_insert_with(|| Box::new(VersionBlock { versions: [[0; BLOCK_DAYS as usize]; FigureKind::COUNT], unsaved: false }))
    }

    fn touch(&mut self, touched: &Touched, position: Position) {
        self.last = position;
        let in_same_block = |(_, one): &(FigureKind, Day), (_, other): &(FigureKind, Day)| place(*one).0 == place(*other).0;
        for days in touched.days.chunk_by(in_same_block) {
            let Some((_, first)) = days.first() else { continue };
            let block = self.block(place(*first).0);
            block.unsaved = true;
            days.iter().for_each(|(figure, day)| block.versions[*figure as usize][place(*day).1] = position);
            days.iter().for_each(|(figure, _)| self.latest[*figure as usize] = position);
        }
        for figure in touched.whole() {
            (self.whole[figure as usize], self.latest[figure as usize], self.whole_unsaved) = (position, position, true);
        }
    }

    fn rows(&self) -> BTreeMap<DayAndFigure, Position> {
        let whole = FigureKind::ALL.map(|figure| ((WHOLE, figure as u8), self.whole[figure as usize]));
        let days = self.blocks.iter().flat_map(|(number, block)| block.rows(*number));
        whole.into_iter().filter(|(_, version)| *version != 0).chain(days).collect()
    }

    fn of_window(&self, figures: &[FigureKind], window: Window) -> Position {
        let ((first, from), (last, to)) = (place(window.start), place(window.end));
        let mut version = figures.iter().map(|figure| self.whole[*figure as usize]).max().unwrap_or_default();
        if first > last {
            return version;
        }
        for (number, block) in self.blocks.range(first..=last) {
            let from = if *number == first { from } else { 0 };
            let to = if *number == last { to + 1 } else { BLOCK_DAYS as usize };
            for figure in figures {
                let days = block.versions[*figure as usize].get(from..to).unwrap_or_default();
                version = days.iter().copied().fold(version, Position::max);
            }
        }
        version
    }

    fn freeze(&mut self) -> Vec<FrozenPart> {
        let mut frozen = Vec::new();
        if std::mem::take(&mut self.whole_unsaved) {
            let row = |figure: FigureKind| ((WHOLE, figure as u8), self.whole[figure as usize]);
            frozen.push((WHOLE_PART, packed(FigureKind::ALL.into_iter().map(row).filter(|(_, version)| *version != 0))));
        }
        for (number, block) in &mut self.blocks {
            if std::mem::take(&mut block.unsaved) {
                let part = u32::try_from(number.saturating_add(PART_OF_DAY_0)).unwrap_or(u32::MAX);
                frozen.push((part, packed(block.rows(*number))));
            }
        }
        frozen
    }

    fn restore(&mut self, part: &Packed) -> bool {
        if part.key_len() != DayAndFigure::BYTES {
            return false;
        }
        part.iter().all(|(key, columns)| {
            let (day, figure) = DayAndFigure::unpack(&key[..DayAndFigure::BYTES]);
            let (Some(figure), Ok(version)) = (FigureKind::ALL.get(usize::from(figure)).copied(), columns[0].try_into()) else {
                return false;
            };
            if day == WHOLE {
                (self.whole[figure as usize], self.latest[figure as usize]) =
                    (version, self.latest[figure as usize].max(version));
            } else {
                let (block, at) = place(Day(day));
                self.block(block).versions[figure as usize][at] = version;
                self.latest[figure as usize] = self.latest[figure as usize].max(version);
            }
            true
        })
    }
}

impl DayVersions {
    fn table(&self) -> MutexGuard<'_, VersionTable> {
        self.0.lock()
    }

    /// Records the figures and days that the event at `position` touched.
    pub(crate) fn touch(&self, touched: &Touched, position: Position) {
        self.table().touch(touched, position);
    }

    /// Returns a number that changes exactly when a dependency of the answer is touched.
    pub fn of(&self, depends: &Depends) -> Position {
        let table = self.table();
        match depends {
            Depends::Everything => table.last,
            Depends::AllDays(figures) => figures.iter().map(|figure| table.latest[*figure as usize]).max().unwrap_or_default(),
            Depends::Days(figures, window) => table.of_window(figures, *window),
            Depends::TwoWindows(figures, window, other) => {
                let windows = [Some(*window), *other].into_iter().flatten();
                windows.map(|window| table.of_window(figures, window)).max().unwrap_or_default()
            }
        }
    }

    /// Restores the position of the last event that counted.
    pub fn restore_last(&self, last: Position) {
        self.table().last = last;
    }

    /// Returns the parts that changed since the last call.
    pub(crate) fn freeze(&self) -> Vec<FrozenPart> {
        self.table().freeze()
    }

    /// Restores a saved part. Returns `false` if it contains anything else.
    pub(crate) fn restore(&self, part: &Packed) -> bool {
        self.table().restore(part)
    }

    /// Passes the versions that differ from `recomputed` to `visit`. Returns the number of compared
    /// versions.
    pub fn compare(&self, recomputed: &Self, visit: &mut VisitDifference<'_>) -> u64 {
        let stored = self.table().rows();
        let recomputed = recomputed.table().rows();
        let keys: BTreeSet<&DayAndFigure> = stored.keys().chain(recomputed.keys()).collect();
        for key in &keys {
            let (stored, recomputed) = (stored.get(*key), recomputed.get(*key));
            if stored != recomputed {
                let columns = |version: Option<&Position>| version.map(|version| [unsigned((*version).into()), 0, 0, 0]);
                let (stored, recomputed) = (columns(stored), columns(recomputed));
                visit(&|| CellDifference::new::<_, i64>(Self::NAME, key.0 != WHOLE, **key, stored, recomputed));
            }
        }
        keys.len() as u64
    }

    /// Returns the approximate memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.table().blocks.len() * (size_of::<VersionBlock>() + 48)
    }
}

impl fmt::Debug for DayVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        f.debug_struct("DayVersions").field("last", &table.last).field("blocks", &table.blocks.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(days: &[(FigureKind, i32)], whole: &[FigureKind]) -> Touched {
        let mut touched = Touched::default();
        days.iter().for_each(|(figure, day)| touched.day(*figure, Day(*day)));
        whole.iter().for_each(|figure| touched.all_days(*figure));
        touched
    }

    fn window(start: i32, end: i32) -> Window {
        Window { start: Day(start), end: Day(end) }
    }

    /// A position, and what was touched at it: figures on days, and figures on all days.
    type Entry = (Position, Vec<(FigureKind, i32)>, Vec<FigureKind>);

    /// Compares the table with a list of all that was touched.
    fn compare(versions: &DayVersions, history: &[Entry]) {
        for (start, end) in (-40..40).step_by(3).flat_map(|start| (start..start + 50).step_by(7).map(move |end| (start, end))) {
            for figures in [&[FigureKind::Users][..], &[FigureKind::Money, FigureKind::Traffic], &FigureKind::ALL] {
                let is_hit = |(_, days, whole): &&Entry| {
                    whole.iter().any(|figure| figures.contains(figure))
                        || days.iter().any(|(figure, day)| figures.contains(figure) && (start..=end).contains(day))
                };
                let expected = history.iter().filter(is_hit).map(|(position, ..)| *position).max().unwrap_or(0);
                assert_eq!(versions.table().of_window(figures, window(start, end)), expected, "{figures:?} {start} to {end}");
            }
        }
    }

    #[test]
    fn a_version_changes_when_one_of_its_days_is_touched() {
        let (versions, mut history) = (DayVersions::default(), Vec::new());
        let mut saved: BTreeMap<u32, Arc<Packed>> = BTreeMap::new();
        for position in 1..200u64 {
            let number = i32::try_from(position * 7919 % 83).unwrap();
            let figure = FigureKind::ALL[number as usize % FigureKind::COUNT];
            let days = vec![(figure, number - 41), (FigureKind::Events, 3 - number / 2), (figure, number - 40)];
            let whole = if position % 61 == 0 { vec![figure] } else { Vec::new() };
            versions.touch(&touched(&days, &whole), position);
            history.push((position, days, whole));
            if position % 13 == 0 {
                saved.extend(versions.freeze().into_iter().map(|(number, part)| (number, part.unwrap())));
                compare(&versions, &history);
            }
        }
        saved.extend(versions.freeze().into_iter().map(|(number, part)| (number, part.unwrap())));
        assert!(versions.freeze().is_empty(), "everything is saved");
        let restored = DayVersions::default();
        assert!(saved.values().all(|part| restored.restore(part)));
        compare(&restored, &history);
        assert!(restored.freeze().is_empty());
        assert_eq!(restored.table().latest, versions.table().latest);
        assert_eq!(restored.weight(), versions.weight());
    }

    #[test]
    fn a_part_of_other_rows_is_refused() {
        let part = Packed::new(4, &[0; MAX_KEY], &[1, 0, 0, 0]);
        assert!(!DayVersions::default().restore(&part));
        let mut key = [0; MAX_KEY];
        (7i32, 200u8).pack(&mut key[..5]);
        assert!(!DayVersions::default().restore(&Packed::new(5, &key, &[1, 0, 0, 0])), "no such figure");
        (7i32, 1u8).pack(&mut key[..5]);
        assert!(!DayVersions::default().restore(&Packed::new(5, &key, &[u128::MAX, 0, 0, 0])), "no such position");
    }
}
