//! Figures by time.

use serde::{Deserialize, Serialize};

use super::event_figures::EventFigures;
use crate::queries::Unconverted;

/// The figures of a window, and of each of its buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The figures of the window. Its unique users are a union, not the sum of the buckets.
    pub totals: EventFigures,
    /// The figures of the buckets, in order.
    pub buckets: Vec<EventFigures>,
}

/// The answer to a [`ReportQuestion`](super::ReportQuestion) or a [`ReportQuery`](super::ReportQuery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The figures of the window.
    pub current: Series,
    /// The figures of the comparison window.
    pub previous: Option<Series>,
    /// The money of the window that is left out because it has no rate.
    pub unconverted: Unconverted,
}
