//! Unique users of the events that match a predicate.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use headcount_domain::filter::Predicate;
use headcount_domain::identity::{IdentityLink, SentKeys, SortedLinks};
use headcount_domain::ids::{KeyHasher, RecordKey};
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::{Day, Window};

use super::events::{Scan, ScanError, check};
use super::external_sort::Sorter;

/// Length of a key in a sort.
const KEY: usize = 16;
/// An [`IdentityLink`] in a sort: anonymous id, position, user.
const LINK: usize = KEY + 8 + KEY;
/// An identity and a day.
const ACTIVE: usize = KEY + 4;

/// Counts the users with an event that matches `predicate`, in sorts of `sort_bytes` each.
pub(super) fn unique_users(
    scan: &Scan<'_>,
    window: Window,
    predicate: &Predicate,
    sort_bytes: usize,
) -> Result<UniqueUsers, ScanError> {
    let mut users = Users::new(scan.engine.hasher(), scan.engine.data_dir(), sort_bytes);
    scan.visit_events(&mut |position, event| {
        users.see(position, event, window.contains(event.day) && predicate.matches(event, None))
    })?;
    users.answer(window, scan.cancelled)
}

/// The identities of matching events, and the links of all events.
struct Users<'h> {
    hasher: &'h KeyHasher,
    links: Sorter<LINK>,
    active: Sorter<ACTIVE>,
    identities: Sorter<ACTIVE>,
}

impl<'h> Users<'h> {
    fn new(hasher: &'h KeyHasher, dir: &Path, sort_bytes: usize) -> Self {
        Self {
            hasher,
            links: Sorter::new(dir, KEY, sort_bytes),
            active: Sorter::new(dir, ACTIVE, sort_bytes),
            identities: Sorter::new(dir, ACTIVE, sort_bytes),
        }
    }

    fn see(&mut self, position: Position, event: &Event, matches: bool) -> io::Result<()> {
        let keys = SentKeys::of(&event.who, self.hasher);
        if let Some(IdentityLink { anonymous, position, user }) = keys.link(position) {
            let mut link = [0; LINK];
            link[..KEY].copy_from_slice(&bytes(anonymous));
            link[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());
            link[KEY + 8..].copy_from_slice(&bytes(user));
            self.links.push(link)?;
        }
        if !matches {
            return Ok(());
        }
        match keys.named() {
            Some(key) => self.active.push(on_day(&bytes(key), &event.day.0.to_be_bytes())),
            None => Ok(()),
        }
    }

    fn answer(self, window: Window, cancelled: &AtomicBool) -> Result<UniqueUsers, ScanError> {
        let Self { links, active, mut identities, .. } = self;
        let mut links = SortedLinks::new(links.finish()?.map(|link| link.map(|link| read_link(&link))));
        for active in active.finish()? {
            check(cancelled)?;
            let active = active?;
            let (key, day) = active.split_at(KEY);
            let identity = links.resolve(key_of(key))?;
            identities.push(on_day(&bytes(identity), day))?;
        }
        let (mut by_day, mut total, mut last) = (BTreeMap::<Day, u64>::new(), 0, None::<[u8; ACTIVE]>);
        for identity in identities.finish()? {
            check(cancelled)?;
            let identity = identity?;
            total += u64::from(last.is_none_or(|last| last[..KEY] != identity[..KEY]));
            last = Some(identity);
            let [.., a, b, c, d] = identity;
            *by_day.entry(Day(i32::from_be_bytes([a, b, c, d]))).or_default() += 1;
        }
        let count = |day: Day| by_day.get(&day).copied().unwrap_or(0);
        Ok(UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total })
    }
}

fn bytes(key: RecordKey) -> [u8; KEY] {
    let RecordKey(number) = key;
    number.to_be_bytes()
}

fn key_of(bytes: &[u8]) -> RecordKey {
    RecordKey(bytes.try_into().map_or(0, u128::from_be_bytes))
}

fn read_link(link: &[u8; LINK]) -> IdentityLink {
    let (anonymous, rest) = link.split_at(KEY);
    let (position, user) = rest.split_at(8);
    let position = position.try_into().map_or(0, u64::from_be_bytes);
    IdentityLink { anonymous: key_of(anonymous), position, user: key_of(user) }
}

fn on_day(key: &[u8], day: &[u8]) -> [u8; ACTIVE] {
    let mut active = [0; ACTIVE];
    active[..KEY].copy_from_slice(key);
    active[KEY..].copy_from_slice(day);
    active
}
