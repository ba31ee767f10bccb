//! The marks of users, in memory, kept right through links.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use headcount_domain::cache::table::KeyHashBuilder;
use headcount_domain::{IdentityLink, Position, RecordKey};

type KeyMap<V> = HashMap<RecordKey, V, KeyHashBuilder>;

/// The marks of a block, each a bit.
const BLOCK: usize = u64::BITS as usize;

/// Some marks of a user: days on which they were active, or goals that they reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// The number of the block.
    pub(super) block: u16,
    /// The marks of the block, each a bit.
    pub(super) bits: u64,
}

impl Marks {
    /// The mark of this number.
    pub(super) fn one(number: usize) -> Self {
        Self { block: u16::try_from(number / BLOCK).unwrap_or(u16::MAX), bits: 1 << (number % BLOCK) }
    }

    /// The numbers of the marks.
    pub(super) fn numbers(self) -> impl Iterator<Item = usize> {
        let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest > 0);
        let bits = std::iter::successors(Some(self.bits).filter(|bits| *bits > 0), rest);
        bits.map(move |bits| usize::from(self.block) * BLOCK + bits.trailing_zeros() as usize)
    }
}

/// How many users have each mark, and how many have any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkCounts {
    pub(super) of_mark: Vec<u64>,
    pub(super) total: u64,
}

impl MarkCounts {
    pub(super) fn add(&mut self, mark: usize) {
        self.of_mark.get_mut(mark).into_iter().for_each(|count| *count += 1);
    }
}

/// The users of counted events with their marks, and the links of their ids, up to a position.
pub(super) struct ActiveUsers {
    /// The last event that is counted.
    pub(super) until: Position,
    /// The user of each linked id.
    links: KeyMap<RecordKey>,
    /// The marks of each identity, by block.
    blocks: Vec<KeyMap<u64>>,
    counts: MarkCounts,
    /// The active ids whose links are to be asked for; `None`: [`ActiveUsers::see_link`] sees all
    /// links.
    unresolved: Option<HashSet<RecordKey, KeyHashBuilder>>,
}

/// The users that were counted up to a position, and sums of their events.
pub(super) struct CountedUsers<S> {
    pub(super) users: ActiveUsers,
    pub(super) sums: S,
    /// Whether it has all users; else the others are on disk, and it can't be advanced.
    pub(super) is_whole: bool,
}

/// The bytes of a map. While it grows, it has its former table too.
fn map_bytes<V>(map: &KeyMap<V>) -> usize {
    // The capacity is at most 7/8 of the slots, each of which has a byte of control.
    map.capacity() * 8 / 7 * (size_of::<(RecordKey, V)>() + 1)
}

impl ActiveUsers {
    /// Nobody has one of the `marks` yet. `sees_all_links`: the first link of an id that is seen is
    /// the first that was recorded.
    pub(super) fn new(marks: usize, sees_all_links: bool) -> Self {
        let blocks = (0..marks.div_ceil(BLOCK)).map(|_| KeyMap::default()).collect();
        let unresolved = (!sees_all_links).then(HashSet::default);
        let counts = MarkCounts { of_mark: vec![0; marks], total: 0 };
        Self { until: 0, links: KeyMap::default(), blocks, counts, unresolved }
    }

    /// Records that all events up to a position were seen.
    pub(super) fn seen_until(&mut self, position: Position) {
        self.until = self.until.max(position);
    }

    /// The memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(map_bytes).sum();
        let unresolved = self.unresolved.as_ref().map_or(0, HashSet::capacity) * 8 / 7 * (size_of::<RecordKey>() + 1);
        map_bytes(&self.links) + blocks + self.counts.of_mark.len() * size_of::<u64>() + unresolved + size_of::<Self>()
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

    /// Records marks of `named`. They belong to the user that it is linked to, now or later.
    pub(super) fn add(&mut self, named: RecordKey, marks: Marks) {
        let identity = self.links.get(&named).copied().unwrap_or(named);
        self.set(identity, marks);
    }

    /// Adds marks to an identity.
    fn set(&mut self, identity: RecordKey, marks: Marks) {
        let block = usize::from(marks.block);
        let known = self.blocks[block].entry(identity).or_default();
        let new = Marks { bits: marks.bits & !*known, ..marks };
        let is_new = *known == 0;
        *known |= marks.bits;
        if is_new && !self.is_in_another(identity, block) {
            self.counts.total += 1;
            self.ask_for(identity);
        }
        self.count(new, |count| *count += 1);
    }

    fn count(&mut self, marks: Marks, change: impl Fn(&mut u64)) {
        marks.numbers().for_each(|mark| self.counts.of_mark.get_mut(mark).into_iter().for_each(&change));
    }

    fn is_in_another(&self, identity: RecordKey, block: usize) -> bool {
        self.blocks.iter().enumerate().any(|(other, map)| other != block && map.contains_key(&identity))
    }

