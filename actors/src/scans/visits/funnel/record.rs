//! An event that fits steps, as it is sorted.

use headcount_domain::facts::Moment;
use headcount_domain::figures::{CountedMoney, StepEvent};
use headcount_domain::{Instant, Position};

use super::super::super::accounts::{ENTITY, EntityKey};
use super::super::super::sessions::{ordered, time_of};
use super::super::carried::{MONEY_BYTES, read_money, write_money};

/// The flags of the first window: whether the event is in it, and whether it is after it. Those of
/// the second window are the next bits.
const IN_WINDOW: u8 = 1;
const AFTER_WINDOW: u8 = 4;
const MONEY: u8 = 16;

/// An event of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStep<'r> {
    /// The number of the sequence that the event is in.
    pub(super) sequence: u64,
    pub(super) at: Moment,
    /// For each window: 0 in it, and 1 after it.
    pub(super) windows: [Option<u16>; 2],
    /// A bit for each step that it fits.
    pub(super) steps: u16,
    pub(super) money: Option<CountedMoney>,
    /// The key of the value by which rows are divided.
    pub(super) value: &'r [u8],
}

impl<'r> FoundStep<'r> {
    pub(super) fn write(&self, entity: EntityKey, to: &mut Vec<u8>) {
        to.extend_from_slice(&entity.to_bytes());
        to.extend_from_slice(&self.sequence.to_be_bytes());
        to.extend_from_slice(&ordered(self.at.time.0));
        to.extend_from_slice(&self.at.position.to_be_bytes());
        to.extend_from_slice(&self.steps.to_le_bytes());
        let flag = |window: usize| match self.windows[window] {
            Some(0) => IN_WINDOW << window,
            Some(_) => AFTER_WINDOW << window,
            None => 0,
        };
        to.push(flag(0) | flag(1) | if self.money.is_some() { MONEY } else { 0 });
        if let Some(money) = self.money {
            write_money(money, to);
        }
        to.extend_from_slice(self.value);
    }

    /// Reads what [`FoundStep::write`] wrote.
    pub(super) fn read(record: &'r [u8]) -> Option<(EntityKey, Self)> {
        let (entity, rest) = record.split_at_checked(ENTITY)?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (steps, rest) = rest.split_first_chunk()?;
        let (flags, rest) = rest.split_first()?;
        let (money, value) = rest.split_at_checked(if flags & MONEY > 0 { MONEY_BYTES } else { 0 })?;
        let window = |number: usize| {
            let has = |flag: u8| flags & flag << number > 0;
            if has(IN_WINDOW) { Some(0) } else { has(AFTER_WINDOW).then_some(1) }
        };
        let step = Self {
            sequence: u64::from_be_bytes(*sequence),
            at: Moment { time: Instant(time_of(time)), position: Position::from_be_bytes(*position) },
            windows: [window(0), window(1)],
            steps: u16::from_le_bytes(*steps),
            money: read_money(money),
            value,
        };
        Some((EntityKey::read(entity), step))
    }

    /// Returns the event as it is in a window, if it is.
    pub(super) fn in_window(&self, window: usize) -> Option<StepEvent<'r>> {
        let bucket = self.windows[window]?;
        let Self { at, steps, money, value, .. } = *self;
        Some(StepEvent { at, steps, may_begin: bucket == 0, money, value })
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Amount, RecordKey};

    use super::*;

    #[test]
    fn a_step_reads_back_and_is_ordered_by_entity_sequence_and_time() {
        let mut records = Vec::new();
        for number in 0..512_u16 {
            let has = |bit: u8| number >> bit & 1 > 0;
            let entity = EntityKey { key: RecordKey(u128::from(has(8))), is_company: has(7) };
            let window = |bit: u8| has(bit).then_some(u16::from(has(bit - 1)));
            let step = FoundStep {
                sequence: has(6).into(),
                at: Moment { time: Instant(if has(5) { 1 } else { -1 }), position: has(4).into() },
                windows: [window(1), window(3)],
                steps: number,
                money: has(0).then_some(CountedMoney { amount: Amount::from_micros(-7), is_order: has(1), unconverted: None }),
                value: if has(2) { b"\x00value" } else { b"" },
            };
            let mut record = Vec::new();
            step.write(entity, &mut record);
            assert_eq!(FoundStep::read(&record), Some((entity, step)));
            records.push((record, (entity, step.sequence, step.at)));
        }
        records.sort();
        assert!(records.iter().map(|(_, place)| place).is_sorted());
    }
}
