//! The figures of some events and of their sessions, and the order by a figure.

use serde::{Deserialize, Serialize};

use crate::money::{Amount, ratio, ratio_of_counts};
use crate::named_values;

/// The figures of some events and their sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFigures {
    /// The distinct identities of the events.
    pub unique_users: u64,
    /// Of these, the identities of events that fit the question's goal.
    pub converters: u64,
    /// The sessions.
    pub sessions: u64,
    /// The sessions with exactly one event.
    pub bounces: u64,
    /// The sum of the sessions' durations, in milliseconds.
    pub duration_ms: u64,
    /// The pageviews.
    pub pageviews: u64,
    /// The events.
    pub events: u64,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
}

impl EventFigures {
    /// Returns the share of the identities that converted, 0 to 1.
    pub fn conversion_rate(&self) -> Amount {
        ratio_of_counts(self.converters, self.unique_users)
    }

    /// Returns the share of sessions with exactly one event, 0 to 1.
    pub fn bounce_rate(&self) -> Amount {
        ratio_of_counts(self.bounces, self.sessions)
    }

    /// Returns the mean duration of the sessions, in seconds.
    pub fn duration_avg_sec(&self) -> Amount {
        ratio(Amount::from_micros(i128::from(self.duration_ms) * 1_000), self.sessions)
    }
}

named_values! {
    /// A figure that rows are ordered by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub enum OrderBy by as_str {
        /// The distinct identities.
        #[default]
        UniqueUsers = "unique_users",
        /// The sessions.
        Sessions = "sessions",
        /// The pageviews.
        Pageviews = "pageviews",
        /// The events.
        Events = "events",
        /// Orders less refunds.
        Revenue = "revenue",
        /// The number of orders.
        Orders = "orders",
    }
}

impl OrderBy {
    /// Whether the figure is money.
    pub const fn is_money(self) -> bool {
        matches!(self, Self::Revenue | Self::Orders)
    }

    /// Returns the figure.
    pub fn of(self, figures: &EventFigures) -> i128 {
        match self {
            Self::UniqueUsers => figures.unique_users.into(),
            Self::Sessions => figures.sessions.into(),
            Self::Pageviews => figures.pageviews.into(),
            Self::Events => figures.events.into(),
            Self::Revenue => figures.revenue.micros(),
            Self::Orders => figures.orders.into(),
        }
    }
}
