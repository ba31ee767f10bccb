//! The encoding of the keys and values of rows.

use crate::cells::packed::{Columns, MAX_COLUMNS};
use crate::ids::RecordKey;

/// The key of a row: a few numbers in an order-preserving encoding.
pub trait Key: Copy + Ord + std::fmt::Debug {
    /// The length of the encoding.
    const BYTES: usize;

    /// Encodes the key into `BYTES` bytes.
    fn pack(self, to: &mut [u8]);

    /// Decodes the result of [`Key::pack`].
    fn unpack(from: &[u8]) -> Self;
}

/// The value of a row: a few numbers.
pub trait Value: Copy + std::fmt::Debug {
    /// Returns the numbers; unused columns are zero.
    fn columns(self) -> Columns;

    /// Converts the result of [`Value::columns`] back.
    fn from_columns(columns: &Columns) -> Self;
}

/// Maps a signed number to an unsigned one of similar size (zigzag).
pub fn unsigned(number: i128) -> u128 {
    (number << 1).cast_unsigned() ^ (number >> 127).cast_unsigned()
}

/// The inverse of [`unsigned`].
pub fn signed(number: u128) -> i128 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

macro_rules! unsigned_key {
    ($($number:ty),*) => {$(
        impl Key for $number {
            const BYTES: usize = size_of::<$number>();

            fn pack(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_be_bytes());
            }

            fn unpack(from: &[u8]) -> Self {
                from.try_into().map_or(0, <$number>::from_be_bytes)
            }
        }
    )*};
}

unsigned_key!(u8, u32, u128);

/// The sign bit is flipped, so that negative numbers sort first.
impl Key for i32 {
    const BYTES: usize = 4;

    fn pack(self, to: &mut [u8]) {
        (self ^ i32::MIN).cast_unsigned().pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        u32::unpack(from).cast_signed() ^ i32::MIN
    }
}

impl Key for RecordKey {
    const BYTES: usize = 16;

    fn pack(self, to: &mut [u8]) {
        let Self(hash) = self;
        hash.pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        Self(u128::unpack(from))
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn pack(self, to: &mut [u8]) {
        let (first, rest) = to.split_at_mut(A::BYTES);
        self.0.pack(first);
        self.1.pack(rest);
    }

    fn unpack(from: &[u8]) -> Self {
        let (first, rest) = from.split_at(A::BYTES);
        (A::unpack(first), B::unpack(rest))
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;

    fn pack(self, to: &mut [u8]) {
        (self.0, (self.1, self.2)).pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        let (a, (b, c)) = Key::unpack(from);
        (a, b, c)
    }
}

impl Value for i64 {
    fn columns(self) -> Columns {
        let mut columns = [0; MAX_COLUMNS];
        columns[0] = unsigned(self.into());
        columns
    }

    fn from_columns(columns: &Columns) -> Self {
        i64::try_from(signed(columns[0])).unwrap_or_default()
    }
}

impl Value for u32 {
    fn columns(self) -> Columns {
        [self.into(), 0, 0, 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        u32::try_from(columns[0]).unwrap_or_default()
    }
}

impl Value for RecordKey {
    fn columns(self) -> Columns {
        let Self(hash) = self;
        [hash, 0, 0, 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        Self(columns[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: Key>(mut keys: Vec<K>) {
        keys.sort_unstable();
        let packed: Vec<Vec<u8>> = keys
            .iter()
            .map(|key| {
                let mut bytes = vec![0; K::BYTES];
                key.pack(&mut bytes);
                bytes
            })
            .collect();
        assert!(packed.is_sorted(), "{keys:?} sort as their bytes do");
        let unpacked: Vec<K> = packed.iter().map(|bytes| K::unpack(bytes)).collect();
        assert_eq!(unpacked, keys);
    }

    #[test]
    fn keys_sort_as_their_bytes_and_come_back() {
        let numbers = [i32::MIN, -70_000, -1, 0, 1, 255, 256, i32::MAX];
        round_trip(numbers.to_vec());
        let pairs = numbers.iter().flat_map(|number| [0, 7, u32::MAX].map(|second| (*number, second)));
        round_trip(pairs.clone().collect());
        round_trip(pairs.flat_map(|(a, b)| [0, 1 << 100, u128::MAX].map(|hash| (RecordKey(hash), a, b))).collect());
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, -1, 63, -64, i128::from(i64::MIN), i128::MIN, i128::MAX] {
            assert_eq!(signed(unsigned(number)), number);
        }
        assert_eq!([unsigned(-1), unsigned(1), unsigned(-128)], [1, 2, 255]);
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(i64::from_columns(&number.columns()), number);
        }
    }
}
