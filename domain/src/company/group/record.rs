//! The record of a group.

use std::collections::BTreeSet;

use super::pages::{ActiveDay, Alias, DaySums, GroupPage, GroupSums, LoadGroupPage, MemberDay, Membership};
use crate::cache::paged::{
    Item as _, Paged, SortKey, day_sort_key, first_in_day, insert_tight, last_in_day, place_by_spread, place_near_end,
    record_sort_key, sort_key_in_day,
};
use crate::contribution::Sign;
use crate::facts::Moment;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::limits::Limits;
use crate::records::{Record, page_key};
use crate::time::{Day, Instant};
use serde::{Deserialize, Serialize};

/// The record of one company or group in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The type; `company` for a company.
    pub kind: Box<str>,
    /// The key: a company's domain if it has one, else as sent.
    pub key: Box<str>,
    /// The number within its type.
    pub number: u32,
    /// The most recently reported name and its time.
    pub name: Option<(Moment, Box<str>)>,
    /// The keys of the companies that are linked to this domain in this project.
    pub(super) aliases: Paged<Alias>,
    pub(super) sums: Paged<DaySums>,
    pub(super) roster: Paged<Membership>,
    pub(super) visits: Paged<ActiveDay>,
    /// The number of members by last active day.
    pub(super) by_last: Vec<(Day, u32)>,
    pub(super) first_seen: Edge,
    pub(super) last_seen: Edge,
    /// The times of the first and the last event without consent. Such events are never taken out.
    pub(super) nobody: Option<(Instant, Instant)>,
    /// The values that questions computed while `first_seen` and `last_seen` are unknown. They are
    /// not saved: the record only depends on the events.
    #[serde(skip)]
    pub(super) found: FoundEdges,
}

impl Record for Group {
    const SPACE: u8 = 5;
    const PAGE_SPACE: u8 = 6;
    const NAME: &'static str = "group";
    type Page = GroupPage;

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &GroupPage)) {
        let mut visit = |serial: u32, page: &GroupPage| visit(page_key(key, serial), page);
        self.aliases.dirty(&mut visit);
        self.sums.dirty(&mut visit);
        self.roster.dirty(&mut visit);
        self.visits.dirty(&mut visit);
    }

    fn saved(&mut self) {
        self.aliases.saved();
        self.sums.saved();
        self.roster.saved();
        self.visits.saved();
    }

    fn weight(&self) -> usize {
        let name = self.name.as_ref().map_or(0, |(_, name)| name.len());
        let lists = self.aliases.weight() + self.sums.weight() + self.roster.weight() + self.visits.weight();
        let small = self.by_last.capacity() * size_of::<(Day, u32)>();
        size_of::<Self>() + self.kind.len() + self.key.len() + name + small + lists
    }

    fn has_pages(&self) -> bool {
        self.aliases.has_pages() || self.sums.has_pages() || self.roster.has_pages() || self.visits.has_pages()
    }

    fn shed(&mut self) {
        self.aliases.shed();
        self.sums.shed();
        self.roster.shed();
        self.visits.shed();
    }
}

/// A company's record key, stored under the hash in its public id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanyById(pub RecordKey);

impl Record for CompanyById {
    const SPACE: u8 = 7;
    const NAME: &'static str = "company_id";
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>()
    }
}

/// The first or last activity of the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Edge {
    Never,
    At(Instant),
    /// Unknown after a removal; computed when needed.
    Unknown,
}

/// The first and the last activity of the members, if they were computed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoundEdges {
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Records are equal if their saved parts are.
impl PartialEq for FoundEdges {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Edge {
    fn extend(&mut self, at: Instant, further: fn(Instant, Instant) -> Instant) {
        *self = match *self {
            Self::Never => Self::At(at),
            Self::At(known) => Self::At(further(known, at)),
            Self::Unknown => Self::Unknown,
        };
    }

    fn known(self, found: Option<Instant>) -> Option<Instant> {
        match self {
            Self::Never => None,
            Self::At(at) => Some(at),
            Self::Unknown => found,
        }
    }
}

/// The sort keys of members to remove completely.
#[derive(Debug)]
pub struct FormerMembers {
    in_roster: BTreeSet<SortKey>,
    in_days: BTreeSet<SortKey>,
}

impl FormerMembers {
    /// Creates the sort keys of the members with `keys`.
    pub fn new(keys: &BTreeSet<RecordKey>) -> Self {
        let in_roster = keys.iter().map(|key| record_sort_key(*key)).collect();
        Self { in_roster, in_days: keys.iter().map(|key| sort_key_in_day(Day(0), *key)).collect() }
    }
}

/// Returns the place of a member in the visits of a day. Sort keys contain most of a member's key,
/// which nearly always identifies it.
fn place_of_visit(visits: &[ActiveDay], number: SortKey, member: RecordKey) -> usize {
    let at = place_by_spread(visits, number, ActiveDay::sort_key);
    let rest = visits[at..].iter();
    at + rest.take_while(|visit| visit.sort_key() == number && visit.member < member).count()
}

/// The maximum number of days, in both directions together, between an event of a day and the start
/// of that day in UTC.
const DAYS_OVERLAP: i32 = 5;

impl Group {
    /// Creates an empty group.
    pub fn new(kind: &str, key: &str, number: u32) -> Self {
        Self {
            kind: kind.into(),
            key: key.into(),
            number,
            name: None,
            aliases: Paged::default(),
            sums: Paged::default(),
            roster: Paged::default(),
            visits: Paged::default(),
            by_last: Vec::new(),
            first_seen: Edge::Never,
            last_seen: Edge::Never,
            nobody: None,
            found: FoundEdges::default(),
        }
    }

