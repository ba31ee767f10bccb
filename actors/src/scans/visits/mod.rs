//! Figures of chosen events and of the sessions that hold them: by time, by the values of a
//! property, by goals, and of their order in funnels and journeys.
//!
//! Each is one pass. Each event carries through the sorts of
//! [`Sessions`](super::sessions::Sessions) what it adds, and what it says of its session if it is
//! the first or the last of it. A session is known at its end: only then its chosen events are
//! counted.

mod breakdown;
mod carried;
mod detail;
mod events;
mod fold;
mod funnel;
mod goal_set;
mod goal_sums;
mod goals;
mod journeys;
mod people;
mod report;
mod rows;

pub(super) use breakdown::breakdown;
pub(super) use carried::Carried;
pub(super) use detail::{Detail, WantedDetails};
pub(super) use events::{VisitQuestion, VisitWindow};
pub(super) use fold::{CountedIdentity, CountedOwner, CountedSession, VisitCounts};
pub(super) use funnel::funnel;
pub(super) use goal_set::GoalSet;
pub(super) use goal_sums::GoalSums;
pub(super) use goals::goals;
pub(super) use journeys::journeys;
pub(super) use people::{find_people, visit_chosen};
pub(super) use report::report;
