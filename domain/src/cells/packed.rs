//! A part of a rollup's rows: sorted, bounded in size, saved as one value, and as compact in memory
//! as on disk.
//!
//! All rows of a part have the same length. The common prefix of all keys is stored once, and each
//! column of values is as wide as its largest number requires. So a row with a small counter takes
//! only a few bytes, whatever its key.

use std::fmt;
use std::ops::Range;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The maximum length of a key, in bytes.
pub const MAX_KEY: usize = 24;
/// The maximum number of columns of a value.
pub const MAX_COLUMNS: usize = 4;

/// A key in an order-preserving encoding, padded with zeros.
pub type KeyBytes = [u8; MAX_KEY];
/// A value, as unsigned numbers.
pub type Columns = [u128; MAX_COLUMNS];

/// The maximum width of a column, in bytes.
const WIDEST: u8 = 16;
/// The header of a saved part: the lengths of the key and the prefix, and the widths of the
/// columns.
const HEADER: usize = 2 + MAX_COLUMNS;

/// A part of a rollup's rows; see the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Packed {
    rows: Vec<u8>,
    count: u32,
    /// The common prefix of all keys; only the first `prefix_len` bytes are used.
    prefix: KeyBytes,
    prefix_len: u8,
    key_len: u8,
    widths: [u8; MAX_COLUMNS],
    /// The length of a row: the rest of its key, and its columns.
    stride: u16,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("rows", &self.count).field("bytes", &self.rows.len()).finish_non_exhaustive()
    }
}

