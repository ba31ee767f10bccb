//! Revenue per day: what was earned, in how many orders, and what could not be converted.

use crate::facts::{Change, Facts, MoneySums, Span};
use crate::rollup::{Cell, Cells, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct Revenue;

impl Cell for MoneySums {
    fn is_empty(&self) -> bool {
        MoneySums::is_empty(self)
    }
}

impl Rollup for Revenue {
    const TAG: u8 = 3;
    const NAME: &'static str = "revenue";
    type Cell = MoneySums;

    fn concerned(level: Level, change: Change) -> bool {
        level != Level::Account && change.money
    }

    fn contribute(level: Level, facts: &Facts, span: Span, sign: Sign, cells: &mut Cells<MoneySums>) {
        if level == Level::Account {
            return;
        }
        for (day, money) in facts.money(span) {
            cells.change(day.0, |cell| cell.add(money, sign));
        }
    }
}
