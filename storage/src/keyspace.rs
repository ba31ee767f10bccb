//! Every space of the store: what its keys and its values are, and where its pairs lie.
//! The domain lists the rows of rollups and indexes.
//!
//! A key begins with its partition (two bytes) and its group (one byte). All numbers are big
//! endian, so the order of the bytes is the order of the numbers.
//!
//! | group | key |
//! |---|---|
//! | 0 | `partition:u16 0`: the tables of the partition ([`Space::Manifest`]) |
//! | 1 | `partition:u16 1`: its position ([`Space::Position`]) |
//! | 2 | `partition:u16 2 project:u64 tag:u8 part:u32`: a part of the rows of a rollup |
//! | 3 | `partition:u16 3 project:u64 space:u8 id:u128`: a record, or a page of one |
//! | 4 | `partition:u16 4 item:u8`: what is known of the whole store |
//! | 5 | `partition:u16 5 project:u64 tag:u8 part:u32`: a part of the rows of an index |
//!
//! ```
//! use headcount_storage::keyspace::{Key, PartitionId, Room};
//!
//! let key = Key::Cells { partition: PartitionId(7), project: 42, room: Room::Sled, tag: 3, part: 1 };
//! assert_eq!(Key::decode(&key.encode()), Ok(key));
//! ```

use std::fmt;

use thiserror::Error;

const MANIFEST: u8 = 0;
const POSITION: u8 = 1;
const ROLLUP: u8 = 2;
const RECORD: u8 = 3;
const META: u8 = 4;
const INDEX: u8 = 5;

/// Where in a store on disk the pairs of a space lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Room {
    /// In sled: few and small, read when a partition is loaded, rewritten by many checkpoints.
    /// Never keyed by a person, since sled keeps old versions of its pages.
    Sled,
    /// In sorted tables.
    Tables,
}

impl Room {
    /// The group of the rows in this room.
    const fn group(self) -> u8 {
        match self {
            Self::Sled => ROLLUP,
            Self::Tables => INDEX,
        }
    }

    /// The line of some rows in the list of what a store consists of, beside those of
    /// [`Space::ALL`].
    pub fn line_of_rows(self, tag: u8, name: &str, version: u8) -> String {
        line(self.group(), tag, name, version)
    }
}

fn line(group: u8, tag: u8, name: &str, version: u8) -> String {
    format!("space {group} {tag} {name} version {version}")
}

/// The room of a key, or of all keys with a prefix of at least three bytes.
pub(crate) fn room_of(key: &[u8]) -> Room {
    match key.get(2) {
        Some(&(MANIFEST | POSITION | ROLLUP | META)) => Room::Sled,
        _ => Room::Tables,
    }
}

/// The key of a partition's list of tables.
pub(crate) fn manifest_key(partition: PartitionId) -> Vec<u8> {
    group(partition, MANIFEST)
}

macro_rules! spaces {
    ($($(#[$doc:meta])* $space:ident: $group:ident $tag:literal, $name:literal version $version:literal;)*) => {
        /// Every space but those of rows. The domain defines what records are; a test compares this
        /// list with the domain's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Space {
            $($(#[$doc])* $space,)*
        }

        impl Space {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$space),*];

            /// The group, the byte that tells the spaces of a group apart, the name, and the
            /// version of the values.
            const fn entry(self) -> (u8, u8, &'static str, u8) {
                match self {
                    $(Self::$space => ($group, $tag, $name, $version),)*
                }
            }
        }
    };
}

spaces! {
    /// The tables of the partition. Value: their numbers, oldest first, and the next one.
    Manifest: MANIFEST 0, "manifest" version 1;
    /// How far the partition's state reflects the log; written by each of its checkpoints. Value:
    /// the position, the number of external ids, and the number of the checkpoint.
    Position: POSITION 0, "position" version 1;
    /// Under partition 65,535. Value: the check value of hash key and incarnation.
    CheckValue: META 0, "check_value" version 1;
    /// Under partition 65,535. Value: the kinds of records and rows that the store consists of.
    StoredTypes: META 1, "stored_types" version 1;

    /// By the key of an identity. Value: its company, e-mail address and facts; or the user that an
    /// anonymous id is linked to.
    Identities: RECORD 0, "identity" version 1;
    /// By the key of an account. Value: the facts of a company, or the domain that it is linked to.
    Accounts: RECORD 1, "account" version 1;
    /// Id 0: where a project stands. Project 0, id 1: the highest position that the partition
    /// reflects anything of; id 2: the mark of the log at the position of its last checkpoint, if
    /// the log has marks.
    Projects: RECORD 2, "project" version 1;
    /// Pages of the lists of [`Space::Identities`].
    IdentityPages: RECORD 3, "identity" version 1;
    /// Pages of the lists of [`Space::Accounts`].
    AccountPages: RECORD 4, "account" version 1;
    /// By the key of a company or group. Value: its sums by day, and its roster.
    Groups: RECORD 5, "group" version 1;
    /// Pages of the lists of [`Space::Groups`].
    GroupPages: RECORD 6, "group" version 1;
    /// By the hash that a company's public id shows. Value: the key of the company.
    CompanyIds: RECORD 7, "company_id" version 1;
    /// By the hash of an e-mail address. Value: the identities that have it.
    Emails: RECORD 8, "email" version 1;
    /// By the hash of a term of the dictionary. Value: its number.
    TermIds: RECORD 10, "name_number" version 1;
    /// By the number of a term. Value: its text.
    TermTexts: RECORD 11, "name_text" version 1;
    /// Pages of the lists of [`Space::Emails`].
    EmailPages: RECORD 12, "email" version 1;
}

impl fmt::Display for Space {
    /// The line of the space in the list of what a store consists of: a store of another version
    /// has other lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, tag, name, version) = self.entry();
        f.write_str(&line(group, tag, name, version))
    }
}

