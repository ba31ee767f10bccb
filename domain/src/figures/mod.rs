//! The figures of chosen events and of their sessions.
//!
//! A window, a name and filters choose the events. A session counts if it began in the window and
//! contains a chosen event; its bounce and duration come from the whole session.

mod breakdown;
mod event_figures;
mod explain;
mod funnel;
mod goals;
mod journeys;
mod money;
mod question;
mod report_query;

pub use breakdown::{Breakdown, BreakdownRow, RankedRows, Search};
pub use event_figures::{EventFigures, OrderBy};
pub use explain::{
    AttributedTo, ExplainPlace, ExplainQuestion, ExplainedEvent, ExplainedFigure, Explanation, MoneyOutcome, Reason,
};
pub use funnel::{
    Chain, ChainLength, ChainLink, EarliestChains, Funnel, FunnelPeople, FunnelPeopleQuestion, FunnelPerson, FunnelQuestion,
    FunnelRow, FunnelSteps, MAX_CHAIN_DAYS, MAX_STEPS, PeoplePlace, ReachedDepth, SequenceFold, StepEvent, StepFigures,
    StepOrder, StepTimes,
};
pub use goals::{GoalFigures, GoalsQuestion, GoalsReport, WindowGoals};
pub use journeys::{
    JourneyEnd, JourneyLink, JourneyNode, JourneyPath, JourneyRun, JourneySequence, JourneyValue, Journeys, JourneysQuestion,
    MAX_DEPTH, MAX_LINKS, MAX_PATH_GROUPS, PathGroup, SequenceMaker, TOP_SEQUENCES,
};
pub use money::CountedMoney;
pub use question::{BreakdownQuestion, ComparedWindows, ReportQuestion};
pub use report_query::{Report, ReportQuery, Series};
