//! The money of a message: which events have some, and how much.

use super::values::{JsonField, is_empty, text};
use crate::intake::submission::Invalid;
use crate::money::{Amount, AmountError};

/// What the name of an event says of its money, by Segment's specification of e-commerce events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `Order Completed`: without a `revenue`, its `total` counts.
    Order,
    /// `Order Refunded`: what was paid back.
    Refund,
    /// An event that says what an order may bring, or brought before: counted, it would count twice.
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

/// Returns the money of an event by its name and its properties `revenue` and `total`.
///
/// # Errors
/// The property that counts is no number, or out of range.
pub(super) fn money(event: &str, revenue: JsonField<'_>, total: JsonField<'_>) -> Result<Option<Amount>, Invalid> {
    let kind = Kind::of(event);
    let given = |field: JsonField<'_>| field.is_some() && !is_empty(field);
    let (field, name) = match kind {
        Kind::Estimate => return Ok(None),
        Kind::Order | Kind::Refund if !given(revenue) => (total, "properties.total"),
        _ => (revenue, "properties.revenue"),
    };
    if !given(field) {
        return Ok(None);
    }
    let amount = amount(field).map_err(|error| {
        let problem = match error {
            AmountError::NotANumber => "must be a number".to_owned(),
            error => error.to_string(),
        };
        Invalid::parameter(name, format!("`{name}` {problem}"))
    })?;
    Ok(Some(if kind == Kind::Refund && amount.is_positive() { -amount } else { amount }))
}

/// Reads a number, which may be in a string. Sums of floats have more decimals than are kept: they are rounded.
fn amount(field: JsonField<'_>) -> Result<Amount, AmountError> {
    Amount::parse_rounded(text(field).as_deref().ok_or(AmountError::NotANumber)?.trim())
}