    /// Moves all marks of an identity to another.
    fn rename(&mut self, from: RecordKey, to: RecordKey) {
        let mut had_marks = false;
        for block in 0..self.blocks.len() {
            let Some(bits) = self.blocks[block].remove(&from) else { continue };
            had_marks = true;
            let marks = Marks { block: u16::try_from(block).unwrap_or(u16::MAX), bits };
            self.count(marks, |count| *count -= 1);
            self.set(to, marks);
        }
        self.counts.total -= u64::from(had_marks);
    }

    /// Returns the counts.
    pub(super) fn counts(&self) -> MarkCounts {
        self.counts.clone()
    }

    /// Changes `counts` by `change` as an identity counts: nothing if it has no marks.
    pub(super) fn recount(&self, identity: RecordKey, counts: &mut MarkCounts, change: impl Fn(&mut u64)) {
        let marks = (0..).zip(&self.blocks).filter_map(|(block, map)| Some(Marks { block, bits: *map.get(&identity)? }));
        let mut marks = marks.peekable();
        if marks.peek().is_some() {
            change(&mut counts.total);
        }
        marks.flat_map(Marks::numbers).for_each(|mark| counts.of_mark.get_mut(mark).into_iter().for_each(&change));
    }

    /// Returns the user of each linked id, and each identity with its marks.
    pub(super) fn into_parts(self) -> (KeyMap<RecordKey>, impl Iterator<Item = (RecordKey, Marks)>) {
        let blocks = (0..).zip(self.blocks);
        let marks = |block: u16, (identity, bits): (RecordKey, u64)| (identity, Marks { block, bits });
        (self.links, blocks.flat_map(move |(block, map)| map.into_iter().map(move |one| marks(block, one))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use headcount_domain::KeyHasher;

    use super::*;

    /// Counts by a list of all that happened.
    fn expected(marks: usize, links: &[(u128, u128)], active: &[(u128, usize)]) -> MarkCounts {
        let mut first: BTreeMap<u128, u128> = BTreeMap::new();
        for (other, user) in links {
            first.entry(*other).or_insert(*user);
        }
        let given: BTreeSet<(usize, u128)> = active.iter().map(|(key, mark)| (*mark, *first.get(key).unwrap_or(key))).collect();
        let of_mark = (0..marks).map(|mark| given.iter().filter(|(of, _)| *of == mark).count() as u64).collect();
        let users: BTreeSet<u128> = given.iter().map(|(_, user)| *user).collect();
        MarkCounts { of_mark, total: users.len() as u64 }
    }

    #[test]
    fn links_move_marks_whenever_they_come() {
        for marks in [1, 5, 64, 65, 200] {
            let (mut links, mut active) = (Vec::new(), Vec::new());
            let mut users = ActiveUsers::new(marks, true);
            for number in 0..2_000_u64 {
                let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                let key = |user: bool, number: u64| RecordKey(u128::from(number) << 8 | u128::from(user));
                let (other, user) = (key(false, random % 150), key(true, random / 150 % 40));
                let mark = usize::try_from(random / 6_000 % 300).unwrap() % marks;
                match number % 5 {
                    0 => {
                        users.see_link(IdentityLink { anonymous: other, position: number, user });
                        links.push((other.0, user.0));
                    }
                    1 => {
                        users.add(user, Marks::one(mark));
                        active.push((user.0, mark));
                    }
                    _ => {
                        users.add(other, Marks::one(mark));
                        active.push((other.0, mark));
                    }
                }
                if number % 97 == 0 {
                    assert_eq!(users.counts(), expected(marks, &links, &active), "{number} of {marks} marks");
                }
            }
            assert!(links.len() > 300 && users.counts().total > 20);
            let expected = expected(marks, &links, &active);
            let (known, active) = users.into_parts();
            let known: Vec<_> = known.into_iter().map(|(other, user)| (other.0, user.0)).collect();
            let active: Vec<_> = active.flat_map(|(key, marks)| marks.numbers().map(move |mark| (key.0, mark))).collect();
            assert_eq!(self::expected(marks, &known, &active), expected);
        }
    }

    #[test]
    fn links_that_are_seen_only_say_whom_to_ask_about_where_others_are_not_seen() {
        let hasher = KeyHasher::new([9; 16]);
        let (device, other) = (hasher.anonymous("kiosk"), hasher.anonymous("phone"));
        let (first, second) = (hasher.user("ada"), hasher.user("ben"));
        let mut users = ActiveUsers::new(5, false);
        users.add(device, Marks::one(0));
        assert_eq!(users.unresolved(), [device]);
        // Not linked yet.
        users.resolved();
        assert!(users.unresolved().is_empty());
        let link = |anonymous, user| IdentityLink { anonymous, position: 9, user };
        users.see_link(link(device, second));
        users.see_link(link(other, second));
        assert_eq!((users.unresolved(), users.counts().total), (vec![device], 1));
        users.link(link(device, first));
        users.resolved();
        users.see_link(link(device, second));
        users.add(device, Marks::one(1));
        users.add(first, Marks::one(1));
        users.add(second, Marks::one(2));
        assert!(users.unresolved().is_empty());
        assert_eq!((users.counts().total, users.counts().of_mark[1]), (2, 1));
    }
}
