//! Recorded events by the time of receipt, in quarters of an hour: with them the days of every
//! timezone are exact.
//!
//! They tell what arrived, not what happened, so a floor freezes none of them.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Room, StoredCells, Value, signed, unsigned};
use crate::intake::event::{Event, Position};
use crate::time::{Instant, MS_PER_DAY};

/// The length of a quarter of an hour.
const QUARTER_MS: i64 = 15 * 60 * 1000;

/// A quarter of an hour in UTC: its day, and its number in the day.
pub type Quarter = (i32, u8);

/// The events that were received in one quarter of an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipts {
    /// The number of recorded events.
    pub recorded: i64,
    /// The number of those that were recorded without consent.
    pub without_consent: i64,
    /// The latest receipt, in milliseconds after the beginning of the quarter.
    last_ms: i64,
    /// The position of the first event, from which on those of the quarter and of later ones are
    /// recorded.
    first: Position,
}

impl Value for Receipts {
    fn columns(self) -> Columns {
        [unsigned(self.recorded.into()), unsigned(self.without_consent.into()), unsigned(self.last_ms.into()), self.first.into()]
    }

    fn from_columns(columns: &Columns) -> Self {
        let [recorded, without_consent, last_ms, _] = columns.map(|column| i64::try_from(signed(column)).unwrap_or_default());
        Self { recorded, without_consent, last_ms, first: Position::try_from(columns[3]).unwrap_or_default() }
    }
}

/// See the module.
#[derive(Debug)]
pub struct ReceiptsByQuarter;

impl StoredCells for ReceiptsByQuarter {
    const TAG: u8 = 25;
    const NAME: &'static str = "receipts";
    const ROOM: Room = Room::Sled;
    type Key = Quarter;
    type Value = Receipts;
}

/// Returns the quarter of an instant, and the milliseconds since its beginning.
pub(crate) fn quarter_of(at: Instant) -> (Quarter, i64) {
    let day = i32::try_from(at.utc_day()).unwrap_or(if at.0 < 0 { i32::MIN } else { i32::MAX });
    let in_day = at.0.rem_euclid(MS_PER_DAY);
    ((day, u8::try_from(in_day / QUARTER_MS).unwrap_or_default()), in_day % QUARTER_MS)
}

/// Returns the beginning of a quarter.
pub fn beginning_of((day, number): Quarter) -> Instant {
    Instant(i64::from(day) * MS_PER_DAY + i64::from(number) * QUARTER_MS)
}

impl Receipts {
    /// Returns the latest receipt in `quarter`, of which this is the row.
    pub fn last(self, quarter: Quarter) -> Instant {
        beginning_of(quarter).plus_ms(self.last_ms)
    }

    /// Returns the position before the first event.
    pub(crate) fn before(self) -> Option<Position> {
        self.first.checked_sub(1)
    }
}

impl Cells<Quarter, Receipts> {
    /// Counts a recorded event.
    pub(crate) fn count_receipt(&mut self, event: &Event, position: Position) {
        let (quarter, ms) = quarter_of(event.received);
        self.change(quarter, |receipts| {
            if receipts.recorded == 0 {
                receipts.first = position;
            }
            receipts.recorded += 1;
            receipts.without_consent += i64::from(!event.has_consent());
            receipts.last_ms = receipts.last_ms.max(ms);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_lies_in_its_quarter() {
        for ms in [0, 1, QUARTER_MS - 1, QUARTER_MS, MS_PER_DAY - 1, -1, -MS_PER_DAY, 1_790_000_123_456] {
            let (quarter, after) = quarter_of(Instant(ms));
            assert!((0..QUARTER_MS).contains(&after), "{ms}");
            assert_eq!(beginning_of(quarter).0 + after, ms);
        }
        assert_eq!(quarter_of(Instant(-1)), ((-1, 95), QUARTER_MS - 1));
    }
}
