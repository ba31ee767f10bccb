//! Lifetime value: entities by the month of their first event, and all that they ever paid.

use serde::{Deserialize, Serialize};

use super::at_level::at_level;
use crate::facts::{Change, Facts};
use crate::money::Amount;
use crate::rollup::{Cell, Cells, Level, Sign};

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

fn contribute(facts: &Facts, _: Change, sign: Sign, cells: &mut Cells<CohortSums>) {
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

fn concerned(own: Level, level: Level, change: Change) -> bool {
    level == own && (change.first_day || change.money)
}

at_level!(
    /// Of identities.
    CohortsByIdentity, 8, "cohorts_by_identity", CohortSums, Identity, concerned, contribute
);
at_level!(
    /// Of accounts.
    CohortsByAccount, 9, "cohorts_by_account", CohortSums, Account, concerned, contribute
);
