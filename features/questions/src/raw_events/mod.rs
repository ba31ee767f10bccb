//! The recorded events themselves.

pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod parameters;
mod row;
