//! The live figures of watched projects.
//!
//! Nothing is computed for other projects. A watched project is asked for its figures at most ten
//! times a second. Its shard adds each of its events to a [feed](feeds), from which another thread
//! counts them.

mod feeds;
mod frame;
mod minutes;
mod watches;

pub(crate) use feeds::{FeedReader, Feeds, LiveEvent};
pub use frame::{LiveFigures, LiveFrame, LiveMinute, LiveNotification};
pub(crate) use minutes::{RECENT_MS, RecentEvents};
pub use watches::{LiveEnd, LiveState, LiveWatch, MAX_WATCHES};
pub(crate) use watches::{Publisher, Watches};
