//! The links from anonymous ids to users, sorted on disk.

use std::io;

use headcount_domain::identity::{IdentityLink, SentKeys, SortedLinks};
use headcount_domain::ids::{KeyHasher, RecordKey};
use headcount_domain::intake::event::{Event, Position};

use super::external_sort::Sorter;
use super::spill_dir::SpillDir;

/// Length of a key in a sort.
pub(super) const KEY: usize = 16;
/// An [`IdentityLink`] in a sort: anonymous id, position, user.
const LINK: usize = KEY + 8 + KEY;

/// Collects the links of all events.
pub(super) struct Links<'h> {
    hasher: &'h KeyHasher,
    links: Sorter<LINK>,
}

impl<'h> Links<'h> {
    pub(super) fn new(hasher: &'h KeyHasher, scratch: &SpillDir, sort_bytes: usize) -> Self {
        Self { hasher, links: Sorter::new(scratch, KEY, sort_bytes) }
    }

    /// Records the link of an event, if it has one. Returns the keys of the ids that it names.
    pub(super) fn see(&mut self, position: Position, event: &Event) -> io::Result<SentKeys> {
        let keys = SentKeys::of(&event.who, self.hasher);
        keys.link(position).map_or(Ok(()), |link| self.push(link))?;
        Ok(keys)
    }

    /// Records a link.
    pub(super) fn push(&mut self, IdentityLink { anonymous, position, user }: IdentityLink) -> io::Result<()> {
        let mut link = [0; LINK];
        link[..KEY].copy_from_slice(&bytes(anonymous));
        link[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());
        link[KEY + 8..].copy_from_slice(&bytes(user));
        self.links.push(link)
    }

    /// Returns what resolves ascending keys.
    pub(super) fn sorted(self) -> io::Result<SortedLinks<impl Iterator<Item = io::Result<IdentityLink>>>> {
        Ok(SortedLinks::new(self.links.finish()?.map(|link| link.map(|link| read_link(&link)))))
    }
}

/// A key as bytes that are ordered as the keys are.
pub(super) fn bytes(key: RecordKey) -> [u8; KEY] {
    let RecordKey(number) = key;
    number.to_be_bytes()
}

/// The key of these bytes.
pub(super) fn key_of(bytes: &[u8]) -> RecordKey {
    RecordKey(bytes.try_into().map_or(0, u128::from_be_bytes))
}

fn read_link(link: &[u8; LINK]) -> IdentityLink {
    let (anonymous, rest) = link.split_at(KEY);
    let (position, user) = rest.split_at(8);
    let position = position.try_into().map_or(0, u64::from_be_bytes);
    IdentityLink { anonymous: key_of(anonymous), position, user: key_of(user) }
}
