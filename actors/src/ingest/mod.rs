//! Receives events: admission, batching, and the answers to senders.

mod actor;
mod answers;
mod gathering;
mod known_agents;
mod new_event;
mod prepared;
mod receipt;
mod refusal;
mod tracker;

#[cfg(feature = "fault-injection")]
pub(crate) use answers::Return;
pub(crate) use gathering::Gathering;
pub use gathering::Ticket;
pub(crate) use known_agents::with_agent;
pub use new_event::{Field, NewEvent};
pub use prepared::{Origin, Prepared};
pub(crate) use receipt::BatchPlace;
pub use receipt::{BatchReceipt, ImportReceipt, MAX_BATCH_WARNINGS, Receipt, Status};
pub use refusal::{QuotaExceeded, Refusal, TrackError};
pub use tracker::Tracker;

/// The maximum number of events in a batch.
pub const MAX_BATCH_EVENTS: usize = 5_000;
