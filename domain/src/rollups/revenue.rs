//! Revenue per day: the money, the number of orders, and the money without a rate.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Key, Value, signed, unsigned};
use crate::contribution::Sign;
use crate::facts::MoneySums;
use crate::money::{Amount, Currency};
use crate::rollups::rollup::rollup;
use crate::time::Day;

/// A day, and a currency without a rate; `None` is the converted money.
pub type DayAndCurrency = (i32, Option<Currency>);

/// The value of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoneyRow {
    revenue: Amount,
    orders: i64,
    organization_revenue: Amount,
    organization_orders: i64,
}

impl MoneyRow {
    fn add(&mut self, other: Self, sign: Sign) {
        self.orders += sign.factor() * other.orders;
        self.organization_orders += sign.factor() * other.organization_orders;
        match sign {
            Sign::Plus => {
                self.revenue += other.revenue;
                self.organization_revenue += other.organization_revenue;
            }
            Sign::Minus => {
                self.revenue -= other.revenue;
                self.organization_revenue -= other.organization_revenue;
            }
        }
    }
}

impl Value for MoneyRow {
    fn columns(self) -> Columns {
        [
            unsigned(self.revenue.0),
            unsigned(self.orders.into()),
            unsigned(self.organization_revenue.0),
            unsigned(self.organization_orders.into()),
        ]
    }

    fn from_columns(columns: &Columns) -> Self {
        let [revenue, orders, organization_revenue, organization_orders] = columns.map(signed);
        Self {
            revenue: Amount(revenue),
            orders: i64::try_from(orders).unwrap_or_default(),
            organization_revenue: Amount(organization_revenue),
            organization_orders: i64::try_from(organization_orders).unwrap_or_default(),
        }
    }
}

impl Key for Option<Currency> {
    const BYTES: usize = 3;

    fn pack(self, to: &mut [u8]) {
        to.copy_from_slice(&self.map_or([0; 3], Currency::code));
    }

    fn unpack(from: &[u8]) -> Self {
        from.try_into().ok().and_then(Currency::of_code)
    }
}

rollup! {
    /// See the module.
    Revenue: tag 3, "revenue", room Sled, version 1, figure Money, dated,
    key DayAndCurrency => value MoneyRow,
    of Identity | Nobody when |change| change.money,
    |facts, change, sign, cells| {
        for (day, money) in facts.money(change.days) {
            let MoneySums { revenue, orders, organization_revenue, organization_orders, unconverted } = money;
            let converted = MoneyRow {
                revenue: *revenue,
                orders: *orders,
                organization_revenue: *organization_revenue,
                organization_orders: *organization_orders,
            };
            cells.change((day.0, None), |row| row.add(converted, sign));
            for (currency, revenue, orders) in unconverted.iter() {
                let left = MoneyRow { revenue, orders, ..MoneyRow::default() };
                cells.change((day.0, Some(currency)), |row| row.add(left, sign));
            }
        }
    }
}

impl Cells<DayAndCurrency, MoneyRow> {
    /// Returns all money of the days from `first` to `last`.
    pub fn sums(&self, first: Day, last: Day) -> MoneySums {
        let mut sums = MoneySums::default();
        for ((_, currency), row) in self.between(first.0, last.0) {
            let MoneyRow { revenue, orders, organization_revenue, organization_orders } = row;
            match currency {
                Some(currency) => sums.unconverted.add(currency, revenue, orders),
                None => {
                    sums.revenue += revenue;
                    sums.orders += orders;
                    sums.organization_revenue += organization_revenue;
                    sums.organization_orders += organization_orders;
                }
            }
        }
        sums
    }
}
