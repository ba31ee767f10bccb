//! Lifetime value: entities by the month of their first event, and their revenue of all time.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Value, signed, unsigned};
use crate::contribution::Sign;
use crate::facts::Facts;
use crate::money::Amount;
use crate::rollups::rollup::rollup;

/// The sums of the entities first seen in one month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CohortSums {
    /// The number of entities, paying or not.
    pub entities: i64,
    /// Orders less refunds of all time.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
}

impl Value for CohortSums {
    fn columns(self) -> Columns {
        [unsigned(self.entities.into()), unsigned(self.revenue.0), unsigned(self.orders.into()), 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        Self {
            entities: i64::from_columns(columns),
            revenue: Amount(signed(columns[1])),
            orders: i64::try_from(signed(columns[2])).unwrap_or_default(),
        }
    }
}

fn contribute(facts: &Facts, sign: Sign, cells: &mut Cells<i32, CohortSums>) {
    let Some(first) = facts.first_day() else { return };
    let (revenue, orders) = facts.total_money().map_or_else(Default::default, |money| (money.revenue, money.orders));
    cells.change(first.month().0, |row| {
        row.entities += sign.factor();
        row.orders += sign.factor() * orders;
        match sign {
            Sign::Plus => row.revenue += revenue,
            Sign::Minus => row.revenue -= revenue,
        }
    });
}

rollup! {
    /// The cohorts of identities.
    CohortsByIdentity: tag 8, "cohorts_by_identity", room Sled, version 1, figure Cohorts, undated,
    key i32 => value CohortSums,
    of Identity when |change| change.first_day || change.money,
    |facts, _, sign, cells| contribute(facts, sign, cells)
}
rollup! {
    /// The cohorts of accounts.
    CohortsByAccount: tag 9, "cohorts_by_account", room Sled, version 1, figure Cohorts, undated,
    key i32 => value CohortSums,
    of Account when |change| change.first_day || change.money,
    |facts, _, sign, cells| contribute(facts, sign, cells)
}
