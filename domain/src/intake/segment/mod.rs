//! Segment's messages: what each becomes as an event. `docs/SEGMENT.md` has the table.
//!
//! A message is read leniently where SDKs and their users put what they like (`context`), and strictly where a wrong value would
//! change a figure: ids, times and money.

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
