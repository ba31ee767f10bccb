//! The base of a project: its saved state at a position, from which a rebuild goes on once earlier events are no longer kept.
//!
//! A base is one file in the project's folder. Its contents are pairs of the store and external ids, which this crate does not interpret, in
//! frames of about a megabyte: a byte that says what a frame has, the lengths of its contents before and after compression, a CRC-32C of all that,
//! and the contents. The first frame says what the pairs consist of, the last one how many there are.

mod entry;
mod frame;
mod reader;
mod writer;

pub(crate) use entry::BASE_PREFIX;
pub use entry::{BaseEntry, BaseHeader, BaseName};
pub(crate) use reader::verify_base;
pub use reader::{BaseItem, BaseReader};
pub use writer::BaseWriter;
