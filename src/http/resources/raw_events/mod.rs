//! The recorded events themselves.

mod cursor;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod parameters;
mod row;
