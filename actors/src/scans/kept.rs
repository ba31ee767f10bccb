//! What a view keeps of a question's answers.

use headcount_domain::aggregate::{Aggregate, Grouping};
use headcount_domain::figures::{
    Breakdown, BreakdownQuestion, BreakdownRow, EventFigures, Funnel, FunnelQuestion, GoalFigures, GoalsQuestion, GoalsReport,
    JourneyLink, JourneyNode, Journeys, JourneysQuestion, Report, ReportQuestion, StepFigures,
};
use headcount_domain::intake::fields::Scalar;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::{Day, Depends, Position, Predicate, Window};

use super::kept_figures::KeptFigures;

/// A question whose answer can be kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeptQuestion {
    Aggregate { window: Window, predicate: Predicate, grouping: Grouping, limit: usize },
    UniqueUsers { window: Window, predicate: Predicate },
    Report(ReportQuestion),
    Breakdown(BreakdownQuestion),
    Goals(GoalsQuestion),
    Funnel(FunnelQuestion),
    Journeys(JourneysQuestion),
}

impl KeptQuestion {
    /// What its answer depends on.
    pub(super) fn depends(&self) -> Depends {
        match self {
            Self::Aggregate { window, predicate, grouping, .. } if grouping.is_by_session() => {
                predicate.depends_at_least(Depends::on_sessions(*window))
            }
            Self::Aggregate { window, predicate, .. } | Self::UniqueUsers { window, predicate } => predicate.depends(*window),
            Self::Report(ReportQuestion { windows, predicate, .. })
            | Self::Breakdown(BreakdownQuestion { windows, predicate, .. })
            | Self::Goals(GoalsQuestion { windows, predicate, .. }) => predicate.depends_at_least(windows.depends()),
            Self::Funnel(question) => question.depends(),
            Self::Journeys(question) => question.depends(),
        }
    }

    /// The first day whose events it needs.
    pub(super) fn start(&self) -> Day {
        match self {
            Self::Aggregate { window, .. }
            | Self::UniqueUsers { window, .. }
            | Self::Journeys(JourneysQuestion { window, .. }) => window.start,
            Self::Report(ReportQuestion { windows, .. })
            | Self::Breakdown(BreakdownQuestion { windows, .. })
            | Self::Goals(GoalsQuestion { windows, .. })
            | Self::Funnel(FunnelQuestion { windows, .. }) => windows.start(),
        }
    }

    /// Its approximate memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        let of_goals = |goals: &[Predicate]| goals.iter().map(|goal| size_of::<Predicate>() + goal.weight()).sum::<usize>();
        let operands = match self {
            Self::Aggregate { predicate, .. } | Self::UniqueUsers { predicate, .. } => predicate.weight(),
            Self::Report(ReportQuestion { predicate, goal, .. }) => predicate.weight() + of_goals(goal.as_slice()),
            Self::Breakdown(BreakdownQuestion { predicate, goal, search, .. }) => {
                predicate.weight() + of_goals(goal.as_slice()) + search.weight()
            }
            Self::Goals(GoalsQuestion { predicate, goals, .. }) => predicate.weight() + of_goals(goals),
            Self::Funnel(FunnelQuestion { predicate, steps, .. }) => predicate.weight() + of_goals(&steps.steps),
            Self::Journeys(JourneysQuestion { predicate, groups, .. }) => {
                predicate.weight() + groups.iter().map(|group| group.name.len() + size_of_val(group)).sum::<usize>()
            }
        };
        size_of::<Self>() + operands
    }
}

/// The answer to a [`KeptQuestion`].
#[derive(Debug, Clone)]
pub(super) enum KeptAnswer {
    Aggregate(Aggregate),
    UniqueUsers(UniqueUsers),
    Report(Report),
    Breakdown(Breakdown),
    Goals(GoalsReport),
    Funnel(Funnel),
    Journeys(Journeys),
}

fn weight_of_journeys(Journeys { steps, links, top, unconverted, .. }: &Journeys) -> usize {
    let of_value = |value: &Option<String>| value.as_ref().map_or(0, String::len);
    let nodes = steps.iter().flatten().map(|node| size_of::<JourneyNode>() + of_value(&node.value));
    let links = links.iter().map(|link| size_of::<JourneyLink>() + of_value(&link.from) + of_value(&link.to));
    let values = top.iter().flat_map(|path| &path.values).map(|value| size_of::<String>() + value.len());
    nodes.chain(links).chain(values).sum::<usize>() + unconverted.len() * 128
}

fn text_bytes(value: &Scalar<'_>) -> usize {
    if let Scalar::Text(text) = value { text.len() } else { 32 }
}

impl KeptAnswer {
    /// Its approximate memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Aggregate(aggregate) => {
                aggregate.rows.iter().map(|row| text_bytes(&row.value)).sum::<usize>() + aggregate.rows.len() * 128
            }
            Self::UniqueUsers(users) => users.series.len() * size_of::<(Day, u64)>(),
            Self::Report(Report { current, previous, unconverted }) => {
                let buckets = current.buckets.len() + previous.as_ref().map_or(0, |previous| previous.buckets.len());
                buckets * size_of::<EventFigures>() + unconverted.len() * 128
            }
            Self::Breakdown(Breakdown { rows, unconverted, .. }) => {
                let texts: usize = rows.iter().map(|row| text_bytes(&row.value)).sum();
                texts + rows.len() * size_of::<BreakdownRow>() + unconverted.len() * 128
            }
            Self::Goals(GoalsReport { current, unconverted, .. }) => {
                2 * current.goals.len() * size_of::<GoalFigures>() + unconverted.len() * 128
            }
            Self::Funnel(Funnel { steps, rows, unconverted, .. }) => {
                let texts: usize = rows.iter().map(|row| text_bytes(&row.value)).sum();
                texts + steps.len() * size_of::<StepFigures>() + rows.len() * (8 * steps.len() + 64) + unconverted.len() * 128
            }
            Self::Journeys(journeys) => weight_of_journeys(journeys),
        }
    }
}

/// What an answer is an answer to, besides its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptVersion {
    /// The version of the question's days.
    pub(super) days: Position,
    /// What was read.
    pub(super) data: ReadData,
}

/// Tells apart what scans read. Figures can be advanced while it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReadData {
    /// The number of events that were set aside: one of them may have been counted.
    pub(super) set_aside: usize,
    /// See [`ReadLog::resumed`](headcount_storage::log::ReadLog::resumed): events may have been
    /// counted that are lost.
    pub(super) resumed: u64,
    /// The erasures that are reflected: events of the erased may have been counted while this
    /// machine had the project before.
    pub(super) erasures: u64,
    /// The floor: events below it may have been counted, and the entries of sessions read.
    pub(super) floor: Option<Day>,
}

/// See the module.
#[derive(Default)]
pub(super) struct ViewState {
    /// The last answer with the position up to which it counts all events, and what it is an answer
    /// to.
    pub(super) answer: Option<(KeptVersion, (KeptAnswer, Position))>,
    pub(super) figures: KeptFigures,
    /// What the figures were counted of.
    pub(super) data: ReadData,
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
