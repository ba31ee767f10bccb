//! Companies and groups as they were told: who was active in them, and when. Read organization-wide.
//!
//! A company is kept here under each key that it was told by; that several of these are one company is only decided when
//! an answer is put together, since another project may have told it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Moment, SeenOnDay};
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::paged::{Chunk, Paged, insert_tight, place_near_end};
use crate::records::{Fault, Record, page_key};
use crate::rollup::Sign;
use crate::time::{Day, Instant, Window};

/// The record of one company or group in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its type; `company` for a company.
    pub kind: Box<str>,
    /// Its key: for a company its domain where there is one, else as sent.
    pub key: Box<str>,
    /// The latest name that was told, and when.
    pub name: Option<(Moment, Box<str>)>,
    /// The companies that were told to be this domain, in this project.
    pub aliases: Vec<RecordKey>,
    paged: Paged<GroupChunk>,
    seen: Seen,
}

impl Record for Group {
    const SPACE: u8 = 5;
    const PAGE_SPACE: u8 = 6;
    type Page = GroupChunk;

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &GroupChunk)) {
        for (serial, chunk) in self.paged.dirty() {
            visit(page_key(key, serial), chunk);
        }
    }

    fn saved(&mut self) {
        self.paged.saved();
    }

    fn weight(&self) -> usize {
        let name = self.name.as_ref().map_or(0, |(_, name)| name.len());
        size_of::<Self>() + self.kind.len() + self.key.len() + name + self.aliases.capacity() * 16 + self.paged.weight()
    }

    fn shed(&mut self) {
        self.paged.shed();
    }
}

/// The key of a company by the hash that its public id shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanyById(pub RecordKey);

impl Record for CompanyById {
    const SPACE: u8 = 7;
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>()
    }
}

/// The first and the last event ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    Never,
    Between(Instant, Instant),
    /// One of them was taken out: they are to be looked for.
    Unknown,
}

/// What a group counts on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSums {
    /// How many events.
    pub events: u64,
    /// How many sessions began with an event of its own.
    pub sessions: u64,
    /// Orders less refunds, in the organization's currency.
    pub revenue: Amount,
    /// How many orders.
    pub orders: i64,
}

impl GroupSums {
    /// Adds or takes out `other`.
    pub fn add(&mut self, other: &Self, sign: Sign) {
        match sign {
            Sign::Plus => {
                self.events += other.events;
                self.sessions += other.sessions;
                self.revenue += other.revenue;
            }
            Sign::Minus => {
                self.events = self.events.saturating_sub(other.events);
                self.sessions = self.sessions.saturating_sub(other.sessions);
                self.revenue -= other.revenue;
            }
        }
        self.orders += sign.factor() * other.orders;
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What one member, or nobody, did on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDay {
    /// How many events.
    pub events: u32,
    /// The first and the last of them.
    pub seen: SeenOnDay,
}

/// Some days of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupChunk {
    days: Vec<(Day, GroupSums)>,
    /// Whose events; nobody's have no key.
    members: BTreeMap<(Day, Option<RecordKey>), MemberDay>,
}

impl Chunk for GroupChunk {
    type Digest = ();

    fn items(&self) -> usize {
        self.days.len() + self.members.len()
    }

    fn bounds(&self) -> Option<(i32, i32)> {
        self.days.first().zip(self.days.last()).map(|(first, last)| (first.0.0, last.0.0))
    }

    fn weight(&self) -> usize {
        // Nodes of the tree are two thirds full.
        self.days.capacity() * size_of::<(Day, GroupSums)>() + self.members.len() * 72
    }

    fn split_before(&mut self, number: i32) -> Self {
        let at = self.days.partition_point(|(day, _)| day.0 < number);
        let rest = self.days.split_off(at);
        let later = self.members.split_off(&(Day(number), None));
        Self { days: std::mem::replace(&mut self.days, rest), members: std::mem::replace(&mut self.members, later) }
    }

    fn middle(&self) -> i32 {
        let middle = self.members.keys().nth(self.members.len() / 2).map_or(i32::MIN, |(day, _)| day.0);
        self.bounds().map_or(middle, |(least, _)| middle.max(least.saturating_add(1)))
    }

    fn digest(&self) {}
}

impl Group {
    /// A group of which nothing is known.
    #[must_use]
    pub fn new(kind: &str, key: &str) -> Self {
        let (name, aliases) = (None, Vec::new());
        Self { kind: kind.into(), key: key.into(), name, aliases, paged: Paged::default(), seen: Seen::Never }
    }

