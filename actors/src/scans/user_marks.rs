//! Counts the users of events by marks that the events give them.

use std::io;
use std::sync::atomic::AtomicBool;

use headcount_archive::ArchiveError;
use headcount_domain::{Event, IdentityLink, Position, RecordKey, SentKeys};

use super::active_users::{ActiveUsers, CountedUsers, MarkCounts, Marks};
use super::error::{Result, check};
use super::events::{IDS_A_QUESTION, Scan, Tally, TallyError};
use super::external_sort::{Sorted, Sorter};
use super::group_ids::GroupIds;
use super::identities::{KEY, bytes, key_of};
use super::identity_sort::IdentitySorter;
use super::people::People;
use super::sealed_group::{Rows, SealedGroup};
use super::views::ViewRoom;

/// Receives the marks of an event.
pub(super) type MarkVisitor<'v> = dyn FnMut(Marks) + 'v;

/// Says which marks events give to their users. None of it depends on sessions or identities.
pub(super) trait GiveMarks {
    /// What else is counted of the events.
    type Sums: Send;

    /// Returns sums of nothing.
    fn sums(&self) -> Self::Sums;

    /// The number of marks.
    fn count(&self) -> usize;

    /// Counts the rows of a group, and passes the marks that each gives to `mark`.
    fn rows(
        &self,
        group: &SealedGroup<'_>,
        rows: Rows,
        sums: &mut Self::Sums,
        mark: &mut dyn FnMut(usize, Marks),
    ) -> Result<(), ArchiveError>;

    /// Counts an event of the log.
    fn event(&self, event: &Event, sums: &mut Self::Sums, mark: &mut MarkVisitor<'_>);

    /// Adds what was counted of a group.
    fn add(&self, sums: Self::Sums, to: &mut Self::Sums);
}

/// Returns users of whom nothing is counted yet.
pub(super) fn no_users<M: GiveMarks>(scan: &Scan<'_>, marks: &M) -> Box<CountedUsers<M::Sums>> {
    let users = ActiveUsers::new(marks.count(), scan.meets_all_links());
    Box::new(CountedUsers { users, sums: marks.sums(), is_whole: true })
}

/// Counts the users of all events: `counted` has the earlier ones, and gets the others. With
/// `people`, only these users are counted.
pub(super) fn count_users<M: GiveMarks + Sync>(
    scan: &Scan<'_>,
    (marks, people): (&M, Option<People>),
    counted: &mut CountedUsers<M::Sums>,
    room: &mut ViewRoom<'_>,
    sort_bytes: usize,
) -> Result<MarkCounts> {
    let after = counted.users.until;
    let mut tally = UsersTally { scan, marks, sort_bytes, room, counted, on_disk: None };
    let read = |group: &SealedGroup<'_>| ReadUsers::of(scan, marks, group);
    let outcome = scan.tally(after, None, &read, &mut tally);
    let UsersTally { counted, on_disk, .. } = tally;
    outcome?;
    if let Some(on_disk) = on_disk {
        return MarkedUsers(on_disk.resolve(scan)?).count(marks.count(), people, scan.cancelled);
    }
    link_unresolved(scan, &mut counted.users)?;
    counted.users.seen_until(scan.until);
    match people {
        Some(people) => counts_of(&counted.users, people, scan.cancelled),
        None => Ok(counted.users.counts()),
    }
}

/// Returns the counts of the users that are chosen in the first window.
fn counts_of(users: &ActiveUsers, mut people: People, cancelled: &AtomicBool) -> Result<MarkCounts> {
    let (all, are_others_chosen) = (users.counts(), people.are_others_chosen());
    let none = MarkCounts { of_mark: vec![0; all.of_mark.len()], total: 0 };
    let mut counts = if are_others_chosen { all } else { none };
    while let Some((identity, windows)) = people.next_listed()? {
        check(cancelled)?;
        match (windows & 1 > 0, are_others_chosen) {
            (true, false) => users.recount(identity, &mut counts, |count| *count += 1),
            (false, true) => users.recount(identity, &mut counts, |count| *count -= 1),
            _ => {}
        }
    }
    Ok(counts)
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

/// The links of a row group's events, the marks of their ids, and the sums.
struct ReadUsers<S> {
    links: Vec<IdentityLink>,
    active: Vec<(RecordKey, Marks)>,
    sums: S,
    last: Position,
}

impl<S> ReadUsers<S> {
    fn of<M: GiveMarks<Sums = S>>(scan: &Scan<'_>, marks: &M, group: &SealedGroup<'_>) -> Result<Self, TallyError> {
        let hasher = scan.hasher();
        let rows = group.counted()?;
        let mut ids = GroupIds::read(group, hasher)?;
        let mut read = Self { links: ids.links(group, &rows), active: Vec::new(), sums: marks.sums(), last: group.last() };
        if rows.is_empty() {
            return Ok(read);
        }
        let Self { active, sums, .. } = &mut read;
        let mut visitors = None;
        marks.rows(group, rows, sums, &mut |row, marks| {
            let named = match ids.codes(row) {
                (Some(user), _) => ids.marked_user(user, marks),
                (None, Some(anonymous)) => ids.marked_anonymous(anonymous, marks),
                (None, None) => {
                    let visitors = visitors.get_or_insert_with(|| group.visitors());
                    visitors.as_ref().ok().and_then(|visitors| Some(hasher.visitor(visitors[row]?)))
                }
            };
            active.extend(named.map(|named| (named, marks)));
        })?;
        visitors.map_or(Ok(()), |visitors| visitors.map(drop))?;
        Ok(read)
    }
}

/// Collects the links of all events, and the marks that they give. It goes on on disk when there is
/// no room in memory.
struct UsersTally<'t, 's, 'v, M: GiveMarks> {
    scan: &'t Scan<'s>,
    marks: &'t M,
    sort_bytes: usize,
    room: &'t mut ViewRoom<'v>,
    counted: &'t mut CountedUsers<M::Sums>,
    on_disk: Option<IdentitySorter<'s, MARKED>>,
}

impl<M: GiveMarks> UsersTally<'_, '_, '_, M> {
    fn make_room(&mut self) -> Result<()> {
        if self.on_disk.is_none() && !self.room.has(self.counted.users.bytes()) {
            let none = ActiveUsers::new(self.marks.count(), self.scan.meets_all_links());
            let users = std::mem::replace(&mut self.counted.users, none);
            self.counted.is_whole = false;
            self.on_disk = Some(on_disk(self.scan, users, self.sort_bytes)?);
        }
        Ok(())
    }

