//! The money of a message: which events have some, and how much.

use std::borrow::Cow;

use super::values::{JsonField, given};
use crate::intake::repairs::amount;

/// The meaning of an event's money by its name, from Segment's specification of e-commerce events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `Order Completed`: without a `revenue`, its `total` counts.
    Order,
    /// `Order Refunded`: the refunded amount.
    Refund,
    /// An event with an expected or already counted amount. It must not count again.
    Estimate,
    /// Any other event.
    Other,
}

impl Kind {
    fn of(event: &str) -> Self {
        let words: Vec<String> =
            event.split([' ', '_']).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).take(4).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["order", "completed"] => Self::Order,
            ["order", "refunded"] => Self::Refund,
            ["product" | "cart" | "checkout", _, ..]
            | ["payment", "info", "entered"]
            | ["order", "updated" | "cancelled" | "canceled"]
            | ["started", "order"] => Self::Estimate,
            _ => Self::Other,
        }
    }
}

/// Returns the JSON of an event's money and the name of its property, from the event's name and its
/// properties `revenue` and `total`. An invalid amount is returned unchanged.
pub(super) fn money<'a>(event: &str, revenue: JsonField<'a>, total: JsonField<'a>) -> Option<(Cow<'a, str>, &'static str)> {
    let kind = Kind::of(event);
    let (field, name) = match kind {
        Kind::Estimate => return None,
        Kind::Order | Kind::Refund if given(revenue).is_none() => (total, "properties.total"),
        _ => (revenue, "properties.revenue"),
    };
    let json = given(field)?;
    match amount(json) {
        Ok(amount) if kind == Kind::Refund && amount.is_positive() => Some(((-amount).to_string().into(), name)),
        _ => Some((json.into(), name)),
    }
}

/// Whether an event of this name is an order, which its `order_id` identifies.
pub(super) fn is_order(event: &str) -> bool {
    Kind::of(event) == Kind::Order
}
