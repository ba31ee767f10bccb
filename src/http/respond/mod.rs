//! Shapes answers: errors, entity tags, times and exact decimals.

pub(crate) mod answer;
pub(crate) mod code;
pub(crate) mod error;
pub(crate) mod etag;
pub(crate) mod kept;
pub(crate) mod page_policy;
pub(crate) mod rate_limit;
