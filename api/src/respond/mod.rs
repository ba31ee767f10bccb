//! Shapes answers: errors, entity tags, times and exact decimals.

pub mod answer;
pub mod code;
pub mod error;
pub mod etag;
pub mod kept;
pub mod sent;
pub mod slices;
