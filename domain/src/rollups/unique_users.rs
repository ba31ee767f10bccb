//! Unique users per day: which identities were active, and over any window how many different ones.

use super::distinct::{self, Distinct};
use crate::facts::{Change, Facts};
use crate::rollup::{Cells, Kept, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct UniqueUsers;

impl Kept for UniqueUsers {
    const TAG: u8 = 1;
    const NAME: &'static str = "unique_users";
    type Cell = Distinct;
}

impl Rollup for UniqueUsers {
    fn concerned(level: Level, change: Change) -> bool {
        level == Level::Identity && change.new_day
    }

    fn contribute(_: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<Distinct>) {
        distinct::contribute(facts, change.days, sign, cells);
    }
}
