//! Funnels: how many people, or accounts, did one step after another.

mod any_order;
mod chain;
mod event;
mod sequence;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use crate::filter::Predicate;
use crate::ids::RecordKey;
use crate::intake::fields::{Field, Scalar};
use crate::money::Amount;
use crate::named_values;
use crate::queries::{EntityLevel, EntityName, Unconverted};
use crate::time::{Instant, Timezone, Window};
use crate::versions::Depends;

use super::question::ComparedWindows;

pub use any_order::EarliestChains;
pub use chain::{Chain, ReachedDepth};
pub use event::{ChainLink, StepEvent};
pub use sequence::SequenceFold;

/// The maximum number of steps.
pub const MAX_STEPS: usize = 12;
/// The maximum length of a chain, in days.
pub const MAX_CHAIN_DAYS: u16 = 90;
const DAY_MS: i64 = 86_400_000;

named_values! {
    /// How the steps of a chain follow each other.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum StepOrder by as_str {
        /// Other events may lie between.
        #[default]
        Loose = "loose",
        /// The next interactive event must fit the next step.
        Strict = "strict",
        /// The steps may come in any order.
        Any = "any",
    }
}

/// How long a chain may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainLength {
    /// So many milliseconds from its first event.
    Within(i64),
    /// As long as the session of its first event.
    Session,
}

impl ChainLength {
    /// The length of a question that names none.
    pub const DEFAULT: Self = Self::Within(7 * DAY_MS);
    /// The longest length.
    pub const MAX_MS: i64 = MAX_CHAIN_DAYS as i64 * DAY_MS;

    /// Returns the instant of the last event that a chain which begins in `window` can have, if it
    /// has one.
    pub fn until(self, window: Window, timezone: Timezone) -> Option<Instant> {
        match self {
            Self::Within(length) => Some(Instant(timezone.end_of(window.end).0 - 1 + length)),
            Self::Session => None,
        }
    }
}

/// What a chain consists of, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelSteps {
    /// The predicates of the steps.
    pub steps: Vec<Predicate>,
    /// How long a chain may take.
    pub length: ChainLength,
    /// How the steps follow each other.
    pub order: StepOrder,
    /// Whether people or accounts do the steps.
    pub level: EntityLevel,
}

/// Asks how many people, or accounts, did so many steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelQuestion {
    /// The days on which chains begin.
    pub windows: ComparedWindows,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The steps.
    pub steps: FunnelSteps,
    /// The property of the event that began a chain, by which rows are divided.
    pub breakdown: Option<Field>,
    /// The maximum number of rows.
    pub limit: usize,
}

impl FunnelQuestion {
    /// Returns the dependencies of the answer.
    pub fn depends(&self) -> Depends {
        let ChainLength::Within(length) = self.steps.length else { return Depends::Everything };
        if self.steps.level == EntityLevel::Account {
            return Depends::Everything;
        }
        let days = i32::try_from(length.div_euclid(DAY_MS)).unwrap_or(i32::from(MAX_CHAIN_DAYS)) + 2;
        let longer = |window: Window| Window { end: window.end.plus(days), ..window };
        let windows = ComparedWindows { window: longer(self.windows.window), previous: self.windows.previous.map(longer) };
        self.steps
            .steps
            .iter()
            .fold(self.predicate.depends_at_least(windows.depends()), |depends, step| step.depends_at_least(depends))
    }
}

/// The times of a step, or of whole chains, in milliseconds: nearest ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTimes {
    /// The median.
    pub median_ms: i64,
    /// The third quartile.
    pub p75_ms: i64,
}

/// The figures of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepFigures {
    /// The people or accounts whose chains reach it.
    pub entities: u64,
    /// The times from the step before; `None` for the first step, and where nobody reached it.
    pub times: Option<StepTimes>,
    /// Orders less refunds of its events in these chains, in the project's currency.
    pub revenue: Amount,
}

/// A value, and how many of its people or accounts reached each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelRow {
    /// The value.
    pub value: Scalar<'static>,
    /// For each step.
    pub steps: Vec<u64>,
}

/// The answer to a [`FunnelQuestion`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Funnel {
    /// The figures of the steps.
    pub steps: Vec<StepFigures>,
    /// The times from the first step to the last.
    pub times: Option<StepTimes>,
    /// How many reached each step in the comparison window.
    pub previous: Option<Vec<u64>>,
    /// The largest rows.
    pub rows: Vec<FunnelRow>,
    /// How many rows there are.
    pub total_rows: u64,
    /// The money of the chains that is left out because it has no rate.
    pub unconverted: Unconverted,
}

/// Asks who reached a step, or stopped at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelPeopleQuestion {
    /// The days on which chains begin.
    pub window: Window,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The steps.
    pub steps: FunnelSteps,
    /// The step, from 0.
    pub step: usize,
    /// Whether only those who went no further are wanted.
    pub dropped: bool,
    /// The last place of the page before.
    pub after: Option<PeoplePlace>,
    /// The maximum number of people or accounts.
    pub limit: usize,
}

/// A place in a list of people or accounts: the latest first, then by entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeoplePlace {
    /// When the step was done.
    pub at: Reverse<Instant>,
    /// The key of the identity or company.
    pub key: RecordKey,
    /// Whether it is a company.
    pub is_company: bool,
}

/// One who reached a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelPerson {
    /// The place in the list.
    pub place: PeoplePlace,
    /// The name; `None` if it was erased meanwhile.
    pub name: Option<EntityName>,
}

/// The answer to a [`FunnelPeopleQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelPeople {
    /// In order.
    pub people: Vec<FunnelPerson>,
    /// Whether more follow.
    pub has_more: bool,
}
