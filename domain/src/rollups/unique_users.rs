//! Unique users per day: which identities were active, and over any window how many different ones.

use super::distinct::{self, Distinct};
use crate::facts::{Change, Facts, Span};
use crate::rollup::{Cells, Level, Rollup, Sign};

/// See the module.
#[derive(Debug)]
pub struct UniqueUsers;

impl Rollup for UniqueUsers {
    const TAG: u8 = 1;
    const NAME: &'static str = "unique_users";
    type Cell = Distinct;

    fn concerned(level: Level, change: Change) -> bool {
        level == Level::Identity && change.new_day
    }

    fn contribute(level: Level, facts: &Facts, span: Span, sign: Sign, cells: &mut Cells<Distinct>) {
        if level == Level::Identity {
            distinct::contribute(facts, span, sign, cells);
        }
    }
}
