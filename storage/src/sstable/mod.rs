//! Sorted tables: pairs in the order of their keys, in files that never change.

pub(crate) mod block;
pub(crate) mod filter;
pub(crate) mod merge;
pub(crate) mod reader;
pub(crate) mod writer;
