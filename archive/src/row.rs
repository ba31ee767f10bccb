//! The rows of the archive.

use headcount_domain::{Currency, Event, Position};

/// The currencies to which an event's money was converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Currencies {
    /// The currency of the project.
    pub project: Currency,
    /// The currency of the organization.
    pub organization: Currency,
}

/// An event with its position and the fields that only the archive and exports have.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The position of the event in the log.
    pub position: Position,
    /// The event.
    pub event: Event,
    /// The currencies of its conversions; `None` for an event without money.
    pub currencies: Option<Currencies>,
    /// Whether the event is a dead letter, which no rollup counts.
    pub set_aside: bool,
}

impl Row {
    /// Creates the row of an event that is not set aside.
    pub fn new(position: Position, event: Event, currencies: Currencies) -> Self {
        let currencies = event.money.is_some().then_some(currencies);
        Self { position, event, currencies, set_aside: false }
    }
}
