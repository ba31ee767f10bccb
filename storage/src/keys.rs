//! The key spaces of the store. Every key begins with its partition (two bytes, big endian), then names its space (one byte); numbers are big endian, so that the order of the bytes is the order
//! of the numbers.
//!
//! ```
//! use headcount_storage::keys::Key;
//! use headcount_storage::store::PartitionId;
//!
//! let key = Key::Cells { partition: PartitionId(7), project: 42, rollup: 3, part: 1 };
//! assert_eq!(Key::decode(&key.encode()), Ok(key));
//! ```

use thiserror::Error;

use crate::store::PartitionId;

const POSITION: u8 = 1;
const CELLS: u8 = 2;
const RECORD: u8 = 3;
const META: u8 = 4;

/// The spaces of what there is much of: cells and records.
pub(crate) const BULK_SPACES: std::ops::RangeInclusive<u8> = CELLS..=RECORD;

fn space(partition: PartitionId, space: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_CAPACITY);
    bytes.extend_from_slice(&partition.prefix());
    bytes.push(space);
    bytes
}

/// The length of the longest key ([`Key::Record`]).
const KEY_CAPACITY: usize = 2 + 1 + 8 + 1 + 16;

/// A key of the store: its space and what names the entry within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// How far the partition's stored state reflects the log. One entry a partition.
    ///
    /// Key: `partition:u16 1`. Value: the position of the last log record that is contained in everything else stored
    /// under the partition; it changes in the same checkpoint.
    Position {
        /// The partition.
        partition: PartitionId,
    },
    /// One part of the rows of a rollup of a project.
    ///
    /// Key: `partition:u16 2 project:u64 rollup:u8 part:u32`. Value: some kilobytes of rows, in the encoding of the rollup.
    Cells {
        /// The partition.
        partition: PartitionId,
        /// The project.
        project: u64,
        /// The disk tag of the rollup.
        rollup: u8,
        /// The number of the part.
        part: u32,
    },
    /// What is known of one identity, account or other thing of a project.
    ///
    /// Key: `partition:u16 3 project:u64 space:u8 id:u128`. Value: the record, in the encoding of its space.
    Record {
        /// The partition.
        partition: PartitionId,
        /// The project.
        project: u64,
        /// What kind of record it is.
        space: u8,
        /// Which one.
        id: u128,
    },
    /// What else there is to keep of a partition, one entry per item.
    ///
    /// Key: `partition:u16 4 item:u8`. Value: in the encoding of the item.
    Meta {
        /// The partition.
        partition: PartitionId,
        /// Which item.
        item: u8,
    },
}

/// Bytes that are no [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a key of this store: {len} bytes, space {space:?}")]
pub struct KeyError {
    /// How many bytes there are.
    pub len: usize,
    /// The byte that should name the space.
    pub space: Option<u8>,
}

impl Key {
    /// The partition.
    #[must_use]
    pub const fn partition(&self) -> PartitionId {
        match *self {
            Self::Position { partition }
            | Self::Cells { partition, .. }
            | Self::Record { partition, .. }
            | Self::Meta { partition, .. } => partition,
        }
    }

    /// The bytes of the key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Position { partition } => space(partition, POSITION),
            Self::Cells { partition, project, rollup, part } => {
                let mut bytes = Prefix::rollup(partition, project, rollup);
                bytes.extend_from_slice(&part.to_be_bytes());
                bytes
            }
            Self::Record { partition, project, space, id } => {
                let mut bytes = Prefix::records(partition, project, space);
                bytes.extend_from_slice(&id.to_be_bytes());
                bytes
            }
            Self::Meta { partition, item } => {
                let mut bytes = space(partition, META);
                bytes.push(item);
                bytes
            }
        }
    }

    /// The key of these bytes.
    ///
    /// # Errors
    /// [`KeyError`] if they are not what [`Key::encode`] makes.
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut fields = Reader { rest: bytes };
        let key = fields.key();
        match key {
            Some(key) if fields.rest.is_empty() => Ok(key),
            _ => Err(KeyError { len: bytes.len(), space: bytes.get(2).copied() }),
        }
    }
}

/// Prefixes to scan by: all keys of one kind under something, and no others.
#[derive(Debug)]
pub struct Prefix;

