//! Money that the figures leave out.

use std::collections::BTreeMap;

use headcount_domain::queries::Unconverted;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::respond::decimal::Decimal;

/// Money in a currency that had no rate when it was recorded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnconvertedMoney {
    /// Orders less refunds, in that currency.
    revenue: Decimal,
    /// How many orders.
    orders: i64,
}

/// Returns the money that is left out, by currency.
pub(crate) fn unconverted(money: &Unconverted) -> BTreeMap<String, UnconvertedMoney> {
    let shown = money.iter().map(|(currency, (revenue, orders))| {
        (currency.to_string(), UnconvertedMoney { revenue: Decimal(*revenue), orders: *orders })
    });
    shown.collect()
}
