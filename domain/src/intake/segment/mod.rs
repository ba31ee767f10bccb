//! Segment's messages: what each becomes as an event. `docs/SEGMENT.md` has the table.
//!
//! A message is read as leniently as any event: what has another type than expected is as if absent.

mod context;
mod mapped;
mod message;
mod metadata;
mod money;
#[cfg(test)]
mod tests;
mod values;

pub use mapped::Mapped;
pub use message::{Batch, Call, Envelope, Message, write_key};
