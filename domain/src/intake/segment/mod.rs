//! Maps Segment's messages to events. `docs/SEGMENT.md` has the table.
//!
//! Messages are read as leniently as events: values of unexpected types count as absent.

mod context;
mod mapped;
mod message;
#[cfg(test)]
mod tests;
mod values;

pub use mapped::Mapped;
pub use message::{Batch, Call, Envelope, Message, write_key};
