//! The figures of chosen events and of the sessions that hold them.
//!
//! Events are chosen by a window, a name and filters. A session counts if it began in the window and holds a chosen event; its
//! bounce and its duration are those of the whole session.

mod breakdown;
mod money;
mod origins;
mod question;

pub use breakdown::{Breakdown, BreakdownRow, RankedRows, Search};
pub use money::CountedMoney;
pub use origins::{OriginRow, SessionOrigins};
pub use question::{BreakdownQuestion, ComparedWindows, ReportQuestion};

use crate::money::{Amount, ratio, ratio_of_counts};
use crate::named_values;
use crate::queries::Unconverted;

/// The figures of some events and their sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// The distinct identities of the events.
    pub unique_users: u64,
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

impl Figures {
    /// Returns the share of sessions with exactly one event, 0 to 1.
    #[must_use]
    pub fn bounce_rate(&self) -> Amount {
        ratio_of_counts(self.bounces, self.sessions)
    }

    /// Returns the mean duration of the sessions, in seconds.
    #[must_use]
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
    #[must_use]
    pub const fn is_money(self) -> bool {
        matches!(self, Self::Revenue | Self::Orders)
    }

    /// Returns the figure.
    #[must_use]
    pub fn of(self, figures: &Figures) -> i128 {
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

/// The figures of a window, and of each of its buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// The figures of the window. Its unique users are a union, and not the sum of those of the buckets.
    pub totals: Figures,
    /// The figures of the buckets, in order.
    pub buckets: Vec<Figures>,
}

/// The answer to a [`ReportQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The figures of the window.
    pub current: Series,
    /// Those of the window that it is compared with.
    pub previous: Option<Series>,
    /// The money of the window that is left out for lack of a rate.
    pub unconverted: Unconverted,
}
