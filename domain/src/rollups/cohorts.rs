//! Lifetime value: entities by the month of their first event, and all that they ever paid.

use serde::{Deserialize, Serialize};

use crate::facts::{Change, Facts};
use crate::money::Amount;
use crate::rollup::{Cell, Cells, Kept, Level, Rollup, Sign};

/// The entities that were first seen in one month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortSums {
    /// How many, paying or not.
    pub entities: i64,
    /// Their orders less refunds, of all time.
    pub revenue: Amount,
    /// How many orders.
    pub orders: i64,
}

impl Cell for CohortSums {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn contribute(facts: &Facts, sign: Sign, cells: &mut Cells<CohortSums>) {
    let Some(first) = facts.first_day() else { return };
    let (revenue, orders) = facts.total_money().map_or_else(Default::default, |money| (money.revenue, money.orders));
    cells.change(first.month().0, |cell| {
        cell.entities += sign.factor();
        cell.orders += sign.factor() * orders;
        match sign {
            Sign::Plus => cell.revenue += revenue,
            Sign::Minus => cell.revenue -= revenue,
        }
    });
}

macro_rules! cohorts {
    ($(#[$doc:meta])* $name:ident, $tag:literal, $text:literal, $level:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Kept for $name {
            const TAG: u8 = $tag;
            const NAME: &'static str = $text;
            type Cell = CohortSums;
        }

        impl Rollup for $name {
            fn concerned(level: Level, change: Change) -> bool {
                level == Level::$level && (change.first_day || change.money)
            }

            fn contribute(_: Level, facts: &Facts, _: Change, sign: Sign, cells: &mut Cells<CohortSums>) {
                contribute(facts, sign, cells);
            }
        }
    };
}

cohorts!(
    /// Of identities.
    CohortsByIdentity, 8, "cohorts_by_identity", Identity
);
cohorts!(
    /// Of accounts.
    CohortsByAccount, 9, "cohorts_by_account", Account
);
