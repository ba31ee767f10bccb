//! The figures of chosen events and of their sessions.
//!
//! A window, a name and filters choose the events. A session counts if it began in the window and
//! contains a chosen event; its bounce and duration come from the whole session.

mod breakdown;
mod event_figures;
mod explain;
mod goals;
mod money;
mod question;
mod report_query;

pub use breakdown::{Breakdown, BreakdownRow, RankedRows, Search};
pub use event_figures::{EventFigures, OrderBy};
pub use explain::{
    AttributedTo, ExplainPlace, ExplainQuestion, ExplainedEvent, ExplainedFigure, Explanation, MoneyOutcome, Reason,
};
pub use goals::{GoalFigures, GoalsQuestion, GoalsReport, WindowGoals};
pub use money::CountedMoney;
pub use question::{BreakdownQuestion, ComparedWindows, ReportQuestion};
pub use report_query::{Report, ReportQuery, Series};
