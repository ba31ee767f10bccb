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
    /// On some figures of the days of one window or two. Sessions of their events may have begun before.
    TwoWindows(&'static [FigureKind], Window, Option<Window>),
}

impl Depends {
    /// Whether the answer is computed from events and their sessions, of which those that began below the project's floor have lost their entries.
    #[must_use]
    pub fn reads_sessions(&self) -> bool {
        match self {
            // The record of a floor is one of everything.
            Self::Everything | Self::Days(..) => false,
            Self::AllDays(figures) | Self::TwoWindows(figures, ..) => figures.contains(&FigureKind::Events),
        }
    }

    /// The answer is computed from the events of a window, their identities and their sessions.
    #[must_use]
    pub fn on_sessions(window: Window) -> Self {
        Self::TwoWindows(&[FigureKind::Events], window, None)
    }

    /// The answer is computed from the events of a window themselves, and their identities.
    #[must_use]
    pub fn on_events(window: Window) -> Self {
        Self::Days(&[FigureKind::Events], window)
    }
}
