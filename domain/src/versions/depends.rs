//! The dependencies of an answer.

use super::touched::FigureKind;
use crate::time::Window;

/// The dependencies of the answer to a query about one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// On every event.
    Everything,
    /// On some figures, of all days.
    AllDays(&'static [FigureKind]),
    /// On some figures of the days of a window.
    Days(&'static [FigureKind], Window),
    /// On some figures of the days of one or two windows. Sessions of their events may have begun
    /// before.
    TwoWindows(&'static [FigureKind], Window, Option<Window>),
}

impl Depends {
    /// Whether the answer is computed from events and their sessions. Sessions that began below the
    /// project's floor have lost their entries.
    #[must_use]
    pub fn reads_sessions(&self) -> bool {
        match self {
            // A new floor changes everything.
            Self::Everything | Self::Days(..) => false,
            Self::AllDays(figures) | Self::TwoWindows(figures, ..) => figures.contains(&FigureKind::Events),
        }
    }

    /// Returns the dependencies of an answer that is computed from the events of a window, their
    /// identities and their sessions.
    #[must_use]
    pub fn on_sessions(window: Window) -> Self {
        Self::TwoWindows(&[FigureKind::Events], window, None)
    }

    /// Returns the dependencies of an answer that is computed from the events of a window and their
    /// identities.
    #[must_use]
    pub fn on_events(window: Window) -> Self {
        Self::Days(&[FigureKind::Events], window)
    }
}
