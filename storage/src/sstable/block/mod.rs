//! Blocks of a table: consecutive pairs, encoded as one piece of the file.

mod builder;
mod cursor;
mod encoding;
mod numbers;
mod pair;
mod prefix;

#[cfg(test)]
mod tests;

pub(super) use builder::BlockBuilder;
pub(super) use cursor::{BlockCursor, find};
pub(crate) use encoding::Encoding;
