//! Companies and groups as they were told: who was active in them, and when. Read organization-wide.
//!
//! A company is kept here under each key that it was told by; that several of these are one company is only decided when
//! an answer is put together, since another project may have told it.
//!
//! A group has three lists: what it counted each day, its members by key (the roster), and its members' days. Most windows
//! end today, and a member was active in such a one if its last day is not before it: so users are counted from the roster,
//! or from the number of members by last day, and their days are read only where a window ends in the past.

mod pages;

use serde::{Deserialize, Serialize};

pub use self::pages::GroupPage;
use self::pages::{DaySums, Item as _, List, Membership, Visit, first_number, last_number, member_number, visit_number};
use crate::facts::{Moment, SeenOnDay};
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::paged::{Chunk as _, Paged, insert_tight, page_items, place_near_end};
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
    /// Its number among those of its type.
    pub number: u32,
    /// The latest name that was told, and when.
    pub name: Option<(Moment, Box<str>)>,
    /// The companies that were told to be this domain, in this project.
    pub aliases: Vec<RecordKey>,
    sums: Paged<List<DaySums>>,
    roster: Paged<List<Membership>>,
    visits: Paged<List<Visit>>,
    /// How many members have each day as their last.
    by_last: Vec<(Day, u32)>,
    first_seen: Edge,
    last_seen: Edge,
    /// The first and the last event of nobody, which is never taken out.
    nobody: Option<(Instant, Instant)>,
}

impl Record for Group {
    const SPACE: u8 = 5;
    const PAGE_SPACE: u8 = 6;
    type Page = GroupPage;

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &GroupPage)) {
        let mut visit = |serial: u32, page: &GroupPage| visit(page_key(key, serial), page);
        pages::dirty(&self.sums, &mut visit);
        pages::dirty(&self.roster, &mut visit);
        pages::dirty(&self.visits, &mut visit);
    }

    fn saved(&mut self) {
        self.sums.saved();
        self.roster.saved();
        self.visits.saved();
    }

    fn weight(&self) -> usize {
        let name = self.name.as_ref().map_or(0, |(_, name)| name.len());
        let lists = self.sums.weight() + self.roster.weight() + self.visits.weight();
        let small = self.aliases.capacity() * size_of::<RecordKey>() + self.by_last.capacity() * size_of::<(Day, u32)>();
        size_of::<Self>() + self.kind.len() + self.key.len() + name + small + lists
    }

    fn shed(&mut self) {
        self.sums.shed();
        self.roster.shed();
        self.visits.shed();
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

/// When members did something first, or last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Edge {
    Never,
    At(Instant),
    /// It was taken out: it is to be looked for.
    Unknown,
}

impl Edge {
    fn extend(&mut self, at: Instant, further: fn(Instant, Instant) -> Instant) {
        *self = match *self {
            Self::Never => Self::At(at),
            Self::At(known) => Self::At(further(known, at)),
            Self::Unknown => Self::Unknown,
        };
    }

    fn known(self) -> Option<Instant> {
        if let Self::At(at) = self { Some(at) } else { None }
    }
}

impl From<Option<Instant>> for Edge {
    fn from(found: Option<Instant>) -> Self {
        found.map_or(Self::Never, Self::At)
    }
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

/// A page of a group's, by its serial number: what brings those into memory that a method needs.
pub trait Pages: FnMut(u32) -> Result<GroupPage, Fault> {}

impl<F: FnMut(u32) -> Result<GroupPage, Fault>> Pages for F {}

/// An event of a day is at most so many days away from when that day began in UTC, in either direction, together.
const DAYS_OVERLAP: i32 = 5;

impl Group {
    /// A group of which nothing is known.
    #[must_use]
    pub fn new(kind: &str, key: &str, number: u32) -> Self {
        Self {
            kind: kind.into(),
            key: key.into(),
            number,
            name: None,
            aliases: Vec::new(),
            sums: Paged::default(),
            roster: Paged::default(),
            visits: Paged::default(),
            by_last: Vec::new(),
            first_seen: Edge::Never,
            last_seen: Edge::Never,
            nobody: None,
        }
    }

    /// Takes a name that was told at a moment, if none was told later.
    pub fn tell_name(&mut self, at: Moment, name: &str) {
        if self.name.as_ref().is_none_or(|(known, _)| *known <= at) {
            self.name = Some((at, name.into()));
        }
    }

    /// Adds or takes out what was counted on `day`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn add(&mut self, day: Day, sums: &GroupSums, sign: Sign, load: impl Pages) -> Result<(), Fault> {
        pages::load(&mut self.sums, (day.0, day.0), load)?;
        self.sums.change(day.0, |List(days)| {
            let at = place_near_end(days, |(other, _)| *other < day);
            match days.get_mut(at) {
                Some((there, held)) if *there == day => {
                    held.add(sums, sign);
                    if held.is_empty() {
                        days.remove(at);
                    }
                }
                _ => insert_tight(days, at, (day, sums.clone())),
            }
        });
        if sign == Sign::Plus {
            self.sums.seal_before(day.0);
        }
        Ok(())
    }

