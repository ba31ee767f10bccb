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
