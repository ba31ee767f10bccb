//! What a view keeps of a question's answers.

use headcount_domain::aggregate::{Aggregate, Grouping};
use headcount_domain::filter::Predicate;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::fields::Scalar;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::{Day, Window};

use super::kept_figures::KeptFigures;

/// A question whose answer can be kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeptQuestion {
    Aggregate { window: Window, predicate: Predicate, grouping: Grouping, limit: usize },
    UniqueUsers { window: Window, predicate: Predicate },
}

impl KeptQuestion {
    /// The days that it asks for.
    pub(super) fn window(&self) -> Window {
        match self {
            Self::Aggregate { window, .. } | Self::UniqueUsers { window, .. } => *window,
        }
    }

    /// Its approximate memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        let (Self::Aggregate { predicate, .. } | Self::UniqueUsers { predicate, .. }) = self;
        size_of::<Self>() + predicate.weight()
    }
}

/// The answer to a [`KeptQuestion`].
#[derive(Debug, Clone)]
pub(super) enum KeptAnswer {
    Aggregate(Aggregate),
    UniqueUsers(UniqueUsers),
}

impl KeptAnswer {
    /// Its approximate memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Aggregate(aggregate) => {
                let texts = aggregate.rows.iter().map(|row| if let Scalar::Text(text) = &row.value { text.len() } else { 32 });
                texts.sum::<usize>() + aggregate.rows.len() * 128
            }
            Self::UniqueUsers(users) => users.series.len() * size_of::<(Day, u64)>(),
        }
    }
}

/// What an answer is an answer to, besides its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptVersion {
    /// The version of the question's days.
    pub(super) days: Position,
    /// The number of events that were set aside: one of them may have been counted.
    pub(super) set_aside: usize,
}

/// See the module.
#[derive(Default)]
pub(super) struct ViewState {
    /// The last answer with the position up to which it counts all events, and what it is an answer to.
    pub(super) answer: Option<(KeptVersion, (KeptAnswer, Position))>,
    pub(super) figures: KeptFigures,
    /// The number of events that were set aside when the figures were counted.
    pub(super) set_aside: usize,
}

impl ViewState {
    /// Returns the answer if it is that of `version`.
    pub(super) fn answer_of(&self, version: KeptVersion) -> Option<(KeptAnswer, Position)> {
        self.answer.as_ref().filter(|(of, _)| *of == version).map(|(_, answer)| answer.clone())
    }

    /// Whether there are figures that spare most of a scan.
    pub(super) fn has_figures(&self) -> bool {
        !matches!(self.figures, KeptFigures::None)
    }
}
