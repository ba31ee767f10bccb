//! The figures of goals: of the chosen events, the ones that fit each goal.

use crate::filter::Predicate;
use crate::money::Amount;
use crate::queries::Unconverted;

use super::question::ComparedWindows;

/// Asks for the figures of some goals in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalsQuestion {
    /// The days.
    pub windows: ComparedWindows,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The predicates of the goals.
    pub goals: Vec<Predicate>,
}

/// The figures of a goal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoalFigures {
    /// The chosen events that fit.
    pub conversions: u64,
    /// Their distinct identities.
    pub converters: u64,
    /// Their orders less refunds, in the project's currency.
    pub revenue: Amount,
}

/// The figures of goals in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowGoals {
    /// The distinct identities of all chosen events.
    pub unique_users: u64,
    /// The figures of the goals, in the order of the question.
    pub goals: Vec<GoalFigures>,
}

impl WindowGoals {
    /// Returns the figures of `count` goals without conversions.
    pub fn new(count: usize) -> Self {
        Self { unique_users: 0, goals: vec![GoalFigures::default(); count] }
    }
}

/// The answer to a [`GoalsQuestion`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoalsReport {
    /// The figures of the window.
    pub current: WindowGoals,
    /// The figures of the comparison window.
    pub previous: Option<WindowGoals>,
    /// The money of the window's conversions that is left out because it has no rate.
    pub unconverted: Unconverted,
}
