//! What answers consist of.

use headcount_domain::Currency;
use headcount_domain::queries::Unconverted;
use headcount_model::Json;

/// Why there is no 200: a status of 400 or 404.
pub(super) struct Refused(pub(super) u16);

pub(super) fn text(value: &impl ToString) -> Json {
    Json::from(value.to_string().as_str())
}

pub(super) fn number(number: impl ToString) -> Json {
    Json::parse(&number.to_string()).unwrap()
}

/// Money without a rate, by currency.
pub(super) fn unconverted(money: &Unconverted) -> Json {
    let one = |(currency, (revenue, orders)): (&Currency, &(_, i64))| {
        (currency.to_string(), Json::object([("revenue", number(revenue)), ("orders", number(orders))]))
    };
    Json::Object(money.iter().map(one).collect())
}
