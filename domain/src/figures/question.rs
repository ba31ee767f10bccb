//! Questions for figures of chosen events and their sessions.

use serde::{Deserialize, Serialize};

use super::breakdown::Search;
use super::event_figures::OrderBy;
use crate::filter::Predicate;
use crate::intake::fields::Field;
use crate::time::{Day, Interval, Window};
use crate::versions::{Depends, FigureKind};

/// A window, and the one that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedWindows {
    /// The window.
    pub window: Window,
    /// The one that it is compared with. Both may overlap.
    pub previous: Option<Window>,
}

/// Asks for the figures of a window by time, by hours too, of chosen events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportQuestion {
    /// The days.
    pub windows: ComparedWindows,
    /// The length of the buckets.
    pub interval: Interval,
    /// Which events are chosen.
    pub predicate: Predicate,
}

/// Asks for the figures of a window by the values of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownQuestion {
    /// The days.
    pub windows: ComparedWindows,
    /// The property.
    pub dimension: Field,
    /// Which events are chosen.
    pub predicate: Predicate,
    /// Which values are wanted.
    pub search: Search,
    /// The figure that the rows are ordered by.
    pub order_by: OrderBy,
    /// The most rows.
    pub limit: usize,
}

impl ComparedWindows {
    /// The first day of both windows.
    #[must_use]
    pub fn start(self) -> Day {
        self.previous.map_or(self.window.start, |previous| previous.start.min(self.window.start))
    }

    /// What figures of the events and sessions of these windows depend on.
    #[must_use]
    pub const fn depends(self) -> Depends {
        Depends::TwoWindows(&[FigureKind::Events, FigureKind::Traffic], self.window, self.previous)
    }
}
