//! The footer of a table: the last bytes of the file, from which the other parts are found.

/// The first and the last bytes of a file.
pub(super) const MAGIC: [u8; 8] = *b"hcsstab1";

/// The size of a footer.
pub(super) const FOOTER_BYTES: usize = 76;

/// Identity, lengths and checksums of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    /// The owner of the set that the table belongs to.
    pub(super) owner: u128,
    /// The number of the table within its set.
    pub(super) id: u64,
    /// The number of keys.
    pub(super) count: u64,
    /// The offset of the index, which is the end of the blocks.
    pub(super) index_at: u64,
    pub(super) index_len: u64,
    pub(super) filter_len: u64,
    pub(super) index_crc: u32,
    pub(super) filter_crc: u32,
}

impl Footer {
    /// Encodes the footer, with its checksum and [`MAGIC`].
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.owner.to_be_bytes());
        for field in [self.id, self.count, self.index_at, self.index_len, self.filter_len] {
            put(&field.to_be_bytes());
        }
        for field in [self.index_crc, self.filter_crc] {
            put(&field.to_be_bytes());
        }
        let end = FOOTER_BYTES - 12;
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_be_bytes());
        bytes[end + 4..].copy_from_slice(&MAGIC);
        bytes
    }

    /// Decodes a footer. Returns `None` unless encoding it again gives the same bytes.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let mut rest = bytes.as_slice();
        let footer = Self {
            owner: u128::from_be_bytes(take(&mut rest)?),
            id: u64::from_be_bytes(take(&mut rest)?),
            count: u64::from_be_bytes(take(&mut rest)?),
            index_at: u64::from_be_bytes(take(&mut rest)?),
            index_len: u64::from_be_bytes(take(&mut rest)?),
            filter_len: u64::from_be_bytes(take(&mut rest)?),
            index_crc: u32::from_be_bytes(take(&mut rest)?),
            filter_crc: u32::from_be_bytes(take(&mut rest)?),
        };
        (bytes == &footer.encode()).then_some(footer)
    }

    /// The length of the file, if the footer's lengths make sense.
    pub(super) fn file_len(&self) -> Option<u64> {
        let parts = [self.index_at, self.index_len, self.filter_len, FOOTER_BYTES as u64];
        parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part))
    }
}

/// Splits the next `N` bytes off `rest`.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}