    /// Records a name reported at a moment, unless a later one is known. Returns whether it is now
    /// the latest.
    pub(crate) fn report_name(&mut self, at: Moment, name: &str) -> bool {
        let is_latest = self.name.as_ref().is_none_or(|(known, _)| *known <= at);
        if is_latest {
            self.name = Some((at, name.into()));
        }
        is_latest
    }

    /// Records that a company is linked to this domain.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub(crate) fn add_alias(&mut self, company: RecordKey, limits: &Limits, load: impl LoadGroupPage) -> Result<(), Fault> {
        let number = record_sort_key(company);
        self.aliases.load(number, number, load)?;
        if self.aliases.get(number).is_none() {
            self.aliases.insert(Alias(company), limits);
        }
        Ok(())
    }

    /// Returns the number of companies that are linked to this domain.
    pub(crate) fn count_aliases(&self) -> usize {
        self.aliases.len()
    }

    /// Returns the keys of the companies that are linked to this domain in this project.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn aliases(&mut self, load: impl LoadGroupPage) -> Result<impl Iterator<Item = RecordKey>, Fault> {
        self.aliases.load(SortKey::MIN, SortKey::MAX, load)?;
        Ok(self.aliases.iter().map(|alias| alias.0))
    }

    /// Adds or takes out sums of `day`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn add(
        &mut self,
        day: Day,
        sums: &GroupSums,
        sign: Sign,
        limits: &Limits,
        load: impl LoadGroupPage,
    ) -> Result<(), Fault> {
        let number = day_sort_key(day);
        self.sums.load(number, number, load)?;
        self.sums.change(number, limits, |days| {
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
        Ok(())
    }

    /// Adds events without consent on `day`.
    pub(crate) fn add_nobody(&mut self, day: Day, did: MemberDay) {
        if let Some((first, last)) = did.seen.at(day) {
            self.nobody = Some(self.nobody.map_or((first, last), |(a, b)| (a.min(first), b.max(last))));
        }
    }

    /// Adds the activity of a member on `day`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub(crate) fn add_member(
        &mut self,
        day: Day,
        member: RecordKey,
        did: MemberDay,
        limits: &Limits,
        mut load: impl LoadGroupPage,
    ) -> Result<(), Fault> {
        let number = sort_key_in_day(day, member);
        self.visits.load(number, number, &mut load)?;
        let is_new = self.visits.change(number, limits, |visits| {
            let at = place_of_visit(visits, number, member);
            match visits.get_mut(at) {
                Some(visit) if (visit.day, visit.member) == (day, member) => {
                    visit.did.events += did.events;
                    visit.did.seen.add(did.seen);
                    false
                }
                _ => {
                    insert_tight(visits, at, ActiveDay { day, member, did });
                    true
                }
            }
        });
        if is_new {
            self.enroll(day, member, limits, load)?;
        }
        if let Some((first, last)) = did.seen.at(day) {
            self.first_seen.extend(first, Instant::min);
            self.last_seen.extend(last, Instant::max);
            self.found.first = self.found.first.map(|known| known.min(first));
            self.found.last = self.found.last.map(|known| known.max(last));
        }
        Ok(())
    }

    /// Adds an active day of a member to the roster.
    fn enroll(&mut self, day: Day, member: RecordKey, limits: &Limits, load: impl LoadGroupPage) -> Result<(), Fault> {
        let number = record_sort_key(member);
        self.roster.load(number, number, load)?;
        let (before, after) = self.roster.change(number, limits, |roster| {
            let at = place_by_spread(roster, number, Membership::sort_key);
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
        self.move_last(before, Some(after));
        Ok(())
    }

    /// Reads the parts that an event of `member` changes, except sealed pages. Returns a number
    /// that depends on them.
    pub(crate) fn look_ahead(&self, member: RecordKey) -> u64 {
        let day = self.sums.recent().last().map_or(0, |(day, _)| day.0);
        let visit = self.visits.recent().last().map_or(0, |visit| visit.day.0);
        let last = self.by_last.last().map_or(0_i32, |(day, _)| day.0);
        let roster = self.roster.recent();
        let at = place_by_spread(roster, record_sort_key(member), Membership::sort_key);
        let known = roster.get(at).map_or(0, |known| known.days);
        u64::from(day.unsigned_abs() ^ visit.unsigned_abs() ^ last.unsigned_abs() ^ known)
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

    /// Removes all activity of a member on `day`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn remove_member(
        &mut self,
        day: Day,
        member: RecordKey,
        limits: &Limits,
        mut load: impl LoadGroupPage,
    ) -> Result<(), Fault> {
        let number = sort_key_in_day(day, member);
        self.visits.load(number, number, &mut load)?;
        let removed = self.visits.change(number, limits, |visits| {
            let at = visits.binary_search_by_key(&(day, member), |visit| (visit.day, visit.member)).ok()?;
            Some(visits.remove(at).did)
        });
        let Some(did) = removed else { return Ok(()) };
        self.dismiss(day, member, limits, load)?;
        let Some((first, last)) = did.seen.at(day) else { return Ok(()) };
        let Self { first_seen, last_seen, found, .. } = self;
        for (edge, found, at) in [(first_seen, &mut found.first, first), (last_seen, &mut found.last, last)] {
            if *edge == Edge::At(at) {
                (*edge, *found) = (Edge::Unknown, None);
            }
            found.take_if(|found| *found == at);
            if self.by_last.is_empty() {
                *edge = Edge::Never;
            }
        }
        Ok(())
    }

    /// Removes an active day of a member from the roster. Reads its other days only if this was the
    /// last of several.
    fn dismiss(&mut self, day: Day, member: RecordKey, limits: &Limits, mut load: impl LoadGroupPage) -> Result<(), Fault> {
        let number = record_sort_key(member);
        self.roster.load(number, number, &mut load)?;
        let find = |roster: &[Membership]| roster.binary_search_by_key(&member, |known| known.member).ok();
        let left = self.roster.change(number, limits, |roster| {
            let at = find(roster)?;
            roster[at].days -= 1;
            Some(if roster[at].days == 0 { (roster.remove(at).last, 0) } else { (roster[at].last, roster[at].days) })
        });
        match left {
            Some((last, 0)) => self.move_last(Some(last), None),
            Some((last, _)) if last == day => {
                self.visits.load(SortKey::MIN, last_in_day(day), load)?;
                let last = self.last_day_until(day, member).unwrap_or(day);
                self.roster.change(number, limits, |roster| {
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

    /// Removes every trace of members whose days were all removed. Returns the serial numbers of
    /// removed pages; `None` if there was no trace.
    pub(crate) fn forget_members(&mut self, former: &FormerMembers) -> Option<Vec<u32>> {
        let in_roster = self.roster.forget(|number| former.in_roster.contains(&number));
        let in_days = self.visits.forget(|number| former.in_days.contains(&(number & last_in_day(Day(0)))));
        (in_roster.is_some() || in_days.is_some()).then(|| in_roster.into_iter().chain(in_days).flatten().collect())
    }

    /// Whether the group has no activity and no reported properties.
    pub(crate) fn is_void(&self) -> bool {
        let is_unknown = self.name.is_none() && self.aliases.is_empty() && self.nobody.is_none();
        is_unknown && self.sums.is_empty() && self.visits.is_empty() && self.roster.is_empty()
    }

    /// Returns the serial numbers of all pages.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        let lists = self.aliases.serials().chain(self.sums.serials());
        lists.chain(self.roster.serials()).chain(self.visits.serials())
    }

    fn last_day_until(&self, day: Day, member: RecordKey) -> Option<Day> {
        let mut visits = self.visits.range(SortKey::MIN, last_in_day(day)).rev();
        visits.find(|visit| visit.member == member).map(|visit| visit.day)
    }

    /// Returns the times of the first and the last event ever. If one is unknown, reads the days at
    /// that end.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn seen(&mut self, mut load: impl LoadGroupPage) -> Result<Option<(Instant, Instant)>, Fault> {
        if self.first_seen == Edge::Unknown && self.found.first.is_none() {
            let first_day =
                self.visits.first().map_or(Day(i32::MIN), |number| Day(i32::try_from(number >> 96).unwrap_or(i32::MIN)));
            let days = (first_day, Day(first_day.0.saturating_add(DAYS_OVERLAP)));
            let first = self.seen_within(days, &mut load)?.map(|(first, _)| first).min();
            self.found.first = first;
        }
        if self.last_seen == Edge::Unknown && self.found.last.is_none() {
            let last_day = self.by_last.last().map_or(Day(i32::MIN), |(day, _)| *day);
            let days = (Day(last_day.0.saturating_sub(DAYS_OVERLAP)), Day(i32::MAX));
            let last = self.seen_within(days, &mut load)?.map(|(_, last)| last).max();
            self.found.last = last;
        }
        let members = self.first_seen.known(self.found.first).zip(self.last_seen.known(self.found.last));
        let both = members.zip(self.nobody).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        Ok(both.or(members).or(self.nobody))
    }

    fn seen_within(
        &mut self,
        (first, last): (Day, Day),
        load: impl LoadGroupPage,
    ) -> Result<impl Iterator<Item = (Instant, Instant)>, Fault> {
        let (first, last) = (first_in_day(first), last_in_day(last));
        self.visits.load(first, last, load)?;
        Ok(self.visits.range(first, last).filter_map(|visit| visit.did.seen.at(visit.day)))
    }
}
