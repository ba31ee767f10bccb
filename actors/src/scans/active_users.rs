//! The days on which users were active, in memory, kept right through links.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use headcount_domain::cache::table::KeyHashBuilder;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::{Day, IdentityLink, Position, RecordKey, Window};

type KeyMap<V> = HashMap<RecordKey, V, KeyHashBuilder>;

/// The days of a block, each a bit.
const BLOCK_DAYS: usize = u64::BITS as usize;

/// The users with counted events in a window, and the links of their ids, up to a position.
pub(super) struct ActiveUsers {
    window: Window,
    /// The last event that is counted.
    pub(super) until: Position,
    /// The user of each linked id.
    links: KeyMap<RecordKey>,
    /// The days of each identity, in blocks of [`BLOCK_DAYS`] from the start of the window.
    blocks: Vec<KeyMap<u64>>,
    by_day: Vec<u64>,
    total: u64,
    /// The active ids whose links are to be asked for; `None`: [`ActiveUsers::see_link`] sees all
    /// links.
    unresolved: Option<HashSet<RecordKey, KeyHashBuilder>>,
}

/// The bytes of a map. While it grows, it has its former table too.
fn map_bytes<V>(map: &KeyMap<V>) -> usize {
    // The capacity is at most 7/8 of the slots, each of which has a byte of control.
    map.capacity() * 8 / 7 * (size_of::<(RecordKey, V)>() + 1)
}

impl ActiveUsers {
    /// Nobody was active yet. `sees_all_links`: the first link of an id that is seen is the first
    /// that was recorded.
    pub(super) fn new(window: Window, sees_all_links: bool) -> Self {
        let blocks = (0..window.len().div_ceil(BLOCK_DAYS)).map(|_| KeyMap::default()).collect();
        let unresolved = (!sees_all_links).then(HashSet::default);
        Self { window, until: 0, links: KeyMap::default(), blocks, by_day: vec![0; window.len()], total: 0, unresolved }
    }

    /// Records that all events up to a position were seen.
    pub(super) fn seen_until(&mut self, position: Position) {
        self.until = self.until.max(position);
    }

