//! Lifetime value: entities by the month of their first event, and their revenue of all time.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Value, signed, unsigned};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};
use crate::money::Amount;
use crate::rollups::at_level::at_level;

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

fn contribute(facts: &Facts, _: &DirtyRange, sign: Sign, cells: &mut Cells<i32, CohortSums>) {
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

fn concerned(own: EntityKind, level: EntityKind, change: &DirtyRange) -> bool {
    level == own && (change.first_day || change.money)
}

at_level!(
    /// The cohorts of identities.
    CohortsByIdentity, 8, "cohorts_by_identity", i32 => CohortSums, Identity, concerned, contribute, Cohorts, false
);
at_level!(
    /// The cohorts of accounts.
    CohortsByAccount, 9, "cohorts_by_account", i32 => CohortSums, Account, concerned, contribute, Cohorts, false
);
