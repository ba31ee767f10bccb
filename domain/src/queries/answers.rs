//! The types of answers, for the embedded API and the HTTP interface.

use std::collections::BTreeMap;

use crate::acquisition::{DIRECT, NONE};
use crate::money::{Amount, Currency};
use crate::named_values;
use crate::time::{Day, Instant};
use serde::{Deserialize, Serialize};

named_values! {
    /// The attribution model: the touch under which an order is counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum TouchModel by as_str {
        /// The earliest session of the entity that has a source.
        #[default]
        FirstTouch = "first_touch",
        /// The latest session with a source that began at or before the order.
        LastTouch = "last_touch",
    }
}

named_values! {
    /// The level of touches and cohorts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum EntityLevel by as_str {
        /// Accounts: companies, and identities without a company.
        #[default]
        Account = "account",
        /// Identities.
        Identity = "identity",
    }
}

named_values! {
    /// The part of a touch by which orders are grouped.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Dimension by as_str {
        /// The source.
        #[default]
        Source = "source",
        /// The medium.
        Medium = "medium",
        /// The campaign.
        Campaign = "campaign",
    }
}

impl Dimension {
    /// Returns the value of orders without a touch. Orders without a source also lack a medium and
    /// a campaign, and are counted with the orders that lack only these.
    pub(crate) const fn of_direct(self) -> &'static str {
        match self {
            Self::Source => DIRECT,
            Self::Medium | Self::Campaign => NONE,
        }
    }
}

/// A list that a limit may have truncated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// Whether there are more rows.
    pub truncated: bool,
}

/// Unique users per day, and over the whole window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueUsers {
    /// Every day of the window, with its distinct identities.
    pub series: Vec<(Day, u64)>,
    /// The distinct identities of the whole window: a union, not a sum.
    pub total: u64,
}

/// Money without a rate, by currency: revenue and orders.
pub type Unconverted = BTreeMap<Currency, (Amount, i64)>;

/// Revenue over a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevenueMetrics {
    /// Orders less refunds, in the project's currency.
    pub total_revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// Average order value: `total_revenue` / `orders`, 0 without orders.
    pub aov: Amount,
    /// `total_revenue` per account that was active in the window, paying or not.
    pub arpa: Amount,
    /// `total_revenue` per identity that was active in the window, paying or not.
    pub arpu: Amount,
    /// The money excluded from the totals.
    pub unconverted: Unconverted,
}

/// Revenue by day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevenueSeries {
    /// Every day of the window: revenue and orders.
    pub series: Vec<(Day, Amount, i64)>,
    /// The money excluded from the series.
    pub unconverted: Unconverted,
}

/// Revenue under one touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchRevenue {
    /// The source, medium or campaign.
    pub dimension: String,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
}

/// Revenue by attribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributedRevenue {
    /// By revenue, descending.
    pub touches: Listed<TouchRevenue>,
    /// The money excluded for lack of a rate.
    pub unconverted: Unconverted,
}

/// The entities first seen in one month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cohort {
    /// `YYYY-MM`.
    pub month: String,
    /// The number of entities, paying or not.
    pub entities: i64,
    /// Orders less refunds of all time.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// `revenue` / `entities`.
    pub ltv: Amount,
}

/// Lifetime value by month of the first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LtvCohorts {
    /// The newest month first.
    pub cohorts: Listed<Cohort>,
    /// The money of all time excluded for lack of a rate.
    pub unconverted: Unconverted,
}

/// The sessions of one source, medium, campaign or channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRow {
    /// The source, medium, campaign or channel.
    pub name: String,
    /// The number of sessions.
    pub sessions: i64,
    /// The number of sessions with exactly one event.
    pub bounces: i64,
}

/// The sessions that began in a window, by source, medium, campaign and channel. Every list is
/// sorted by sessions, descending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// The number of sessions.
    pub sessions: i64,
    /// The number of sessions with exactly one event.
    pub bounces: i64,
    /// `bounces` / `sessions`, 0 to 1.
    pub bounce_rate: Amount,
    /// By source; sessions without one are `(direct)`.
    pub by_source: Listed<TrafficRow>,
    /// By medium; sessions without one are `(none)`.
    pub by_medium: Listed<TrafficRow>,
    /// By campaign; sessions without one are `(none)`.
    pub by_campaign: Listed<TrafficRow>,
    /// By channel.
    pub by_channel: Listed<TrafficRow>,
}

