//! Orders and refunds.

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;
use crate::moment::Moment;
use crate::money::Amount;
use crate::time::Day;

/// An order or a refund that counts in the project's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The moment of the event.
    pub at: Moment,
    /// The calendar day.
    pub day: Day,
    /// The value in the project's currency; negative for a refund.
    pub revenue: Amount,
    /// 1 for an order, 0 for a refund.
    pub orders: u8,
    /// The company that the event names itself.
    pub company: Option<Box<RecordKey>>,
}
