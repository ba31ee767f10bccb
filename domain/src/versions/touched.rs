//! The figures and days that one event touched, and those that an answer depends on.

use crate::time::{Day, Window};

/// A kind of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureKind {
    /// The events themselves, their identities, and the entries of their sessions.
    Events,
    /// Unique users.
    Users,
    /// Active accounts.
    Accounts,
    /// Revenue and orders.
    Money,
    /// Orders by first and last touch.
    Attribution,
    /// Sessions by channel and touch.
    Traffic,
    /// Cohorts, which have no days.
    Cohorts,
    /// Returning people by cohort; also without days.
    Retention,
    /// Numbers of events and pageviews. [`FigureKind::Traffic`] includes durations of sessions.
    Activity,
}

impl FigureKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Events,
        Self::Users,
        Self::Accounts,
        Self::Money,
        Self::Attribution,
        Self::Traffic,
        Self::Cohorts,
        Self::Retention,
        Self::Activity,
    ];
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();
}

/// The number of entries beyond which duplicates are removed.
const COMPACT_AT: usize = 4096;

/// The figures and days that one event touched.
#[derive(Debug, Default)]
pub struct Touched {
    pub(super) days: Vec<(FigureKind, Day)>,
    /// The figures that are touched on all days.
    whole: [bool; FigureKind::COUNT],
}

impl Touched {
    /// Touches a figure on a day.
    pub fn day(&mut self, figure: FigureKind, day: Day) {
        if self.days.last() == Some(&(figure, day)) {
            return;
        }
        if self.days.len() == self.days.capacity() && self.days.len() >= COMPACT_AT {
            self.days.sort_unstable();
            self.days.dedup();
        }
        self.days.push((figure, day));
    }

    /// Touches a figure on all days.
    pub(crate) fn all_days(&mut self, figure: FigureKind) {
        self.whole[figure as usize] = true;
    }

    /// Removes the days before `first`.
    pub(crate) fn retain_from(&mut self, first: Day) {
        self.days.retain(|(_, day)| *day >= first);
    }

    pub(super) fn whole(&self) -> impl Iterator<Item = FigureKind> {
        FigureKind::ALL.into_iter().filter(|figure| self.whole[*figure as usize])
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.days.clear();
        self.days.shrink_to(COMPACT_AT);
        self.whole = [false; FigureKind::COUNT];
    }
}

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
    pub fn reads_sessions(&self) -> bool {
        match self {
            // A new floor changes everything.
            Self::Everything | Self::Days(..) => false,
            Self::AllDays(figures) | Self::TwoWindows(figures, ..) => figures.contains(&FigureKind::Events),
        }
    }

    /// Returns the dependencies of an answer that is computed from the events of a window, their
    /// identities and their sessions.
    pub fn on_sessions(window: Window) -> Self {
        Self::TwoWindows(&[FigureKind::Events], window, None)
    }

    /// Returns the dependencies of an answer that is computed from the events of a window and their
    /// identities.
    pub fn on_events(window: Window) -> Self {
        Self::Days(&[FigureKind::Events], window)
    }
}
