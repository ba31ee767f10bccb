//! Who the ids of events belong to: the one place where scans learn it.
//!
//! The first link of an id that was recorded counts. A scan of a project without a floor meets all
//! links. Above a floor, it can meet the second link of an id, and not the first: then the shard is
//! asked, and what events link says only about whom to ask.

use std::io;

use super::error::Result;
use headcount_domain::queries::LinkedQuery;
use headcount_domain::{Event, IdentityLink, KeyHasher, Position, RecordKey, SentKeys, SortedLinks};

use super::events::{IDS_A_QUESTION, Scan};
use super::external_sort::Sorter;

/// Length of a key in a sort.
pub(super) const KEY: usize = 16;
/// An [`IdentityLink`] in a sort: anonymous id, position, user.
const LINK: usize = KEY + 8 + KEY;

/// Collects what says who the ids of events belong to, on disk.
pub(super) struct Identities<'h> {
    hasher: &'h KeyHasher,
    known: KnownIds,
}

enum KnownIds {
    /// The links of all events.
    Links(Sorter<LINK>),
    /// The ids of all events, whose links the shard has, and the place for these.
    Asked(Sorter<KEY>, Sorter<LINK>),
}

impl<'h> Identities<'h> {
    pub(super) fn new(scan: &Scan<'h>, sort_bytes: usize) -> Self {
        let scratch = scan.scratch();
        let links = Sorter::new(scratch, KEY, sort_bytes);
        let known = match scan.meets_all_links() {
            true => KnownIds::Links(links),
            false => KnownIds::Asked(Sorter::new(scratch, KEY, sort_bytes), links),
        };
        Self { hasher: scan.hasher(), known }
    }

    /// Records the link of an event, if it has one. Returns the keys of the ids that it names.
    pub(super) fn see(&mut self, position: Position, event: &Event) -> io::Result<SentKeys> {
        let keys = SentKeys::of(&event.who, self.hasher);
        keys.link(position).map_or(Ok(()), |link| self.link(link))?;
        Ok(keys)
    }

    /// Records a link of an event.
    pub(super) fn link(&mut self, link: IdentityLink) -> io::Result<()> {
        match &mut self.known {
            KnownIds::Links(links) => push(link, links),
            KnownIds::Asked(..) => Ok(()),
        }
    }

    /// Adds an id that is to be resolved. Users are never linked.
    pub(super) fn add(&mut self, id: RecordKey) -> io::Result<()> {
        match &mut self.known {
            KnownIds::Asked(ids, _) if !id.is_user() => ids.push(bytes(id)),
            KnownIds::Asked(..) | KnownIds::Links(_) => Ok(()),
        }
    }

    /// Returns what resolves ascending keys of added ids.
    pub(super) fn resolve(self, scan: &Scan<'_>) -> Result<SortedLinks<impl Iterator<Item = io::Result<IdentityLink>> + use<>>> {
        let links = match self.known {
            KnownIds::Links(links) => links,
            KnownIds::Asked(ids, links) => asked(scan, ids, links)?,
        };
        Ok(SortedLinks::new(links.finish()?.map(|link| link.map(|link| read_link(&link)))))
    }
}

/// Adds the links of ids that the shard knows.
fn asked(scan: &Scan<'_>, ids: Sorter<KEY>, mut links: Sorter<LINK>) -> Result<Sorter<LINK>> {
    let mut ask = |ids: Vec<RecordKey>| -> Result<()> { Ok(scan.linked(ids)?.try_for_each(|link| push(link, &mut links))?) };
    let mut some = Vec::new();
    for id in ids.finish()? {
        some.push(key_of(&id?));
        if some.len() >= IDS_A_QUESTION {
            ask(std::mem::take(&mut some))?;
        }
    }
    ask(some)?;
    Ok(links)
}

impl Scan<'_> {
    /// Whether the first link of an id that the scan meets is the first that was recorded.
    pub(super) fn meets_all_links(&self) -> bool {
        self.floor.is_none()
    }

    /// Returns the links of ids that the shard knows, as they were at the end of the scan.
    pub(super) fn linked(&self, ids: Vec<RecordKey>) -> Result<impl Iterator<Item = IdentityLink> + use<>> {
        let links = if ids.is_empty() {
            Vec::new()
        } else {
            self.check_goes_on()?;
            self.ask(LinkedQuery { ids })?
        };
        let until = self.until;
        Ok(links.into_iter().flatten().filter(move |link| link.position <= until))
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

fn push(IdentityLink { anonymous, position, user }: IdentityLink, links: &mut Sorter<LINK>) -> io::Result<()> {
    let mut link = [0; LINK];
    link[..KEY].copy_from_slice(&bytes(anonymous));
    link[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());
    link[KEY + 8..].copy_from_slice(&bytes(user));
    links.push(link)
}

fn read_link(link: &[u8; LINK]) -> IdentityLink {
    let (anonymous, rest) = link.split_at(KEY);
    let (position, user) = rest.split_at(8);
    let position = position.try_into().map_or(0, u64::from_be_bytes);
    IdentityLink { anonymous: key_of(anonymous), position, user: key_of(user) }
}
