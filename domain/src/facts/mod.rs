//! The facts of one entity, from which its contributions to every rollup are computed.
//!
//! Facts grow only by addition: an event adds the smallest facts, and a link of two identities adds
//! their facts. So the order of arrival doesn't matter. The facts of a company can also be taken
//! out again, item by item.

mod by_currency;
mod changes;
mod daily_count;
mod day;
mod dirty_range;
mod entity;
mod group_ref;
mod lists;
mod load;
mod order;
mod recut;
mod runs;
mod session;

pub use crate::moment::Moment;
pub use by_currency::ByCurrency;
pub use daily_count::{CountKey, DailyCount};
pub use day::{DayEntry, GroupDay, MoneySums, SeenOnDay, Sums};
pub use dirty_range::{DirtyRange, Span, Times};
pub use entity::Facts;
pub use group_ref::GroupRef;
pub use lists::{FactsPage, TouchEnds};
pub use load::LoadFactsPage;
pub use order::Order;
pub use recut::Recut;
pub use session::{LaterEvents, SESSION_GAP_MS, Session, Touch, TouchAt, TouchEvent};
