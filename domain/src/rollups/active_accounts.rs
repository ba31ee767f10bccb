//! Active accounts per day: companies, and identities that have none. The divisor of `arpa`.

use super::distinct::{self, Distinct};
use crate::facts::{Change, Facts};
use crate::rollup::{Cells, Kept, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct ActiveAccounts;

impl Kept for ActiveAccounts {
    const TAG: u8 = 2;
    const NAME: &'static str = "active_accounts";
    type Cell = Distinct;
}

impl Rollup for ActiveAccounts {
    fn concerned(level: Level, change: Change) -> bool {
        level == Level::Account && change.new_day
    }

    fn contribute(_: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<Distinct>) {
        distinct::contribute(facts, change.days, sign, cells);
    }
}
