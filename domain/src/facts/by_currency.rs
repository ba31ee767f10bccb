//! Money by currency, for the few currencies of one day or one entity.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cache::paged::insert_tight;
use crate::money::{Amount, Currency};

/// Revenue and orders by currency, none of them zero. It is a list, since nearly always there is
/// one currency, and a node of a tree is ten times as large.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByCurrency(Vec<InCurrency>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct InCurrency {
    currency: Currency,
    revenue: Amount,
    orders: i64,
}

impl ByCurrency {
    /// Adds to the sums of a currency, which is removed if they become zero.
    pub fn add(&mut self, currency: Currency, revenue: Amount, orders: i64) {
        let at = self.0.partition_point(|sum| sum.currency < currency);
        match self.0.get_mut(at).filter(|sum| sum.currency == currency) {
            Some(sum) => {
                sum.revenue += revenue;
                sum.orders += orders;
            }
            None => insert_tight(&mut self.0, at, InCurrency { currency, revenue, orders }),
        }
        if self.0.get(at).is_some_and(|sum| sum.revenue.is_zero() && sum.orders == 0) {
            self.0.remove(at);
        }
    }

    /// Returns currencies, revenue and orders, in order of the currencies.
    pub fn iter(&self) -> impl Iterator<Item = (Currency, Amount, i64)> {
        self.0.iter().map(|sum| (sum.currency, sum.revenue, sum.orders))
    }

    /// Returns revenue and orders, by currency.
    pub(crate) fn to_map(&self) -> BTreeMap<Currency, (Amount, i64)> {
        self.iter().map(|(currency, revenue, orders)| (currency, (revenue, orders))).collect()
    }

    /// Returns the heap memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.0.capacity() * size_of::<InCurrency>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_there_while_it_is_not_zero() {
        let (euro, franc) = (Currency::parse("EUR").unwrap(), Currency::parse("CHF").unwrap());
        let five = Amount::parse("5").unwrap();
        let mut sums = ByCurrency::default();
        sums.add(euro, five, 1);
        sums.add(franc, five, 1);
        sums.add(euro, five, 1);
        assert_eq!(sums.iter().collect::<Vec<_>>(), [(franc, five, 1), (euro, five + five, 2)]);
        sums.add(franc, -five, -1);
        sums.add(franc, Amount::ZERO, 0);
        assert_eq!(sums.iter().map(|(currency, ..)| currency).collect::<Vec<_>>(), [euro]);
    }
}
