//! Revenue per day: what was earned, in how many orders, and what could not be converted.

use crate::facts::{Change, Facts, MoneySums};
use crate::rollup::{Cell, Cells, Kept, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct Revenue;

impl Cell for MoneySums {
    fn is_empty(&self) -> bool {
        MoneySums::is_empty(self)
    }
}

impl Kept for Revenue {
    const TAG: u8 = 3;
    const NAME: &'static str = "revenue";
    type Cell = MoneySums;
}

impl Rollup for Revenue {
    fn concerned(level: Level, change: Change) -> bool {
        level != Level::Account && change.money
    }

    fn contribute(_: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<MoneySums>) {
        for (day, money) in facts.money(change.days) {
            cells.change(day.0, |cell| cell.add(money, sign));
        }
    }
}