    /// Nobody did something on `day`.
    pub fn add_nobody(&mut self, day: Day, did: MemberDay) {
        if let Some((first, last)) = did.seen.at(day) {
            self.nobody = Some(self.nobody.map_or((first, last), |(a, b)| (a.min(first), b.max(last))));
        }
    }

    /// Adds what a member did on `day`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn add_member(&mut self, day: Day, member: RecordKey, did: MemberDay, mut load: impl Pages) -> Result<(), Fault> {
        let number = visit_number(day, member);
        pages::load(&mut self.visits, (number, number), &mut load)?;
        let is_new = self.visits.change(number, |List(visits)| {
            let at = place_near_end(visits, |visit| (visit.day, visit.member) < (day, member));
            match visits.get_mut(at) {
                Some(visit) if (visit.day, visit.member) == (day, member) => {
                    visit.did.events += did.events;
                    visit.did.seen.add(did.seen);
                    false
                }
                _ => {
                    insert_tight(visits, at, Visit { day, member, did });
                    true
                }
            }
        });
        if is_new {
            self.visits.seal_before(first_number(day));
            if self.visits.recent().items() > 2 * page_items() {
                // One day has more than a page holds.
                self.visits.seal_before(first_number(Day(day.0 + 1)));
            }
            self.enroll(day, member, load)?;
        }
        if let Some((first, last)) = did.seen.at(day) {
            self.first_seen.extend(first, Instant::min);
            self.last_seen.extend(last, Instant::max);
        }
        Ok(())
    }

    /// A member has one active day more.
    fn enroll(&mut self, day: Day, member: RecordKey, load: impl Pages) -> Result<(), Fault> {
        let number = member_number(member);
        pages::load(&mut self.roster, (number, number), load)?;
        let (before, after) = self.roster.change(number, |List(roster)| {
            let at = roster.partition_point(|other| other.member < member);
            match roster.get_mut(at) {
                Some(known) if known.member == member => {
                    let before = known.last;
                    known.days += 1;
                    known.last = before.max(day);
                    (Some(before), known.last)
                }
                _ => {
                    insert_tight(roster, at, Membership { member, last: day, days: 1 });
                    (None, day)
                }
            }
        });
        // Keys are no order of time: none is more recent than another.
        self.roster.seal_before(i32::MAX);
        self.move_last(before, Some(after));
        Ok(())
    }

    fn move_last(&mut self, before: Option<Day>, after: Option<Day>) {
        if before == after {
            return;
        }
        if let Some(day) = after {
            let at = place_near_end(&self.by_last, |(other, _)| *other < day);
            match self.by_last.get_mut(at) {
                Some((there, members)) if *there == day => *members += 1,
                _ => insert_tight(&mut self.by_last, at, (day, 1)),
            }
        }
        if let Some(day) = before
            && let Ok(at) = self.by_last.binary_search_by_key(&day, |(day, _)| *day)
        {
            self.by_last[at].1 -= 1;
            if self.by_last[at].1 == 0 {
                self.by_last.remove(at);
            }
        }
    }

    /// Takes out what a member did on `day`: all that it did here that day.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn remove_member(&mut self, day: Day, member: RecordKey, mut load: impl Pages) -> Result<(), Fault> {
        let number = visit_number(day, member);
        pages::load(&mut self.visits, (number, number), &mut load)?;
        let removed = self.visits.change(number, |List(visits)| {
            let at = visits.binary_search_by_key(&(day, member), |visit| (visit.day, visit.member)).ok()?;
            Some(visits.remove(at).did)
        });
        let Some(did) = removed else { return Ok(()) };
        self.dismiss(day, member, load)?;
        let Some((first, last)) = did.seen.at(day) else { return Ok(()) };
        for (edge, at) in [(&mut self.first_seen, first), (&mut self.last_seen, last)] {
            if *edge == Edge::At(at) {
                *edge = Edge::Unknown;
            }
            if self.by_last.is_empty() {
                *edge = Edge::Never;
            }
        }
        Ok(())
    }

    /// A member has one active day less. Its other days are looked through only if it was the last of several.
    fn dismiss(&mut self, day: Day, member: RecordKey, mut load: impl Pages) -> Result<(), Fault> {
        let number = member_number(member);
        pages::load(&mut self.roster, (number, number), &mut load)?;
        let find = |roster: &[Membership]| roster.binary_search_by_key(&member, |known| known.member).ok();
        let left = self.roster.change(number, |List(roster)| {
            let at = find(roster)?;
            roster[at].days -= 1;
            Some(if roster[at].days == 0 { (roster.remove(at).last, 0) } else { (roster[at].last, roster[at].days) })
        });
        match left {
            Some((last, 0)) => self.move_last(Some(last), None),
            Some((last, _)) if last == day => {
                pages::load(&mut self.visits, (i32::MIN, last_number(day)), load)?;
                let last = self.last_day_until(day, member).unwrap_or(day);
                self.roster.change(number, |List(roster)| {
                    if let Some(at) = find(roster) {
                        roster[at].last = last;
                    }
                });
                self.move_last(Some(day), Some(last));
            }
            _ => {}
        }
        Ok(())
    }

    fn last_day_until(&self, day: Day, member: RecordKey) -> Option<Day> {
        let mut visits = self.visits.chunks(i32::MIN, last_number(day)).rev().flat_map(|List(visits)| visits.iter().rev());
        visits.find(|visit| visit.member == member).map(|visit| visit.day)
    }

    /// The first and the last event ever. Reads the days at an end that has to be looked for.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn seen(&mut self, mut load: impl Pages) -> Result<Option<(Instant, Instant)>, Fault> {
        if self.first_seen == Edge::Unknown {
            let first = self.seen_since(i32::MIN, &mut load)?.map(|(first, _)| first).min();
            self.first_seen = first.into();
        }
        if self.last_seen == Edge::Unknown {
            let last_day = self.by_last.last().map_or(Day(i32::MIN), |(day, _)| *day);
            let from = first_number(Day(last_day.0.saturating_sub(DAYS_OVERLAP)));
            let last = self.seen_since(from, &mut load)?.map(|(_, last)| last).max();
            self.last_seen = last.into();
        }
        let members = self.first_seen.known().zip(self.last_seen.known());
        let both = members.zip(self.nobody).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        Ok(both.or(members).or(self.nobody))
    }

    fn seen_since(&mut self, number: i32, load: impl Pages) -> Result<impl Iterator<Item = (Instant, Instant)>, Fault> {
        pages::load(&mut self.visits, (number, i32::MAX), load)?;
        let visits = self.visits.chunks(number, i32::MAX).flat_map(|List(visits)| visits);
        Ok(visits.filter(move |visit| visit.number() >= number).filter_map(|visit| visit.did.seen.at(visit.day)))
    }

    /// What was counted in `window`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn sums(&mut self, window: Window, load: impl Pages) -> Result<GroupSums, Fault> {
        let (first, last) = (window.start.0, window.end.0);
        pages::load(&mut self.sums, (first, last), load)?;
        let mut total = GroupSums::default();
        for List(days) in self.sums.chunks(first, last) {
            let from = days.partition_point(|(day, _)| *day < window.start);
            for (_, sums) in days[from..].iter().take_while(|(day, _)| *day <= window.end) {
                total.add(sums, Sign::Plus);
            }
        }
        Ok(total)
    }

    /// Whether no member was active after `window`.
    fn is_open(&self, window: Window) -> bool {
        self.by_last.last().is_none_or(|(day, _)| *day <= window.end)
    }

    /// How many members were active in `window`, if that is known without asking who.
    #[must_use]
    pub fn count_members(&self, window: Window) -> Option<u64> {
        let from = self.by_last.partition_point(|(day, _)| *day < window.start);
        self.is_open(window).then(|| self.by_last[from..].iter().map(|(_, members)| u64::from(*members)).sum())
    }

    /// Adds the members that were active in `window`, each once, to `members`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn members(&mut self, window: Window, members: &mut Vec<RecordKey>, load: impl Pages) -> Result<(), Fault> {
        if !self.is_open(window) {
            let from = members.len();
            members.extend(self.visits(window, load)?.map(|(member, _)| member));
            let mut own = members.split_off(from);
            own.sort_unstable();
            own.dedup();
            members.append(&mut own);
            return Ok(());
        }
        let all = (i32::MIN, i32::MAX);
        pages::load(&mut self.roster, all, load)?;
        let roster = self.roster.chunks(all.0, all.1).flat_map(|List(roster)| roster);
        members.extend(roster.filter(|known| known.last >= window.start).map(|known| known.member));
        Ok(())
    }

    /// Every day of every member in `window`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn visits(&mut self, window: Window, load: impl Pages) -> Result<impl Iterator<Item = (RecordKey, MemberDay)>, Fault> {
        let range = (first_number(window.start), last_number(window.end));
        pages::load(&mut self.visits, range, load)?;
        let visits = self.visits.chunks(range.0, range.1).flat_map(move |List(visits)| {
            let from = visits.partition_point(|visit| visit.day < window.start);
            visits[from..].iter().take_while(move |visit| visit.day <= window.end)
        });
        Ok(visits.map(|visit| (visit.member, visit.did)))
    }
}

#[cfg(test)]
mod tests;