/// Returns the first `len` bytes, at most 8, as an integer with the same order.
#[inline]
fn big_endian(bytes: &[u8], len: usize) -> u64 {
    match bytes.first_chunk::<8>() {
        // The shift removes the bytes that follow.
        Some(_) if len == 0 => 0,
        Some(bytes) => u64::from_be_bytes(*bytes) >> (64 - 8 * len.min(8)),
        None => bytes.iter().take(len).fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Returns a mask of the lowest `width` bytes; `width` is 1 to 8.
#[inline]
fn low_bytes(width: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(width.clamp(1, 8)))
}

/// Reads the number of `width` bytes, 1 to 8, at the beginning of `bytes`.
#[inline]
fn read_short(bytes: &[u8], width: u8) -> u64 {
    match bytes.first_chunk::<8>() {
        // What follows is not part of it.
        Some(bytes) => u64::from_le_bytes(*bytes) & low_bytes(width),
        None => bytes.iter().take(usize::from(width)).rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Writes a number of `width` bytes, 1 to 8, at the beginning of `bytes`.
#[inline]
fn write_short(bytes: &mut [u8], width: u8, number: u64) {
    match bytes.first_chunk_mut::<8>() {
        Some(bytes) => {
            // Preserve the bytes that follow.
            let kept = u64::from_le_bytes(*bytes) & !low_bytes(width);
            *bytes = (kept | (number & low_bytes(width))).to_le_bytes();
        }
        None => bytes.iter_mut().zip(number.to_le_bytes()).take(usize::from(width)).for_each(|(to, from)| *to = from),
    }
}

/// Returns the number of bytes that a number requires.
fn width(number: u128) -> u8 {
    let bits = u128::BITS - number.leading_zeros();
    u8::try_from(bits.div_ceil(8)).unwrap_or(WIDEST)
}

impl Packed {
    /// Creates a part with one row, whose key has `key_len` bytes.
    pub fn new(key_len: usize, key: &KeyBytes, columns: &Columns) -> Self {
        let key_len = u8::try_from(key_len.min(MAX_KEY)).unwrap_or_default();
        let mut part = Self::empty(*key, key_len, key_len, columns.map(width));
        part.count = 1;
        part.rows = vec![0; part.stride()];
        part.write(0, key, columns);
        part
    }

    /// Creates a part without rows.
    fn empty(prefix: KeyBytes, prefix_len: u8, key_len: u8, widths: [u8; MAX_COLUMNS]) -> Self {
        let value: u16 = widths.iter().map(|width| u16::from(*width)).sum();
        let stride = u16::from(key_len - prefix_len) + value;
        Self { rows: Vec::new(), count: 0, prefix, prefix_len, key_len, widths, stride }
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the length of a key.
    pub fn key_len(&self) -> usize {
        usize::from(self.key_len)
    }

    /// Returns the number of bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of bytes allocated for the rows.
    pub fn capacity(&self) -> usize {
        self.rows.capacity()
    }

    fn suffix_len(&self) -> usize {
        usize::from(self.key_len - self.prefix_len)
    }

    fn stride(&self) -> usize {
        usize::from(self.stride)
    }

    fn prefix(&self) -> &[u8] {
        &self.prefix[..usize::from(self.prefix_len)]
    }

    fn suffix<'k>(&self, key: &'k KeyBytes) -> &'k [u8] {
        &key[usize::from(self.prefix_len)..usize::from(self.key_len)]
    }

    /// Returns the index of the row with this key.
    ///
    /// # Errors
    /// The index at which the row belongs, if there is none.
    pub fn find(&self, key: &KeyBytes) -> Result<usize, usize> {
        match self.prefix().cmp(&key[..usize::from(self.prefix_len)]) {
            std::cmp::Ordering::Less => return Err(self.count()),
            std::cmp::Ordering::Greater => return Err(0),
            std::cmp::Ordering::Equal => {}
        }
        let (suffix, stride) = (self.suffix(key), self.stride());
        if suffix.len() <= 8 {
            return self.find_short(suffix);
        }
        let (mut from, mut to) = (0, self.count());
        while from < to {
            let middle = usize::midpoint(from, to);
            let start = middle * stride;
            match self.rows[start..start + suffix.len()].cmp(suffix) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// [`Packed::find`] for keys whose rest fits an integer, as it usually does.
    fn find_short(&self, suffix: &[u8]) -> Result<usize, usize> {
        let stride = self.stride();
        let of_row = |at: usize| big_endian(self.rows.get(at * stride..).unwrap_or_default(), suffix.len());
        let wanted = big_endian(suffix, suffix.len());
        let (mut from, mut to) = (0, self.count());
        // Groups and days are numbered without gaps, so the index often follows from the first
        // number.
        let guess = usize::try_from(wanted.wrapping_sub(of_row(0))).unwrap_or(usize::MAX);
        if guess < to && of_row(guess) == wanted {
            return Ok(guess);
        }
        // New rows often come last, as they are numbered in order of appearance.
        if to > 0 && of_row(to - 1) < wanted {
            return Err(to);
        }
        while from < to {
            let middle = usize::midpoint(from, to);
            match of_row(middle).cmp(&wanted) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// Returns the indexes of the rows whose keys lie between two keys, both included.
    pub fn between(&self, first: &KeyBytes, last: &KeyBytes) -> Range<usize> {
        let from = self.find(first).unwrap_or_else(|place| place);
        let to = self.find(last).map_or_else(|place| place, |place| place + 1);
        from..to.max(from)
    }

    /// Returns the key of a row.
    pub fn key(&self, at: usize) -> KeyBytes {
        let mut key = self.prefix;
        let (start, suffix) = (at * self.stride(), self.suffix_len());
        key[usize::from(self.prefix_len)..usize::from(self.key_len)].copy_from_slice(&self.rows[start..start + suffix]);
        key
    }

    /// Returns the value of a row.
    pub fn columns(&self, at: usize) -> Columns {
        let mut columns = Columns::default();
        let mut start = at * self.stride() + self.suffix_len();
        for (column, width) in columns.iter_mut().zip(self.widths) {
            if width == 0 {
                continue;
            }
            let rest = self.rows.get(start..).unwrap_or_default();
            *column = if width <= 8 {
                read_short(rest, width).into()
            } else {
                let mut number = [0; WIDEST as usize];
                number.iter_mut().zip(rest).take(usize::from(width)).for_each(|(to, from)| *to = *from);
                u128::from_le_bytes(number)
            };
            start += usize::from(width);
        }
        columns
    }

    /// Passes the last four bytes of some rows' keys, as a number, and their first columns to
    /// `visit`. Faster than reading whole rows.
    pub(crate) fn visit_numbers(&self, range: Range<usize>, mut visit: impl FnMut(u32, u128)) {
        let (stride, suffix) = (self.stride(), self.suffix_len());
        let in_rows = suffix.min(4);
        let shared = self.prefix().get(usize::from(self.key_len.saturating_sub(4))..).unwrap_or_default();
        let shared = shared
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
            .checked_shl(u32::try_from(8 * in_rows).unwrap_or(u32::MAX));
        let [width, ..] = self.widths;
        for at in range {
            let row = self.rows.get(at * stride..).unwrap_or_default();
            let rest = u32::try_from(big_endian(row.get(suffix - in_rows..).unwrap_or_default(), in_rows)).unwrap_or_default();
            let value = row.get(suffix..).unwrap_or_default();
            let value = if (1..=8).contains(&width) { read_short(value, width).into() } else { self.columns(at)[0] };
            visit(shared.unwrap_or_default() | rest, value);
        }
    }

    /// Returns all rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = (KeyBytes, Columns)> {
        (0..self.count()).map(|at| (self.key(at), self.columns(at)))
    }

    /// Changes the value of the row at an index.
    pub fn set(&mut self, at: usize, columns: &Columns) {
        if !self.fits(columns) {
            self.make_fit(&self.key(at), columns);
        }
        self.put(at, columns);
    }

    /// Whether a value fits into the current length of rows.
    pub(super) fn fits(&self, columns: &Columns) -> bool {
        let longer = |(widest, number): (&u8, &u128)| number.checked_shr(8 * u32::from(*widest)).unwrap_or_default() != 0;
        !self.widths.iter().zip(columns).any(longer)
    }

    /// Changes the value of the row at an index, which [fits](Packed::fits).
    pub(super) fn put(&mut self, at: usize, columns: &Columns) {
        self.write_value(at * self.stride() + self.suffix_len(), columns);
    }

    /// Returns the first column of a row, if it is the only one and has at most eight bytes.
    pub(super) fn number(&self, at: usize) -> Option<u64> {
        let [width @ 1..=8, 0, 0, 0] = self.widths else { return None };
        self.rows.get(at * self.stride() + self.suffix_len()..).map(|bytes| read_short(bytes, width))
    }

    /// Whether a number fits into the current width of the first column.
    pub(super) fn fits_number(&self, number: u64) -> bool {
        number.checked_shr(8 * u32::from(self.widths[0])).unwrap_or_default() == 0
    }

    /// Changes the first column of a row to a number that [fits](Packed::fits_number).
    pub(super) fn put_number(&mut self, at: usize, number: u64) {
        let start = at * self.stride() + self.suffix_len();
        write_short(self.rows.get_mut(start..).unwrap_or_default(), self.widths[0], number);
    }

    /// Inserts a row at the index that [`Packed::find`] returned.
    pub fn insert(&mut self, at: usize, key: &KeyBytes, columns: &Columns) {
        self.make_fit(key, columns);
        let stride = self.stride();
        let (start, len) = (at * stride, self.rows.len());
        if self.rows.capacity() - len < stride {
            // Reserve little, as there are many parts.
            self.rows.reserve_exact(stride.max(len / 8));
        }
        self.rows.resize(len + stride, 0);
        self.rows.copy_within(start..len, start + stride);
        self.count += 1;
        self.write(at, key, columns);
    }

    /// Removes the row at an index.
    pub fn remove(&mut self, at: usize) {
        let stride = self.stride();
        self.rows.drain(at * stride..(at + 1) * stride);
        self.count -= 1;
    }

    /// Splits off the rows from an index on. Neither side may be empty.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        let later = self.copy(at..self.count());
        *self = self.copy(0..at);
        later
    }

    /// Copies some rows into no more bytes than they require. There must be at least one row.
    fn copy(&self, range: Range<usize>) -> Self {
        let (first, last) = (self.key(range.start), self.key(range.end.saturating_sub(1)));
        let mut prefix_len = self.prefix_len;
        while prefix_len < self.key_len && first[usize::from(prefix_len)] == last[usize::from(prefix_len)] {
            prefix_len += 1;
        }
        let mut widths = [0; MAX_COLUMNS];
        for at in range.clone() {
            let columns = self.columns(at);
            widths.iter_mut().zip(columns).for_each(|(widest, number)| *widest = (*widest).max(width(number)));
        }
        self.repacked(range, first, prefix_len, widths)
    }

    /// Copies some rows with other lengths.
    fn repacked(&self, range: Range<usize>, prefix: KeyBytes, prefix_len: u8, widths: [u8; MAX_COLUMNS]) -> Self {
        let count = u32::try_from(range.len()).unwrap_or(u32::MAX);
        let mut other = Self::empty(prefix, prefix_len, self.key_len, widths);
        other.count = count;
        other.prefix[usize::from(prefix_len)..].fill(0);
        other.rows = vec![0; range.len() * other.stride()];
        for (to, from) in range.enumerate() {
            other.write(to, &self.key(from), &self.columns(from));
        }
        other
    }

    /// Widens rows for another key and value, if necessary. The possible lengths bound how often a
    /// part is repacked.
    fn make_fit(&mut self, key: &KeyBytes, columns: &Columns) {
        let mut widths = self.widths;
        widths.iter_mut().zip(columns).for_each(|(widest, number)| *widest = (*widest).max(width(*number)));
        let common = self.prefix().iter().zip(key).take_while(|(one, other)| one == other).count();
        let prefix_len = self.prefix_len.min(u8::try_from(common).unwrap_or(self.prefix_len));
        if widths != self.widths || prefix_len != self.prefix_len {
            *self = self.repacked(0..self.count(), self.prefix, prefix_len, widths);
        }
    }

    /// Writes a row that fits.
    fn write(&mut self, at: usize, key: &KeyBytes, columns: &Columns) {
        let start = at * self.stride();
        let suffix = self.suffix(key);
        self.rows[start..start + suffix.len()].copy_from_slice(suffix);
        self.write_value(start + suffix.len(), columns);
    }

    fn write_value(&mut self, mut start: usize, columns: &Columns) {
        for (number, width) in columns.iter().zip(self.widths) {
            if width == 0 {
                continue;
            }
            let rest = self.rows.get_mut(start..).unwrap_or_default();
            if width <= 8 {
                write_short(rest, width, *number as u64);
            } else {
                rest.iter_mut().zip(number.to_le_bytes()).take(usize::from(width)).for_each(|(to, from)| *to = from);
            }
            start += usize::from(width);
        }
    }

    /// Decodes the fields of a saved part.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let (key_len, prefix_len) = (*header.first()?, *header.get(1)?);
        let widths: [u8; MAX_COLUMNS] = header.get(2..)?.try_into().ok()?;
        if usize::from(key_len) > MAX_KEY || prefix_len > key_len || widths.iter().any(|width| *width > WIDEST) {
            return None;
        }
        let (shared, rows) = rest.split_at_checked(usize::from(prefix_len))?;
        let mut prefix = KeyBytes::default();
        prefix[..shared.len()].copy_from_slice(shared);
        let mut part = Self::empty(prefix, prefix_len, key_len, widths);
        part.rows = rows.to_vec();
        // A part with rows of zero bytes has exactly one row.
        let stride = part.stride();
        part.count = u32::try_from(rows.len().checked_div(stride).unwrap_or(1)).ok()?;
        (part.count > 0 && part.count() * stride == rows.len()).then_some(part)
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(HEADER + MAX_KEY + self.rows.len());
        bytes.extend([self.key_len, self.prefix_len]);
        bytes.extend(self.widths);
        bytes.extend_from_slice(self.prefix());
        bytes.extend_from_slice(&self.rows);
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Packed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of a part")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Packed::from_bytes(bytes).ok_or_else(|| E::custom("not a part of rows"))
            }
        }

        deserializer.deserialize_byte_buf(Bytes)
    }
}
