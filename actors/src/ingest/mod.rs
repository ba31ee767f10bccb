//! From a request body to a receipt: admission, batching and recording of events.

mod actor;
mod admission_gate;
mod tracker;

#[cfg(feature = "fault-injection")]
pub(crate) use actor::Return;
pub use actor::TrackError;
pub(crate) use actor::{IngestActor, Ticket, Track};
pub use admission_gate::{Gate, Holder, Permit, Refused};
pub use tracker::{BatchReceipt, Field, MAX_BATCH_EVENTS, NewEvent, Origin, Prepared, Receipt, Refusal, Status};