    fn link(&mut self, link: IdentityLink) -> io::Result<()> {
        let Some(on_disk) = &mut self.on_disk else {
            self.counted.users.see_link(link);
            return Ok(());
        };
        on_disk.link(link)
    }

    fn add(&mut self, named: RecordKey, marks: Marks) -> io::Result<()> {
        let Some(on_disk) = &mut self.on_disk else {
            self.counted.users.add(named, marks);
            return Ok(());
        };
        on_disk.add(named, marked(named, marks))
    }
}

impl<M: GiveMarks> Tally<ReadUsers<M::Sums>> for UsersTally<'_, '_, '_, M> {
    fn group(&mut self, read: ReadUsers<M::Sums>) -> Result<()> {
        self.make_room()?;
        read.links.into_iter().try_for_each(|link| self.link(link))?;
        read.active.into_iter().try_for_each(|(named, marks)| self.add(named, marks))?;
        self.marks.add(read.sums, &mut self.counted.sums);
        self.counted.users.seen_until(read.last);
        Ok(())
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        self.make_room()?;
        let keys = SentKeys::of(&event.who, self.scan.hasher());
        keys.link(position).map_or(Ok(()), |link| self.link(link))?;
        let mut given = Vec::new();
        self.marks.event(event, &mut self.counted.sums, &mut |marks| given.push(marks));
        if let Some(named) = keys.named() {
            given.into_iter().try_for_each(|marks| self.add(named, marks))?;
        }
        self.counted.users.seen_until(position);
        Ok(())
    }
}

/// Begins a sort of marks with what was collected in memory.
fn on_disk<'h>(scan: &Scan<'h>, users: ActiveUsers, sort_bytes: usize) -> Result<IdentitySorter<'h, MARKED>> {
    let mut sorter = IdentitySorter::new(scan, sort_bytes);
    let (links, mut active) = users.into_parts();
    // The links in memory come before all others.
    links.into_iter().try_for_each(|(anonymous, user)| sorter.link(IdentityLink { anonymous, position: 0, user }))?;
    active.try_for_each(|(key, marks)| sorter.add(key, marked(key, marks)))?;
    Ok(sorter)
}

/// An identity and marks of a block, as a key of a sort.
const MARKED: usize = KEY + 2 + 8;

fn marked(key: RecordKey, Marks { block, bits }: Marks) -> [u8; MARKED] {
    let mut marked = [0; MARKED];
    marked[..KEY].copy_from_slice(&bytes(key));
    marked[KEY..KEY + 2].copy_from_slice(&block.to_be_bytes());
    marked[KEY + 2..].copy_from_slice(&bits.to_be_bytes());
    marked
}

fn read(marked: &[u8; MARKED]) -> (RecordKey, Marks) {
    let (key, marks) = marked.split_at(KEY);
    let (block, bits) = marks.split_at(2);
    let block = block.try_into().map_or(0, u16::from_be_bytes);
    (key_of(key), Marks { block, bits: bits.try_into().map_or(0, u64::from_be_bytes) })
}

/// Identities with their marks, on disk.
pub(super) struct MarkedUsers(Sorter<MARKED>);

impl MarkedUsers {
    pub(super) fn new(scan: &Scan<'_>, sort_bytes: usize) -> Self {
        Self(Sorter::new(scan.scratch(), MARKED, sort_bytes))
    }

    pub(super) fn push(&mut self, identity: RecordKey, marks: Marks) -> io::Result<()> {
        self.0.push(marked(identity, marks))
    }

    /// Counts the identities of `people`, or all, by their marks.
    pub(super) fn count(self, marks: usize, mut people: Option<People>, cancelled: &AtomicBool) -> Result<MarkCounts> {
        let mut counts = MarkCounts { of_mark: vec![0; marks], total: 0 };
        let (mut last, mut is_chosen, mut open) = (None, true, Marks { block: 0, bits: 0 });
        let sorted: Sorted<MARKED> = self.0.finish()?;
        for one in sorted {
            check(cancelled)?;
            let (identity, marks) = read(&one?);
            if last != Some(identity) {
                is_chosen = people.as_mut().map_or(Ok(true), |people| people.windows_of(identity).map(|held| held > 0))?;
                counts.total += u64::from(is_chosen);
                (last, open) = (Some(identity), Marks { block: 0, bits: 0 });
            }
            // Marks of one block may come in several keys.
            let known = if marks.block == open.block { open.bits } else { 0 };
            if is_chosen {
                let new = Marks { bits: marks.bits & !known, ..marks };
                new.numbers().for_each(|mark| counts.add(mark));
            }
            open = Marks { bits: marks.bits | known, ..marks };
        }
        Ok(counts)
    }
}
