//! The base of a project: its saved state at a position, from which a rebuild starts once earlier
//! events are removed.
//!
//! A base is one file in the project's folder. It contains pairs of the store and external ids,
//! which this crate does not interpret, in frames of about a megabyte. A frame is a byte with its
//! kind, the sizes of its contents before and after compression, a CRC-32C of everything, and the
//! contents. The first frame describes the pairs, and the last frame has their number.

mod entry;
mod frame;
mod reader;
mod writer;

pub(crate) use entry::BASE_PREFIX;
pub use entry::{BaseEntry, BaseHeader, BaseName};
pub(crate) use reader::verify_base;
pub use reader::{BaseItem, BaseReader};
pub use writer::BaseWriter;
