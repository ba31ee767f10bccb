//! The recorded events themselves.

mod cursor;
pub(crate) mod list;
mod parameters;
mod row;
