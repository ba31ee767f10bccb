//! What the answer to a query depends on.

use super::touched::FigureKind;
use crate::time::Window;

/// What the answer to a query about one project depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// On every event.
    Everything,
    /// On some figures, of all days.
    AllDays(&'static [FigureKind]),
    /// On some figures of the days of a window.
    Days(&'static [FigureKind], Window),
    /// On some figures of the days of one window or two.
    TwoWindows(&'static [FigureKind], Window, Option<Window>),
}

impl Depends {
    /// The answer is computed from the events of a window themselves, their identities and their sessions.
    #[must_use]
    pub fn on_events(window: Window) -> Self {
        Self::Days(&[FigureKind::Events], window)
    }
}
