//! Frames, the units of a base file.

/// The length of the head of a frame.
pub(super) const HEAD_BYTES: usize = 13;
/// The size of the contents at which a frame ends.
pub(super) const FRAME_BYTES: usize = 1 << 20;
/// The maximum size of the contents: a frame that is nearly full, and the largest pair of the
/// store.
const MAX_BYTES: usize = FRAME_BYTES + (65 << 20);

/// The kind of a frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Header,
    Pairs,
    Ids,
    End,
}

impl FrameKind {
    const ALL: [Self; 4] = [Self::Header, Self::Pairs, Self::Ids, Self::End];

    fn number(self) -> u8 {
        match self {
            Self::Header => 0,
            Self::Pairs => 1,
            Self::Ids => 2,
            Self::End => 3,
        }
    }
}

/// Returns a frame with these contents, compressed by `compressor`.
pub(super) fn encode(kind: FrameKind, contents: &[u8], compressor: &mut zstd::bulk::Compressor<'_>) -> std::io::Result<Vec<u8>> {
    let packed = compressor.compress(contents)?;
    let length = |length: usize| u32::try_from(length).map_err(std::io::Error::other);
    let mut frame = Vec::with_capacity(HEAD_BYTES + packed.len());
    frame.push(kind.number());
    frame.extend_from_slice(&length(contents.len())?.to_le_bytes());
    frame.extend_from_slice(&length(packed.len())?.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame), &packed);
    frame.extend_from_slice(&checksum.to_le_bytes());
    frame.extend_from_slice(&packed);
    Ok(frame)
}

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    kind: FrameKind,
    contents: usize,
    pub(super) packed: usize,
    /// The CRC-32C of the head.
    begun: u32,
    checksum: u32,
}

impl FrameHead {
    /// Decodes the head of a frame; `None` if it is invalid.
    pub(super) fn decode(bytes: [u8; HEAD_BYTES]) -> Option<Self> {
        let [number, rest @ ..] = bytes;
        let mut numbers = rest.chunks_exact(4).filter_map(|four| four.try_into().ok()).map(u32::from_le_bytes);
        let (contents, packed, checksum) = (numbers.next()? as usize, numbers.next()? as usize, numbers.next()?);
        let kind = FrameKind::ALL.into_iter().find(|kind| kind.number() == number)?;
        let begun = crc32c::crc32c(&bytes[..HEAD_BYTES - 4]);
        (contents <= MAX_BYTES).then_some(Self { kind, contents, packed, begun, checksum })
    }

    /// Checks and decompresses the contents; `None` if they have changed.
    pub(super) fn unpack(self, packed: &[u8]) -> Option<(FrameKind, Vec<u8>)> {
        if crc32c::crc32c_append(self.begun, packed) != self.checksum {
            return None;
        }
        let contents = zstd::bulk::decompress(packed, self.contents).ok()?;
        (contents.len() == self.contents).then_some((self.kind, contents))
    }
}
