use std::ops::Range;

/// A pair as a block encodes it. The ranges are parts of the block.
pub(super) struct EncodedPair {
    /// How many bytes the key shares with the key before.
    pub(super) shared: usize,
    /// The rest of the key.
    pub(super) rest: Range<usize>,
    /// `None`: the key is deleted.
    pub(super) value: Option<Range<usize>>,
}
