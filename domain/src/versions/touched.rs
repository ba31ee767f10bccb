//! The figures and days that one event touched.

use crate::time::Day;

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
    days: Vec<(FigureKind, Day)>,
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
    pub fn all_days(&mut self, figure: FigureKind) {
        self.whole[figure as usize] = true;
    }

    /// Removes the days before `first`.
    pub(crate) fn retain_from(&mut self, first: Day) {
        self.days.retain(|(_, day)| *day >= first);
    }

    pub(super) fn days(&self) -> &[(FigureKind, Day)] {
        &self.days
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