/// The number of a partition: the first two bytes of its keys. A partition is changed as one, by
/// its checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u16);

impl PartitionId {
    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The two bytes that each of its keys begins with.
    pub const fn prefix(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    /// The partition that a key (or a prefix of keys) belongs to; `None` if it is shorter than two
    /// bytes.
    pub fn of_key(key: &[u8]) -> Option<Self> {
        key.first_chunk().map(|bytes| Self(u16::from_be_bytes(*bytes)))
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn group(partition: PartitionId, group: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_CAPACITY);
    bytes.extend_from_slice(&partition.prefix());
    bytes.push(group);
    bytes
}

fn in_project(partition: PartitionId, of: u8, project: u64) -> Vec<u8> {
    let mut bytes = group(partition, of);
    bytes.extend_from_slice(&project.to_be_bytes());
    bytes
}

/// The length of the longest key ([`Key::Record`]).
const KEY_CAPACITY: usize = 2 + 1 + 8 + 1 + 16;

/// A key of the store. [`Space`] has what lies under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The position of a partition.
    Position {
        /// The partition.
        partition: PartitionId,
    },
    /// A part of the rows of a rollup or an index of a project.
    Cells {
        /// The partition.
        partition: PartitionId,
        /// The project.
        project: u64,
        /// The room of the rollup or index.
        room: Room,
        /// The tag of the rollup or index.
        tag: u8,
        /// The number of the part.
        part: u32,
    },
    /// A record of a project, or a page of one.
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
    /// What is known of the whole store.
    Meta {
        /// The partition.
        partition: PartitionId,
        /// Which item.
        item: u8,
    },
}

/// Bytes that are no [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a key of this store: {len} bytes, group {group:?}")]
pub struct KeyError {
    /// How many bytes there are.
    pub len: usize,
    /// The byte that should name the group.
    pub group: Option<u8>,
}

impl Key {
    /// What the keys of positions begin with, behind their partition.
    pub const POSITION_GROUP: [u8; 1] = [POSITION];
    /// What the keys of records begin with, behind their partition.
    pub const RECORD_GROUP: [u8; 1] = [RECORD];

    /// The partition.
    pub const fn partition(&self) -> PartitionId {
        match *self {
            Self::Position { partition }
            | Self::Cells { partition, .. }
            | Self::Record { partition, .. }
            | Self::Meta { partition, .. } => partition,
        }
    }

    /// The bytes of the key.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Position { partition } => group(partition, POSITION),
            Self::Cells { partition, project, room, tag, part } => {
                let mut bytes = in_project(partition, room.group(), project);
                bytes.push(tag);
                bytes.extend_from_slice(&part.to_be_bytes());
                bytes
            }
            Self::Record { partition, project, space, id } => {
                let mut bytes = in_project(partition, RECORD, project);
                bytes.push(space);
                bytes.extend_from_slice(&id.to_be_bytes());
                bytes
            }
            Self::Meta { partition, item } => {
                let mut bytes = group(partition, META);
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
        let key = fields.key().filter(|_| fields.rest.is_empty());
        key.ok_or(KeyError { len: bytes.len(), group: bytes.get(2).copied() })
    }

    /// The name of what lies under the key: a record, or a page of one. `None`: rows, or another
    /// version's.
    pub fn space_name(&self) -> Option<&'static str> {
        let Self::Record { space: of_key, .. } = *self else { return None };
        let space = Space::ALL.iter().find(|space| matches!(space.entry(), (RECORD, tag, ..) if tag == of_key))?;
        Some(match space {
            Space::IdentityPages => "identity_page",
            Space::AccountPages => "account_page",
            Space::GroupPages => "group_page",
            Space::EmailPages => "email_page",
            space => space.entry().2,
        })
    }