    /// The memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(map_bytes).sum();
        let unresolved = self.unresolved.as_ref().map_or(0, HashSet::capacity) * 8 / 7 * (size_of::<RecordKey>() + 1);
        map_bytes(&self.links) + blocks + self.by_day.len() * size_of::<u64>() + unresolved + size_of::<Self>()
    }

    /// Sees the link of an event. Links must come in the order of their events.
    pub(super) fn see_link(&mut self, link: IdentityLink) {
        match &self.unresolved {
            None => self.link(link),
            // It may be the first of an id that was asked for before, or not.
            Some(_) if !self.links.contains_key(&link.anonymous) => self.ask_for(link.anonymous),
            Some(_) => {}
        }
    }

    /// Has the link of an id asked for, if the id is active.
    fn ask_for(&mut self, id: RecordKey) {
        if !id.is_user()
            && self.blocks.iter().any(|block| block.contains_key(&id))
            && let Some(unresolved) = &mut self.unresolved
        {
            unresolved.insert(id);
        }
    }

    /// The active ids whose links are to be asked for, until [`Self::resolved`].
    pub(super) fn unresolved(&self) -> Vec<RecordKey> {
        self.unresolved.iter().flatten().copied().collect()
    }

    /// Records that all links that were to be asked for are known.
    pub(super) fn resolved(&mut self) {
        self.unresolved = self.unresolved.take().map(|_| HashSet::default());
    }

    /// Records the first link of an id.
    pub(super) fn link(&mut self, IdentityLink { anonymous, user, .. }: IdentityLink) {
        // The first link of an id counts.
        if let Entry::Vacant(place) = self.links.entry(anonymous) {
            place.insert(user);
            self.rename(anonymous, user);
        }
    }

    /// Records that `named` was active. Its days belong to the user that it is linked to, now or
    /// later.
    pub(super) fn add(&mut self, named: RecordKey, day: Day) {
        if !self.window.contains(day) {
            return;
        }
        let identity = self.links.get(&named).copied().unwrap_or(named);
        let at = usize::try_from(day.since(self.window.start)).unwrap_or_default();
        self.set(identity, at / BLOCK_DAYS, 1 << (at % BLOCK_DAYS));
    }

    /// Adds days of a block to an identity.
    fn set(&mut self, identity: RecordKey, block: usize, days: u64) {
        let known = self.blocks[block].entry(identity).or_default();
        let new = days & !*known;
        let is_new = *known == 0;
        *known |= days;
        if is_new && !self.is_in_another(identity, block) {
            self.total += 1;
            self.ask_for(identity);
        }
        self.count(block, new, |count| *count += 1);
    }

    fn count(&mut self, block: usize, mut days: u64, change: impl Fn(&mut u64)) {
        while days > 0 {
            if let Some(count) = self.by_day.get_mut(block * BLOCK_DAYS + days.trailing_zeros() as usize) {
                change(count);
            }
            days &= days - 1;
        }
    }

    fn is_in_another(&self, identity: RecordKey, block: usize) -> bool {
        self.blocks.iter().enumerate().any(|(other, map)| other != block && map.contains_key(&identity))
    }

    /// Moves all days of an identity to another.
    fn rename(&mut self, from: RecordKey, to: RecordKey) {
        let mut had_days = false;
        for block in 0..self.blocks.len() {
            let Some(days) = self.blocks[block].remove(&from) else { continue };
            had_days = true;
            self.count(block, days, |count| *count -= 1);
            self.set(to, block, days);
        }
        self.total -= u64::from(had_days);
    }

    /// Returns the counts.
    pub(super) fn answer(&self) -> UniqueUsers {
        UniqueUsers { series: self.window.days().zip(self.by_day.iter().copied()).collect(), total: self.total }
    }

    /// Returns the user of each linked id, and each identity with each of its days.
    pub(super) fn into_parts(self) -> (KeyMap<RecordKey>, impl Iterator<Item = (RecordKey, Day)>) {
        let start = self.window.start;
        let days = move |block: usize, (identity, days): (RecordKey, u64)| {
            let day = move |bit: usize| start.plus(i32::try_from(block * BLOCK_DAYS + bit).unwrap_or(i32::MAX));
            (0..BLOCK_DAYS).filter(move |bit| days >> bit & 1 > 0).map(move |bit| (identity, day(bit)))
        };
        let blocks = self.blocks.into_iter().enumerate();
        (self.links, blocks.flat_map(move |(block, map)| map.into_iter().flat_map(move |one| days(block, one))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use headcount_domain::KeyHasher;

    use super::*;

    fn window(days: i32) -> Window {
        Window { start: Day(100), end: Day(99 + days) }
    }

    /// Counts by a list of all that happened.
    fn expected(window: Window, links: &[(u128, u128)], active: &[(u128, i32)]) -> UniqueUsers {
        let mut first: BTreeMap<u128, u128> = BTreeMap::new();
        for (other, user) in links {
            first.entry(*other).or_insert(*user);
        }
        let days: BTreeSet<(i32, u128)> = active.iter().map(|(key, day)| (*day, *first.get(key).unwrap_or(key))).collect();
        let in_window: Vec<_> = days.into_iter().filter(|(day, _)| window.contains(Day(*day))).collect();
        let count = |day: Day| in_window.iter().filter(|(of, _)| *of == day.0).count() as u64;
        let users: BTreeSet<u128> = in_window.iter().map(|(_, user)| *user).collect();
        UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total: users.len() as u64 }
    }

    #[test]
    fn links_move_days_whenever_they_come() {
        for days in [1, 5, 64, 65, 200] {
            let (mut links, mut active) = (Vec::new(), Vec::new());
            let mut users = ActiveUsers::new(window(days), true);
            for number in 0..2_000_u64 {
                let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                let key = |user: bool, number: u64| RecordKey(u128::from(number) << 8 | u128::from(user));
                let (other, user) = (key(false, random % 150), key(true, random / 150 % 40));
                let day = 95 + i32::try_from(random / 6_000 % 300).unwrap() % (days + 10);
                match number % 5 {
                    0 => {
                        users.see_link(IdentityLink { anonymous: other, position: number, user });
                        links.push((other.0, user.0));
                    }
                    1 => {
                        users.add(user, Day(day));
                        active.push((user.0, day));
                    }
                    _ => {
                        users.add(other, Day(day));
                        active.push((other.0, day));
                    }
                }
                if number % 97 == 0 {
                    assert_eq!(users.answer(), expected(window(days), &links, &active), "{number} of {days} days");
                }
            }
            assert!(links.len() > 300 && users.answer().total > 20);
            let expected = expected(window(days), &links, &active);
            let (known, active) = users.into_parts();
            let known: Vec<_> = known.into_iter().map(|(other, user)| (other.0, user.0)).collect();
            let active: Vec<_> = active.map(|(key, day)| (key.0, day.0)).collect();
            assert_eq!(self::expected(window(days), &known, &active), expected);
        }
    }

    #[test]
    fn links_that_are_seen_only_say_whom_to_ask_about_where_others_are_not_seen() {
        let hasher = KeyHasher::new([9; 16]);
        let (device, other) = (hasher.anonymous("kiosk"), hasher.anonymous("phone"));
        let (first, second) = (hasher.user("ada"), hasher.user("ben"));
        let mut users = ActiveUsers::new(window(5), false);
        users.add(device, Day(100));
        assert_eq!(users.unresolved(), [device]);
        // Not linked yet.
        users.resolved();
        assert!(users.unresolved().is_empty());
        let link = |anonymous, user| IdentityLink { anonymous, position: 9, user };
        users.see_link(link(device, second));
        users.see_link(link(other, second));
        assert_eq!((users.unresolved(), users.answer().total), (vec![device], 1));
        users.link(link(device, first));
        users.resolved();
        users.see_link(link(device, second));
        users.add(device, Day(101));
        users.add(first, Day(101));
        users.add(second, Day(102));
        assert!(users.unresolved().is_empty());
        assert_eq!((users.answer().total, users.answer().series[1].1), (2, 1));
    }
}