/// The people who were first seen in one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionCohort {
    /// The Monday of the week, `YYYY-MM-DD`, or the month, `YYYY-MM`.
    pub cohort: String,
    /// The number of identities.
    pub users: u64,
    /// The number of active people by interval, from the cohort's own interval to the current one.
    pub returned: Vec<u64>,
}

/// The selector of an identity in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentitySelector {
    /// An e-mail address that it ever had. If several identities had it, the one seen last.
    Email(String),
    /// Its `user_id`, as sent.
    User(String),
}

/// The activity of an identity in a window, over all projects of the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// `id_…`
    pub identity_id: String,
    /// The number of events.
    pub events: u64,
    /// The number of pageviews.
    pub pageviews: u64,
    /// The number of sessions that began in the window.
    pub sessions: u64,
    /// Their mean duration in seconds.
    pub duration_avg_sec: Amount,
    /// The nearest-rank 90th percentile of their durations, in seconds.
    pub duration_p90_sec: Amount,
    /// The share of these sessions with exactly one event, 0 to 1.
    pub bounce_rate: Amount,
    /// The number of days with events.
    pub active_days: u64,
    /// The time of the first event ever.
    pub first_seen: Instant,
    /// The time of the last event ever.
    pub last_seen: Instant,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
}

/// The number of events of an identity per referrer, or per page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityCounts {
    /// `id_…`
    pub identity_id: String,
    /// Referrers or pages, and their counts.
    pub counts: Listed<(String, u64)>,
}

/// The activity of a company in a range, over all projects of the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyMetrics {
    /// `co_…`
    pub company_id: String,
    /// The most recently reported name.
    pub name: Option<String>,
    /// Its domain, if it has one.
    pub domain: Option<String>,
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub users: u64,
    /// The number of sessions whose entry belongs to the company.
    pub sessions: u64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// The time of the first event ever.
    pub first_seen: Instant,
    /// The time of the last event ever.
    pub last_seen: Instant,
}

/// One of the most active companies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopCompany {
    /// `co_…`
    pub company_id: String,
    /// The most recently reported name.
    pub name: Option<String>,
    /// Its domain, if it has one.
    pub domain: Option<String>,
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub users: u64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
    /// The time of the last event ever.
    pub last_seen: Instant,
}

/// One of a company's most active identified users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUser {
    /// The latest e-mail address, else the `user_id`.
    pub resolved_identifier: String,
    /// `id_…`
    pub identity_id: String,
    /// The `user_id`, as sent.
    pub user_id: Option<String>,
    /// The latest e-mail address.
    pub email: Option<String>,
    /// The number of events at this company in the range.
    pub events: u64,
    /// The time of the last event ever at this company.
    pub last_seen: Instant,
}

/// One of the most active identified identities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopIdentity {
    /// `id_…`
    pub identity_id: String,
    /// The latest e-mail address, else the `user_id`.
    pub resolved_identifier: String,
    /// The `user_id`, as sent.
    pub user_id: Option<String>,
    /// The latest e-mail address.
    pub email: Option<String>,
    /// The number of events in the range.
    pub events: u64,
    /// Orders less refunds of the range, in the organization's currency.
    pub revenue: Amount,
    /// The time of the last event ever.
    pub last_seen: Instant,
}

/// The activity of a group in a range, over all projects of the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetrics {
    /// The type.
    pub group_type: String,
    /// The key, as sent.
    pub group_key: String,
    /// The most recently reported name.
    pub name: Option<String>,
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub users: u64,
    /// The time of the last event ever.
    pub last_seen: Instant,
}

/// The recorded events of a window, by the day of their receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intake {
    /// The number of recorded events.
    pub recorded: u64,
    /// The number of events recorded without consent.
    pub without_consent: u64,
    /// The latest receipt of any recorded event.
    pub last: Option<Instant>,
}

/// The figures of a day from rollups, and the place where recent events begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Today {
    /// The position of the last counted event.
    pub position: u64,
    /// The unique users.
    pub unique_users: u64,
    /// The sessions that began on the day.
    pub sessions: u64,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// The position before the first recent event; `None` if there is none.
    pub before_recent: Option<u64>,
}
