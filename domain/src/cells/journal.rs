//! The rows that changed since the journal was last drained, and the days of the rows with a new
//! value.
//!
//! Contributions are taken out and added again, mostly unchanged. Only a row whose value differs at
//! the end touches its day.

use std::collections::BTreeSet;

use super::keys::Key;
use super::packed::{Columns, KeyBytes};
use super::parts::Parts;
use crate::time::Day;

/// The number of rows at which a journal is drained in the middle of a change. Some days are then
/// touched although they end up unchanged.
const MAX_ROWS: usize = 1024;

/// The number of rows whose memory is kept: every project has a journal for each rollup.
const USUAL_ROWS: usize = 2;

/// The journal of one rollup.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    /// Whether keys begin with a day.
    dated: bool,
    /// Keys, with their values before the change. Only the first entry of a key counts.
    rows: Vec<(KeyBytes, Option<Columns>)>,
    /// The days of rows that were drained in the middle of a change; `None` stands for rows without
    /// a day.
    days: BTreeSet<Option<Day>>,
}

impl Journal {
    pub(super) fn new(dated: bool) -> Self {
        Self { dated, rows: Vec::new(), days: BTreeSet::new() }
    }

    /// Records that the row of `key` had the value `before`, which is no longer its value.
    pub(super) fn record(&mut self, key: KeyBytes, before: Option<Columns>, parts: &Parts) {
        if self.rows.is_empty() {
            self.rows.reserve_exact(USUAL_ROWS);
        }
        self.rows.push((key, before));
        if self.rows.len() > MAX_ROWS {
            let mut days = std::mem::take(&mut self.days);
            self.drain(parts, &mut |day| {
                days.insert(day);
            });
            self.days = days;
        }
    }

    /// Passes the days of the rows that differ to `touch`, and empties the journal.
    pub(super) fn drain(&mut self, parts: &Parts, touch: &mut impl FnMut(Option<Day>)) {
        let dated = self.dated;
        let day = |key: &KeyBytes| key.first_chunk::<4>().filter(|_| dated).map(|bytes| Day(i32::unpack(bytes)));
        if let [(key, _)] = self.rows[..] {
            // It differs: rows are recorded when they do.
            touch(day(&key));
        } else {
            self.rows.sort_by_key(|(key, _)| *key);
            let mut known = None;
            for (key, before) in &self.rows {
                if known.replace(*key) != Some(*key) && parts.get(key) != *before {
                    touch(day(key));
                }
            }
        }
        self.rows.clear();
        if self.rows.capacity() > USUAL_ROWS {
            self.rows = Vec::new();
        }
        if !self.days.is_empty() {
            std::mem::take(&mut self.days).into_iter().for_each(touch);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.days.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Cells;
    use super::*;
    use crate::limits::Limits;

    fn drained(cells: &mut Cells<(i32, u32), i64>) -> Vec<Option<Day>> {
        let mut days = Vec::new();
        cells.drain(&mut |day| days.push(day));
        days.dedup();
        days
    }

    #[test]
    fn rows_that_end_as_they_began_touch_no_day() {
        let mut cells: Cells<(i32, u32), i64> = Cells::with_journal(&Limits::DEFAULT, true);
        cells.change((5, 1), |count| *count += 1);
        assert_eq!(drained(&mut cells), [Some(Day(5))]);
        for (add, expected) in [([-1, 1], vec![]), ([2, 1], vec![Some(Day(5))]), ([1, -5], vec![Some(Day(5))])] {
            add.iter().for_each(|add| cells.change((5, 1), |count| *count += add));
            assert_eq!(drained(&mut cells), expected, "{add:?}");
        }
        assert_eq!(cells.get((5, 1)), None);
        cells.change((7, 1), |count| *count += 1);
        cells.change((7, 2), |count| *count += 1);
        cells.change((-3, 2), |count| *count += 1);
        cells.change((7, 2), |count| *count -= 1);
        assert_eq!(drained(&mut cells), [Some(Day(-3)), Some(Day(7))]);
        assert_eq!(drained(&mut cells), [], "each change touches once");
        let mut undated: Cells<(i32, u32), i64> = Cells::with_journal(&Limits::DEFAULT, false);
        undated.set((7, 1), 3);
        assert_eq!(drained(&mut undated), [None]);
    }

    /// A link of two long histories changes any number of rows.
    #[test]
    fn many_rows_take_little_memory_and_lose_no_day() {
        let mut cells: Cells<(i32, u32), i64> = Cells::with_journal(&Limits::DEFAULT, true);
        let rows = (0..20_000u32).map(|number| (i32::try_from(number % 3_000).unwrap(), number));
        for row in rows.clone() {
            cells.change(row, |count| *count += 1);
        }
        let expected: Vec<_> = (0..3_000).map(|day| Some(Day(day))).collect();
        let mut days = drained(&mut cells);
        days.sort_unstable();
        days.dedup();
        assert_eq!(days, expected);
        for row in rows {
            cells.change(row, |count| *count -= 1);
        }
        let mut days = drained(&mut cells);
        days.sort_unstable();
        days.dedup();
        assert_eq!(days, expected);
    }
}
