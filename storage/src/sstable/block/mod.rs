//! Blocks of a table: consecutive pairs, encoded as one piece of the file.

mod builder;
mod cursor;
mod numbers;
mod prefix;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use builder::BlockBuilder;
pub(super) use cursor::{BlockCursor, find};

/// The encoding of the pairs of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Keys and values of any length; keys may be deleted. The prefix that a key shares with the
    /// one before is left out.
    Prefix,
    /// Keys of one length, and numbers of up to 8 bytes in big endian. A value is read back with or
    /// without leading zeros.
    Numbers,
}

/// A pair as a block encodes it. The ranges are parts of the block.
struct EncodedPair {
    /// How many bytes the key shares with the key before.
    shared: usize,
    /// The rest of the key.
    rest: Range<usize>,
    /// `None`: the key is deleted.
    value: Option<Range<usize>>,
}
