//! Figures by time.

use serde::{Deserialize, Serialize};

use super::event_figures::EventFigures;
use crate::queries::Unconverted;

/// The figures of a window, and of each of its buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The figures of the window. Its unique users are a union, and not the sum of those of the buckets.
    pub totals: EventFigures,
    /// The figures of the buckets, in order.
    pub buckets: Vec<EventFigures>,
}

/// The answer to a [`ReportQuestion`](super::ReportQuestion) or a [`ReportQuery`](super::ReportQuery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The figures of the window.
    pub current: Series,
    /// Those of the window that it is compared with.
    pub previous: Option<Series>,
    /// The money of the window that is left out for lack of a rate.
    pub unconverted: Unconverted,
}
