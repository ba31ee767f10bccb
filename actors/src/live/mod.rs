//! What happens now in projects that somebody watches.
//!
//! Nothing is computed for other projects, and nothing on the way of an event: a watched project is asked for its figures, at most ten times a second.

mod frame;
mod minutes;
mod watches;

pub use frame::{LiveFigures, LiveFrame, LiveMinute, LiveNotification};
pub(crate) use minutes::{RECENT_MS, RecentEvents};
pub use watches::{LiveEnd, LiveState, LiveWatch, MAX_WATCHES};
pub(crate) use watches::{Publisher, Watches};
