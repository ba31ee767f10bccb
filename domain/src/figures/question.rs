//! Questions for figures of chosen events and their sessions.

use serde::{Deserialize, Serialize};

use super::breakdown::Search;
use super::event_figures::OrderBy;
use crate::filter::Predicate;
use crate::intake::fields::Field;
use crate::time::{Day, Interval, Window};
use crate::versions::{Depends, FigureKind};

/// A window and its comparison window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedWindows {
    /// The window.
    pub window: Window,
    /// The comparison window. The two may overlap.
    pub previous: Option<Window>,
}

/// Asks for the figures of chosen events in a window by time, including hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportQuestion {
    /// The days.
    pub windows: ComparedWindows,
    /// The length of the buckets.
    pub interval: Interval,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The predicate of the events that convert.
    pub goal: Option<Predicate>,
}

/// Asks for the figures of chosen events in a window by the values of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownQuestion {
    /// The days.
    pub windows: ComparedWindows,
    /// The property.
    pub dimension: Field,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The predicate of the events that convert.
    pub goal: Option<Predicate>,
    /// The wanted values.
    pub search: Search,
    /// The figure that orders the rows.
    pub order_by: OrderBy,
    /// The maximum number of rows.
    pub limit: usize,
}

impl ComparedWindows {
    /// The first day of both windows.
    pub fn start(self) -> Day {
        self.previous.map_or(self.window.start, |previous| previous.start.min(self.window.start))
    }

    /// Returns the dependencies of figures of the events and sessions of these windows.
    pub const fn depends(self) -> Depends {
        Depends::TwoWindows(&[FigureKind::Events, FigureKind::Traffic], self.window, self.previous)
    }
}
