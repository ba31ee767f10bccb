//! Unique users of the events that match a predicate.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;

use headcount_archive::ArchiveError;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::{Day, Event, IdentityLink, KeyHasher, Position, Predicate, RecordKey, SentKeys, Window};

use super::active_users::ActiveUsers;
use super::decided::{flags, visit_matching};
use super::error::{Result, check};
use super::events::{IDS_A_QUESTION, Scan, Tally, TallyError};
use super::external_sort::Sorter;
use super::group_ids::GroupIds;
use super::identities::{Identities, KEY, bytes, key_of};
use super::kept_figures::KeptFigures;
use super::sealed_group::{Rows, SealedGroup};
use super::session_events::{SessionEvent, SessionQuestion};
use super::sessions::Sessions;
use super::views::ViewRoom;
use super::visits::find_people;

/// An identity and a day.
const ACTIVE: usize = KEY + 4;

/// Counts the users with an event that matches `predicate`, in sorts of `sort_bytes` each. Days of
/// users that are kept are advanced, and kept again if there is room.
pub(super) fn unique_users(
    scan: &Scan<'_>,
    window: Window,
    predicate: &Predicate,
    (kept, room): (&mut KeptFigures, &mut ViewRoom<'_>),
    sort_bytes: usize,
) -> Result<UniqueUsers> {
    if predicate.needs_session() {
        return count(by_session(scan, window, predicate, sort_bytes)?, window, scan.cancelled);
    }
    let users = match std::mem::take(kept) {
        KeptFigures::Users(users) => users,
        KeptFigures::None | KeptFigures::Groups(_) => Box::new(ActiveUsers::new(window, scan.meets_all_links())),
    };
    let after = users.until;
    let mut tally = UsersTally { scan, window, predicate, sort_bytes, room, users, on_disk: None };
    let read = |group: &SealedGroup<'_>| ReadUsers::of(scan, window, predicate, group);
    let outcome = scan.tally(after, None, &read, &mut tally);
    let UsersTally { mut users, on_disk, .. } = tally;
    if let Some(on_disk) = on_disk {
        outcome?;
        return count(on_disk.identities(scan)?, window, scan.cancelled);
    }
    let outcome = outcome.and_then(|()| link_unresolved(scan, &mut users));
    if outcome.is_ok() {
        users.seen_until(scan.until);
    }
    let answer = users.answer();
    // What was counted before a failure is counted.
    *kept = KeptFigures::Users(users);
    outcome.map(|()| answer)
}

/// Links the ids that only the shard can resolve.
fn link_unresolved(scan: &Scan<'_>, users: &mut ActiveUsers) -> Result<()> {
    let ids = users.unresolved();
    for ids in ids.chunks(IDS_A_QUESTION) {
        scan.linked(ids.to_vec())?.for_each(|link| users.link(link));
    }
    users.resolved();
    Ok(())
}

/// The links of a row group's events, and the ids and days of those that match.
struct ReadUsers {
    links: Vec<IdentityLink>,
    active: Vec<(RecordKey, Day)>,
    last: Position,
}

impl ReadUsers {
    fn of(scan: &Scan<'_>, window: Window, predicate: &Predicate, group: &SealedGroup<'_>) -> Result<Self, TallyError> {
        let hasher = scan.hasher();
        let mut rows = group.counted()?;
        let mut ids = GroupIds::read(group, hasher)?;
        let mut read = Self { links: ids.links(group, &rows), active: Vec::new(), last: group.last() };
        group.retain_days(&mut rows, window)?;
        group.retain_matching(&mut rows, predicate)?;
        if !rows.is_empty() {
            read.add_days(hasher, group, &rows, &mut ids)?;
        }
        Ok(read)
    }

    /// Adds the days of the ids that these rows name.
    fn add_days(
        &mut self,
        hasher: &KeyHasher,
        group: &SealedGroup<'_>,
        rows: &Rows,
        ids: &mut GroupIds<'_>,
    ) -> Result<(), ArchiveError> {
        let days = group.days()?;
        let mut visitors = None;
        rows.for_each(|row| {
            let day = days.as_ref().map_or_else(|day| *day, |days| days[row]);
            let named = match ids.codes(row) {
                (Some(user), _) => ids.user_on(user, day),
                (None, Some(anonymous)) => ids.anonymous_on(anonymous, day),
                (None, None) => {
                    let visitors = visitors.get_or_insert_with(|| group.visitors());
                    visitors.as_ref().ok().and_then(|visitors| Some(hasher.visitor(visitors[row]?)))
                }
            };
            self.active.extend(named.map(|named| (named, day)));
        });
        visitors.map_or(Ok(()), |visitors| visitors.map(drop))
    }
}

/// Collects the links of all events, and the days of those that match. It goes on on disk when
/// there is no room in memory.
struct UsersTally<'t, 's, 'v> {
    scan: &'t Scan<'s>,
    window: Window,
    predicate: &'t Predicate,
    sort_bytes: usize,
    room: &'t mut ViewRoom<'v>,
    users: Box<ActiveUsers>,
    on_disk: Option<ActiveOnDisk<'s>>,
}