    /// Takes a name that was told at a moment, if none was told later.
    pub fn tell_name(&mut self, at: Moment, name: &str) {
        if self.name.as_ref().is_none_or(|(known, _)| *known <= at) {
            self.name = Some((at, name.into()));
        }
    }

    /// Brings the pages of the days from `first` to `last` into memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load(&mut self, first: Day, last: Day, load: impl FnMut(u32) -> Result<GroupChunk, Fault>) -> Result<(), Fault> {
        self.paged.load(first.0, last.0, load)
    }

    /// Adds or takes out what was counted on `day`. Its page must have been loaded.
    pub fn add(&mut self, day: Day, sums: &GroupSums, sign: Sign) {
        self.paged.change(day.0, |chunk| {
            let at = place_near_end(&chunk.days, |(other, _)| *other < day);
            match chunk.days.get_mut(at) {
                Some((there, held)) if *there == day => {
                    held.add(sums, sign);
                    if held.is_empty() {
                        chunk.days.remove(at);
                    }
                }
                _ => insert_tight(&mut chunk.days, at, (day, sums.clone())),
            }
        });
        if sign == Sign::Plus {
            self.paged.seal_before(day.0);
        }
    }

    /// Adds what a member did on `day`.
    pub fn add_member(&mut self, day: Day, member: Option<RecordKey>, did: MemberDay) {
        self.paged.change(day.0, |chunk| {
            let held = chunk.members.entry((day, member)).or_insert(MemberDay { events: 0, ..did });
            held.events += did.events;
            held.seen.add(did.seen);
        });
        self.seen = match (self.seen, did.seen.at(day)) {
            (Seen::Never, Some((first, last))) => Seen::Between(first, last),
            (Seen::Between(a, b), Some((first, last))) => Seen::Between(a.min(first), b.max(last)),
            (seen, _) => seen,
        };
    }

    /// Takes out what a member did on `day`: all that it did here that day.
    pub fn remove_member(&mut self, day: Day, member: RecordKey) {
        let removed = self.paged.change(day.0, |chunk| chunk.members.remove(&(day, Some(member))));
        if let (Some((from, to)), Seen::Between(first, last)) = (removed.and_then(|did| did.seen.at(day)), self.seen)
            && (from <= first || to >= last)
        {
            self.seen = Seen::Unknown;
        }
    }

    /// The first and the last event ever. Reads the pages at both ends, if it has to be looked for.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn seen(&mut self, mut load: impl FnMut(u32) -> Result<GroupChunk, Fault>) -> Result<Option<(Instant, Instant)>, Fault> {
        if self.seen == Seen::Unknown {
            self.paged.load(i32::MIN, i32::MAX, &mut load)?;
            let mut found: Option<(Instant, Instant)> = None;
            for ((day, _), did) in self.paged.chunks(i32::MIN, i32::MAX).flat_map(|chunk| &chunk.members) {
                let Some((from, to)) = did.seen.at(*day) else { continue };
                let (first, last) = found.unwrap_or((from, to));
                found = Some((first.min(from), last.max(to)));
            }
            self.seen = found.map_or(Seen::Never, |(first, last)| Seen::Between(first, last));
        }
        Ok(match self.seen {
            Seen::Between(first, last) => Some((first, last)),
            Seen::Never | Seen::Unknown => None,
        })
    }

    /// What was counted in `window`. Its pages must have been loaded.
    #[must_use]
    pub fn sums(&self, window: Window) -> GroupSums {
        let mut total = GroupSums::default();
        for chunk in self.paged.chunks(window.start.0, window.end.0) {
            for (_, sums) in chunk.days.iter().filter(|(day, _)| window.contains(*day)) {
                total.add(sums, Sign::Plus);
            }
        }
        total
    }

    /// Every day of every member in `window`. Its pages must have been loaded.
    pub fn members(&self, window: Window) -> impl Iterator<Item = (RecordKey, MemberDay)> {
        let range = (window.start, None)..=(window.end, Some(RecordKey(u128::MAX)));
        let chunks = self.paged.chunks(window.start.0, window.end.0);
        chunks.flat_map(move |chunk| chunk.members.range(range.clone())).filter_map(|((_, member), did)| Some(((*member)?, *did)))
    }
}
