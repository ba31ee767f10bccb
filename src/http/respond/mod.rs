//! Shapes answers: errors, entity tags and exact decimals.

pub mod decimal;
pub mod error;
pub mod etag;
