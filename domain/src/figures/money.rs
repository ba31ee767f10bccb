//! The counted money of one event.

use crate::intake::event::Event;
use crate::money::{Amount, Currency};

/// An order or a refund that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedMoney {
    /// The amount: in the project's currency, unless it has no rate.
    pub amount: Amount,
    /// Whether it is an order.
    pub is_order: bool,
    /// The currency, if it has no rate. Its money is in no sum.
    pub unconverted: Option<Currency>,
}

impl CountedMoney {
    /// Returns the money of an event with a nonzero `value`. `None` if it has neither a rate nor a
    /// `currency`.
    pub fn new(value: Amount, in_project: Option<Amount>, currency: impl FnOnce() -> Option<Currency>) -> Option<Self> {
        let is_order = value.is_positive();
        Some(match in_project {
            Some(amount) => Self { amount, is_order, unconverted: None },
            None => Self { amount: value, is_order, unconverted: Some(currency()?) },
        })
    }

    /// Returns the money of an event, if it is a counted order or refund.
    pub fn of(event: &Event) -> Option<Self> {
        let money = event.money.as_ref().filter(|money| money.counted && !money.amount.is_zero())?;
        Self::new(money.amount, money.in_project, || Some(money.currency))
    }
}