impl Prefix {
    /// All cells of a partition.
    #[must_use]
    pub fn all_cells(partition: PartitionId) -> Vec<u8> {
        space(partition, CELLS)
    }

    /// All cells of a project.
    #[must_use]
    pub fn cells(partition: PartitionId, project: u64) -> Vec<u8> {
        let mut bytes = space(partition, CELLS);
        bytes.extend_from_slice(&project.to_be_bytes());
        bytes
    }

    /// All cells of one rollup of a project.
    #[must_use]
    pub fn rollup(partition: PartitionId, project: u64, rollup: u8) -> Vec<u8> {
        let mut bytes = Self::cells(partition, project);
        bytes.push(rollup);
        bytes
    }

    /// All records of a partition.
    #[must_use]
    pub fn all_records(partition: PartitionId) -> Vec<u8> {
        space(partition, RECORD)
    }

    /// All records of a project, of any kind.
    #[must_use]
    pub fn project_records(partition: PartitionId, project: u64) -> Vec<u8> {
        let mut bytes = space(partition, RECORD);
        bytes.extend_from_slice(&project.to_be_bytes());
        bytes
    }

    /// All records of one kind of a project.
    #[must_use]
    pub fn records(partition: PartitionId, project: u64, space: u8) -> Vec<u8> {
        let mut bytes = Self::project_records(partition, project);
        bytes.push(space);
        bytes
    }

    /// All items of [`Key::Meta`] of a partition.
    #[must_use]
    pub fn meta(partition: PartitionId) -> Vec<u8> {
        space(partition, META)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*field)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn key(&mut self) -> Option<Key> {
        let partition = PartitionId(u16::from_be_bytes(self.take()?));
        Some(match self.u8()? {
            POSITION => Key::Position { partition },
            CELLS => Key::Cells {
                partition,
                project: u64::from_be_bytes(self.take()?),
                rollup: self.u8()?,
                part: u32::from_be_bytes(self.take()?),
            },
            RECORD => Key::Record {
                partition,
                project: u64::from_be_bytes(self.take()?),
                space: self.u8()?,
                id: u128::from_be_bytes(self.take()?),
            },
            META => Key::Meta { partition, item: self.u8()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = Key> {
        let partition = any::<u16>().prop_map(PartitionId);
        prop_oneof![
            partition.clone().prop_map(|partition| Key::Position { partition }),
            (partition.clone(), any::<u64>(), any::<u8>(), any::<u32>())
                .prop_map(|(partition, project, rollup, part)| Key::Cells { partition, project, rollup, part }),
            (partition.clone(), any::<u64>(), any::<u8>(), any::<u128>())
                .prop_map(|(partition, project, space, id)| Key::Record { partition, project, space, id }),
            (partition, any::<u8>()).prop_map(|(partition, item)| Key::Meta { partition, item }),
        ]
    }

    proptest! {
        #[test]
        fn a_key_comes_back(key in any_key()) {
            prop_assert_eq!(Key::decode(&key.encode()), Ok(key));
            prop_assert_eq!(PartitionId::of_key(&key.encode()), Some(key.partition()));
        }

        #[test]
        fn only_keys_decode(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(key) = Key::decode(&bytes) {
                prop_assert_eq!(key.encode(), bytes);
            }
        }

        #[test]
        fn the_order_of_bytes_is_that_of_parts(a in any::<u32>(), b in any::<u32>()) {
            let key = |part| Key::Cells { partition: PartitionId(1), project: 2, rollup: 3, part }.encode();
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        }
    }

    #[test]
    fn the_bytes_stay_what_they_are() {
        let hex = |key: Key| key.encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let partition = PartitionId(0x0102);
        assert_eq!(hex(Key::Position { partition }), "010201");
        let cells = Key::Cells { partition, project: 5, rollup: 9, part: 0x0a0b };
        assert_eq!(hex(cells), "010202".to_owned() + "0000000000000005" + "09" + "00000a0b");
        let record = Key::Record { partition, project: 5, space: 8, id: 1 };
        assert_eq!(hex(record), "010203".to_owned() + "0000000000000005" + "08" + &format!("{:032x}", 1));
        assert_eq!(hex(Key::Meta { partition, item: 7 }), "01020407");
    }
}
