//! Active accounts per day: companies, and identities that have none. The divisor of `arpa`.

use super::distinct::{self, Distinct};
use crate::facts::{Change, Facts, Span};
use crate::rollup::{Cells, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct ActiveAccounts;

impl Rollup for ActiveAccounts {
    const TAG: u8 = 2;
    const NAME: &'static str = "active_accounts";
    type Cell = Distinct;

    fn concerned(level: Level, change: Change) -> bool {
        level == Level::Account && change.new_day
    }

    fn contribute(level: Level, facts: &Facts, span: Span, sign: Sign, cells: &mut Cells<Distinct>) {
        if level == Level::Account {
            distinct::contribute(facts, span, sign, cells);
        }
    }
}
