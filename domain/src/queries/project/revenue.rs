//! Revenue of a window.

use crate::cells::count_of;
use crate::contribution::Sign;
use crate::facts::MoneySums;
use crate::money::ratio;
use crate::project::Project;
use crate::queries::answers::{RevenueMetrics, RevenueSeries};
use crate::rollups::distinct;
use crate::time::Window;

impl Project {
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