impl UsersTally<'_, '_, '_> {
    fn make_room(&mut self) -> Result<()> {
        if self.on_disk.is_none() && !self.room.has(self.users.bytes()) {
            let users = std::mem::replace(&mut *self.users, ActiveUsers::new(self.window, self.scan.meets_all_links()));
            self.on_disk = Some(ActiveOnDisk::new(self.scan, users, self.sort_bytes)?);
        }
        Ok(())
    }

    fn link(&mut self, link: IdentityLink) -> io::Result<()> {
        let Some(on_disk) = &mut self.on_disk else {
            self.users.see_link(link);
            return Ok(());
        };
        on_disk.ids.link(link)
    }

    fn add(&mut self, named: RecordKey, day: Day) -> io::Result<()> {
        let Some(on_disk) = &mut self.on_disk else {
            self.users.add(named, day);
            return Ok(());
        };
        on_disk.add(named, day)
    }
}

impl Tally<ReadUsers> for UsersTally<'_, '_, '_> {
    fn group(&mut self, read: ReadUsers) -> Result<()> {
        self.make_room()?;
        read.links.into_iter().try_for_each(|link| self.link(link))?;
        read.active.into_iter().try_for_each(|(named, day)| self.add(named, day))?;
        self.users.seen_until(read.last);
        Ok(())
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        self.make_room()?;
        let keys = SentKeys::of(&event.who, self.scan.hasher());
        keys.link(position).map_or(Ok(()), |link| self.link(link))?;
        if let Some(named) = keys.named()
            && self.window.contains(event.day)
            && self.predicate.matches_event(event)
        {
            self.add(named, event.day)?;
        }
        self.users.seen_until(position);
        Ok(())
    }
}

/// The ids of matching events, and all links, on disk.
struct ActiveOnDisk<'h> {
    ids: Identities<'h>,
    /// The ids that may be linked, with their days.
    active: Sorter<ACTIVE>,
    /// Users, with their days.
    identities: Sorter<ACTIVE>,
}

impl<'h> ActiveOnDisk<'h> {
    /// Begins with what was collected in memory.
    fn new(scan: &Scan<'h>, users: ActiveUsers, sort_bytes: usize) -> Result<Self> {
        let sorter = || Sorter::new(scan.scratch(), ACTIVE, sort_bytes);
        let mut on_disk = Self { ids: Identities::new(scan, sort_bytes), active: sorter(), identities: sorter() };
        let (links, mut active) = users.into_parts();
        // The links in memory come before all others.
        links.into_iter().try_for_each(|(anonymous, user)| on_disk.ids.link(IdentityLink { anonymous, position: 0, user }))?;
        active.try_for_each(|(key, day)| on_disk.add(key, day))?;
        Ok(on_disk)
    }

    fn add(&mut self, named: RecordKey, day: Day) -> io::Result<()> {
        self.ids.add(named)?;
        if named.is_user() { &mut self.identities } else { &mut self.active }.push(on_day(named, day))
    }

    /// Returns the identities with their days.
    fn identities(self, scan: &Scan<'_>) -> Result<Sorter<ACTIVE>> {
        let Self { ids, active, mut identities } = self;
        let mut ids = ids.resolve(scan)?;
        for active in active.finish()? {
            check(scan.cancelled)?;
            let (key, day) = read(&active?);
            identities.push(on_day(ids.resolve(key)?, day))?;
        }
        Ok(identities)
    }
}

/// Returns the identities and days of matching events in matching sessions.
fn by_session(scan: &Scan<'_>, window: Window, predicate: &Predicate, sort_bytes: usize) -> Result<Sorter<ACTIVE>> {
    let scratch = scan.scratch();
    let people = find_people(scan, predicate.people(), [Some(window), None], sort_bytes)?;
    let mut sessions = Sessions::new(scan, sort_bytes);
    let question = SessionQuestion { window, predicate, grouping: None };
    let carry = |event: &SessionEvent<'_>, carried: &mut Vec<u8>| {
        carried.extend_from_slice(&flags(event.parts, event.entry, event.has_source, event.matches));
        carried.extend_from_slice(&event.day.0.to_be_bytes());
    };
    // An event without ids is nobody's.
    scan.visit_sessions(&question, &carry, &mut sessions, &mut |_| Ok(()))?;
    let mut identities = Sorter::new(scratch, ACTIVE, sort_bytes);
    visit_matching(sessions, scan, (predicate, people), None, sort_bytes, &mut |identity, day| {
        identities.push(on_day(identity, Day(day.try_into().map_or(0, i32::from_be_bytes))))
    })?;
    Ok(identities)
}

fn count(active: Sorter<ACTIVE>, window: Window, cancelled: &AtomicBool) -> Result<UniqueUsers> {
    let (mut by_day, mut total, mut last) = (BTreeMap::<Day, u64>::new(), 0, None::<RecordKey>);
    for active in active.finish()? {
        check(cancelled)?;
        let (identity, day) = read(&active?);
        total += u64::from(last != Some(identity));
        last = Some(identity);
        *by_day.entry(day).or_default() += 1;
    }
    let count = |day: Day| by_day.get(&day).copied().unwrap_or(0);
    Ok(UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total })
}

fn on_day(key: RecordKey, day: Day) -> [u8; ACTIVE] {
    let mut active = [0; ACTIVE];
    active[..KEY].copy_from_slice(&bytes(key));
    active[KEY..].copy_from_slice(&day.0.to_be_bytes());
    active
}

fn read(active: &[u8; ACTIVE]) -> (RecordKey, Day) {
    let (key, day) = active.split_at(KEY);
    (key_of(key), Day(day.try_into().map_or(0, i32::from_be_bytes)))
}
