//! Shapes answers: errors, entity tags and exact decimals.

pub(crate) mod code;
pub(crate) mod decimal;
pub(crate) mod error;
pub(crate) mod etag;
