//! What a project's rollups say about a window: typed answers, computed from cells and from nothing else.

mod organization;
mod partial;
mod project;
mod shapes;
mod top_k;

use std::collections::BTreeMap;

pub use organization::company::{company_by_domain, company_by_id, company_top_users, top_companies};
pub use organization::group::{group_metrics, top_groups};
pub use organization::identity::{CountOf, counts, profile};
pub use partial::{Projects, Question, Reader};
pub use project::attribution::{AskAttribution, AskCohorts};
pub use project::traffic::AskTraffic;
pub use shapes::*;

use crate::cells::count_of;
use crate::contribution::Sign;
use crate::facts::MoneySums;
use crate::money::{Amount, Currency, ratio};
use crate::project::Project;
use crate::rollups::distinct;
use crate::time::{Day, Window};

/// Unique users per day, and over the whole window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueUsers {
    /// Every day of the window, with its distinct identities.
    pub series: Vec<(Day, u64)>,
    /// The distinct identities of the whole window: a union, not a sum.
    pub total: u64,
}

/// What could not be converted, by currency: revenue and orders.
pub type Unconverted = BTreeMap<Currency, (Amount, i64)>;

/// Revenue over a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevenueMetrics {
    /// Orders less refunds, in the project's currency.
    pub total_revenue: Amount,
    /// How many orders.
    pub orders: i64,
    /// Average order value: `total_revenue` / `orders`, 0 without orders.
    pub aov: Amount,
    /// `total_revenue` per account that was active in the window, paying or not.
    pub arpa: Amount,
    /// `total_revenue` per identity that was active in the window, paying or not.
    pub arpu: Amount,
    /// What is left out of the totals.
    pub unconverted: Unconverted,
}

/// Revenue by day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevenueSeries {
    /// Every day of the window: revenue and orders.
    pub series: Vec<(Day, Amount, i64)>,
    /// What is left out of the series.
    pub unconverted: Unconverted,
}

impl Project {
    /// Unique users per day of `window`.
    #[must_use]
    pub fn unique_users(&self, window: Window) -> UniqueUsers {
        let cells = &self.rollups.unique_users;
        let series = window.days().map(|day| (day, distinct::on_the_day(cells, day)));
        UniqueUsers { series: series.collect(), total: distinct::total(cells, window) }
    }

    /// Revenue, orders and averages of `window`.
    #[must_use]
    pub fn revenue_metrics(&self, window: Window) -> RevenueMetrics {
        let sums = self.rollups.revenue.sums(window.start, window.end);
        let total_revenue = sums.revenue;
        RevenueMetrics {
            total_revenue,
            orders: sums.orders,
            aov: ratio(total_revenue, count_of(sums.orders)),
            arpa: ratio(total_revenue, distinct::total(&self.rollups.active_accounts, window)),
            arpu: ratio(total_revenue, distinct::total(&self.rollups.unique_users, window)),
            unconverted: sums.unconverted,
        }
    }

    /// Revenue and orders by day of `window`.
    #[must_use]
    pub fn revenue_series(&self, window: Window) -> RevenueSeries {
        let cells = &self.rollups.revenue;
        let mut unconverted = MoneySums::default();
        let series = window.days().map(|day| {
            let sums = cells.sums(day, day);
            unconverted.add(&sums, Sign::Plus);
            (day, sums.revenue, sums.orders)
        });
        RevenueSeries { series: series.collect(), unconverted: unconverted.unconverted }
    }
}
