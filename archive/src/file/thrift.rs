//! Reads Thrift's compact protocol, to check everything that makes the Parquet library allocate
//! memory.

/// The maximum number of elements of a list, except the list of row groups.
const MAX_LIST: u64 = 64;
/// The maximum nesting of structs and lists.
const MAX_DEPTH: u32 = 12;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The field of a footer with the list of row groups (parquet.thrift, `FileMetaData`).
const ROW_GROUPS: i64 = 4;

/// The unread bytes. Every method returns `None` if they are invalid.
pub(super) struct ThriftReader<'b> {
    /// The unread bytes.
    pub(super) rest: &'b [u8],
}

/// The header of a page, as [`ChunkPages`](super::page::ChunkPages) writes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// The size of its data before compression.
    pub(super) uncompressed: usize,
    /// The size of its data.
    pub(super) compressed: usize,
    /// The number of values.
    pub(super) values: u64,
    /// The number of the encoding.
    pub(super) encoding: i64,
    /// Whether it is a dictionary.
    pub(super) is_dictionary: bool,
}

impl<'b> ThriftReader<'b> {
    pub(super) fn new(rest: &'b [u8]) -> Self {
        Self { rest }
    }

    /// Checks that a footer has at most `row_groups` row groups, and no other long list.
    pub(super) fn footer(&mut self, row_groups: u64) -> Option<()> {
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            if field == ROW_GROUPS && kind == LIST {
                self.list(row_groups, 1)?;
            } else {
                self.skip(kind, 1)?;
            }
        }
        Some(())
    }

    /// Reads the header of a page.
    pub(super) fn page(&mut self) -> Option<PageHeader> {
        let (mut header, mut last) = (PageHeader::default(), 0);
        let (mut kind, mut has_values) = (None, false);
        while let Some(field) = self.field(&mut last)? {
            match field {
                (1, I32) => kind = Some(self.int()?),
                (2, I32) => header.uncompressed = usize::try_from(self.int()?).ok()?,
                (3, I32) => header.compressed = usize::try_from(self.int()?).ok()?,
                (4, I32) => drop(self.int()?),
                (5 | 7, STRUCT) if !has_values => {
                    header.is_dictionary = field.0 == 7;
                    (header.values, header.encoding) = self.values()?;
                    has_values = true;
                }
                _ => return None,
            }
        }
        // The kinds of pages of version 1: data and dictionaries.
        let is_kind = kind == Some(if header.is_dictionary { 2 } else { 0 });
        (is_kind && has_values).then_some(header)
    }

    /// Reads the number of values and the encoding of a page.
    fn values(&mut self) -> Option<(u64, i64)> {
        let (mut values, mut encoding, mut last) = (None, None, 0);
        while let Some((field, kind)) = self.field(&mut last)? {
            match (field, kind) {
                (1, I32) => values = u64::try_from(self.int()?).ok(),
                (2, I32) => encoding = Some(self.int()?),
                (3 | 4, I32) => drop(self.int()?),
                (3, TRUE | FALSE) => {}
                _ => return None,
            }
        }
        Some((values?, encoding?))
    }

    /// Reads the header of a field. `Some(None)` at the end of the struct.
    fn field(&mut self, last: &mut i64) -> Option<Option<(i64, u8)>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *last = match header >> 4 {
            0 => self.int()?,
            delta => last.checked_add(i64::from(delta))?,
        };
        Some(Some((*last, header & 0x0f)))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(drop),
            I16 | I32 | I64 => self.int().map(drop),
            DOUBLE => self.bytes(8).map(drop),
            BINARY => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.bytes(length).map(drop)
            }
            LIST => self.list(MAX_LIST, depth + 1),
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn list(&mut self, most: u64, depth: u32) -> Option<()> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        if length > most {
            return None;
        }
        for _ in 0..length {
            match header & 0x0f {
                // In lists, a boolean takes a byte.
                TRUE | FALSE => drop(self.byte()?),
                kind => self.skip(kind, depth + 1)?,
            }
        }
        Some(())
    }

    fn int(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Reads an unsigned number of seven bits per byte.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads `length` bytes.
    pub(super) fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}
