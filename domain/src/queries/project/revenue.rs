//! Revenue of a window.

use serde::{Deserialize, Serialize};

use crate::cells::count_of;
use crate::contribution::Sign;
use crate::facts::MoneySums;
use crate::fault::Fault;
use crate::money::ratio;
use crate::project::Project;
use crate::queries::answers::{RevenueMetrics, RevenueSeries};
use crate::queries::partial::{Query, Reader};
use crate::records::Source;
use crate::rollups::distinct;
use crate::time::Window;
use crate::versions::{Depends, FigureKind};

/// Asks for the revenue, orders and averages of a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RevenueMetricsQuery {
    /// The days.
    pub window: Window,
}

impl Query for RevenueMetricsQuery {
    type Partial = RevenueMetrics;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Money, FigureKind::Accounts, FigureKind::Users], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<RevenueMetrics, Fault> {
        Ok(reader.project.revenue_metrics(self.window))
    }
}

/// Asks for the revenue and orders of a window by day.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RevenueSeriesQuery {
    /// The days.
    pub window: Window,
}

impl Query for RevenueSeriesQuery {
    type Partial = RevenueSeries;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Money], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<RevenueSeries, Fault> {
        Ok(reader.project.revenue_series(self.window))
    }
}

impl Project {
    /// Returns the revenue, orders and averages of `window`.
    pub fn revenue_metrics(&self, window: Window) -> RevenueMetrics {
        let sums = self.rollups.revenue.sums(window.start, window.end);
        let total_revenue = sums.revenue;
        RevenueMetrics {
            total_revenue,
            orders: sums.orders,
            aov: ratio(total_revenue, count_of(sums.orders)),
            arpa: ratio(total_revenue, distinct::total(&self.rollups.active_accounts, window)),
            arpu: ratio(total_revenue, distinct::total(&self.rollups.unique_users, window)),
            unconverted: sums.unconverted.to_map(),
        }
    }

    /// Returns the revenue and orders of `window` by day.
    pub fn revenue_series(&self, window: Window) -> RevenueSeries {
        let cells = &self.rollups.revenue;
        let mut unconverted = MoneySums::default();
        let series = window.days().map(|day| {
            let sums = cells.sums(day, day);
            unconverted.add(&sums, Sign::Plus);
            (day, sums.revenue, sums.orders)
        });
        RevenueSeries { series: series.collect(), unconverted: unconverted.unconverted.to_map() }
    }
}
