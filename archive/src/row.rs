//! One row: an event with what the archive records beside it.

use headcount_domain::intake::event::{Event, Position};
use headcount_domain::money::Currency;

/// The currencies that an event's money was converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Currencies {
    /// The project's.
    pub project: Currency,
    /// The organization's.
    pub organization: Currency,
}

/// An event, its position, and what only the archive and exports record.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where the event stands in the log.
    pub position: Position,
    /// The event.
    pub event: Event,
    /// What its money was converted to; only of an event with money.
    pub currencies: Option<Currencies>,
    /// Whether it was set aside (a dead letter) and counts nowhere.
    pub set_aside: bool,
}

impl Row {
    /// The row of an event that counts. `currencies` are those of its project and organization.
    #[must_use]
    pub fn new(position: Position, event: Event, currencies: Currencies) -> Self {
        let currencies = event.money.is_some().then_some(currencies);
        Self { position, event, currencies, set_aside: false }
    }
}