    /// What the keys of the parts of a rollup or index begin with, behind their partition.
    pub fn rows_of(project: u64, room: Room, tag: u8) -> Vec<u8> {
        let mut bytes = vec![room.group()];
        bytes.extend_from_slice(&project.to_be_bytes());
        bytes.push(tag);
        bytes
    }

    /// The key of a record, behind its partition.
    pub fn record_of(project: u64, space: u8, id: u128) -> Vec<u8> {
        [&[RECORD][..], &project.to_be_bytes(), &[space], &id.to_be_bytes()].concat()
    }

    /// What the keys of the records of a project, and of those with greater ids, are at least,
    /// behind their partition.
    pub fn records_from(project: u64) -> Vec<u8> {
        [&[RECORD][..], &project.to_be_bytes()].concat()
    }

    /// The prefix of the records of a project in a key space.
    pub fn records_of(partition: PartitionId, project: u64, space: u8) -> Vec<u8> {
        let mut bytes = in_project(partition, RECORD, project);
        bytes.push(space);
        bytes
    }

    /// The prefixes of all [`Key::Cells`] of a project.
    pub fn cells_of(partition: PartitionId, project: u64) -> [Vec<u8>; 2] {
        [ROLLUP, INDEX].map(|group| in_project(partition, group, project))
    }

    /// The prefixes of everything that is stored of a project.
    pub fn all_of(partition: PartitionId, project: u64) -> [Vec<u8>; 3] {
        [ROLLUP, RECORD, INDEX].map(|group| in_project(partition, group, project))
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

    fn cells(&mut self, partition: PartitionId, room: Room) -> Option<Key> {
        let project = u64::from_be_bytes(self.take()?);
        Some(Key::Cells { partition, project, room, tag: self.u8()?, part: u32::from_be_bytes(self.take()?) })
    }

    fn key(&mut self) -> Option<Key> {
        let partition = PartitionId(u16::from_be_bytes(self.take()?));
        Some(match self.u8()? {
            POSITION => Key::Position { partition },
            ROLLUP => self.cells(partition, Room::Sled)?,
            INDEX => self.cells(partition, Room::Tables)?,
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
            (partition.clone(), any::<u64>(), prop_oneof![Just(Room::Sled), Just(Room::Tables)], any::<u8>(), any::<u32>())
                .prop_map(|(partition, project, room, tag, part)| Key::Cells { partition, project, room, tag, part }),
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
            let key = |part| Key::Cells { partition: PartitionId(1), project: 2, room: Room::Sled, tag: 3, part }.encode();
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        }
    }

    #[test]
    fn the_bytes_stay_what_they_are() {
        let hex = |key: Key| key.encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let partition = PartitionId(0x0102);
        assert_eq!(hex(Key::Position { partition }), "010201");
        let cells = Key::Cells { partition, project: 5, room: Room::Sled, tag: 9, part: 0x0a0b };
        assert_eq!(hex(cells), "010202".to_owned() + "0000000000000005" + "09" + "00000a0b");
        let record = Key::Record { partition, project: 5, space: 8, id: 1 };
        assert_eq!(hex(record), "010203".to_owned() + "0000000000000005" + "08" + &format!("{:032x}", 1));
        let index = Key::Cells { partition, project: 5, room: Room::Tables, tag: 14, part: 1 };
        assert_eq!(hex(index), "010205".to_owned() + "0000000000000005" + "0e" + "00000001");
        assert_eq!(hex(Key::Meta { partition, item: 7 }), "01020407");
    }

    #[test]
    fn each_space_has_its_own_byte() {
        for (place, space) in Space::ALL.iter().enumerate() {
            let (group, tag, name, version) = space.entry();
            let is_same =
                |other: &&Space| matches!(other.entry(), (of_other, other_tag, ..) if (of_other, other_tag) == (group, tag));
            assert_eq!(Space::ALL.iter().position(|other| is_same(&other)), Some(place), "{space:?}");
            assert!(version > 0 && !name.is_empty());
        }
    }

    #[test]
    fn a_key_lies_in_its_room() {
        for room in [Room::Sled, Room::Tables] {
            assert_eq!(room_of(&Key::Cells { partition: PartitionId(1), project: 2, room, tag: 4, part: 3 }.encode()), room);
        }
        assert_eq!(room_of(&Key::Record { partition: PartitionId(1), project: 2, space: 0, id: 3 }.encode()), Room::Tables);
    }
}
