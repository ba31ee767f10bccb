//! What companies and groups have in common: the partial answers of one project, and how they are merged.

use crate::company::group::{Group, GroupSums, LoadGroupPage};
use crate::contribution::Sign;
use crate::facts::Moment;
use crate::fault::Fault;
use crate::ids::{ProjectId, RecordKey};
use crate::indexes::MemberAlias;
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::{Source, page_key};
use crate::time::{Instant, Window};
use serde::{Deserialize, Serialize};

/// The reported keys of one company or group, its canonical key first.
pub(super) type Keys = Vec<RecordKey>;

impl<S: Source> Reader<'_, S> {
    /// The record of a company or group of this project, and what loads its pages.
    pub(super) fn group(&mut self, key: RecordKey) -> Result<Option<(&mut Group, impl LoadGroupPage)>, Fault> {
        let source = self.source;
        let group = self.project.groups.get_to_load(key, || source.record(key))?;
        Ok(group.map(|group| (group, move |serial| source.page::<Group>(page_key(key, serial)))))
    }
}

/// Asks for names of companies or groups, and when they were seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct DescribeQuery {
    groups: Vec<Keys>,
    /// Of which type they are, and the window whose events are asked for, too.
    events: Option<(Box<str>, Window)>,
}

/// The name of a group, and when it was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Description {
    /// Its canonical key, as text.
    pub(super) key: Option<Box<str>>,
    /// The most recently reported name, and when.
    pub(super) name: Option<(Moment, Box<str>)>,
    /// Its first and its last event ever.
    pub(super) seen: Option<(Instant, Instant)>,
    /// How many events it had in the window that was asked for, if one was.
    pub(super) events: i64,
    /// How many projects know it.
    pub(super) projects: usize,
}

impl Description {
    fn merge(&mut self, other: Self) {
        self.key = self.key.take().or(other.key);
        self.name = self.name.take().into_iter().chain(other.name).max();
        let both = self.seen.zip(other.seen).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.seen = both.or(self.seen).or(other.seen);
        self.events += other.events;
        self.projects += other.projects;
    }

    pub(super) fn name(&self) -> Option<String> {
        self.name.as_ref().map(|(_, name)| name.to_string())
    }

    /// The order of equals: by name, or key where there is none; then by key.
    pub(super) fn rank(&self) -> (String, String) {
        let key = self.key.as_deref().unwrap_or_default().to_owned();
        (self.name().unwrap_or_else(|| key.clone()), key)
    }
}

impl Query for DescribeQuery {
    type Partial = Vec<Description>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Description>, Fault> {
        let mut named = Vec::with_capacity(self.groups.len());
        // Whose number each is: the place of the group that it counts for.
        let (mut places, mut numbers) = (Vec::new(), Vec::new());
        for (place, keys) in self.groups.iter().enumerate() {
            let mut all = Description::default();
            for (at, key) in keys.iter().enumerate() {
                let Some((group, load)) = reader.group(*key)? else { continue };
                let key = (at == 0).then(|| group.key.clone());
                all.merge(Description { key, name: group.name.clone(), seen: group.seen(load)?, events: 0, projects: 0 });
                all.projects = 1;
                places.push(place);
                numbers.push(group.number);
            }
            named.push(all);
        }
        if let Some((kind, window)) = &self.events {
            let activity = &reader.project.rollups.group_activity;
            let kind = reader.hasher.group_type(kind);
            let events = activity.sums_of(kind, &numbers, &activity.cover(kind, *window));
            places.into_iter().zip(events).for_each(|(place, events)| named[place].events += events);
        }
        Ok(named)
    }
}

/// What some companies or groups are called, and when they were seen, anywhere; with their events of a window, if one is given
/// (and their type).
pub(super) async fn named<P: Projects>(
    projects: &P,
    groups: Vec<Keys>,
    events: Option<(&str, Window)>,
) -> Result<Vec<Description>, P::Error> {
    let mut total = vec![Description::default(); groups.len()];
    let events = events.map(|(kind, window)| (kind.into(), window));
    for part in projects.scatter(DescribeQuery { groups, events }).await? {
        total.iter_mut().zip(part).for_each(|(total, part)| total.merge(part));
    }
    Ok(total)
}

/// Asks for the figures of companies or groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FiguresQuery {
    /// Each with whether several projects know it, and so perhaps the same users: then their number alone doesn't do.
    groups: Vec<(Keys, bool)>,
    window: Window,
}

/// The figures of a group in one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FiguresPartial {
    sums: GroupSums,
    /// The number of its distinct identities that only this project knows.
    own: u64,
    /// The others: users, whom other projects may know. Mostly in order.
    users: Vec<RecordKey>,
}

/// An identity of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum MemberRef {
    /// A user: the same in all projects.
    User(RecordKey),
    /// An identity of one project.
    Of(ProjectId, RecordKey),
}

impl Query for FiguresQuery {
    type Partial = Vec<FiguresPartial>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<FiguresPartial>, Fault> {
        self.groups.iter().map(|(keys, shared)| self.figures(keys, *shared, reader)).collect()
    }
}

impl FiguresQuery {
    fn figures<S: Source>(&self, keys: &Keys, shared: bool, reader: &mut Reader<'_, S>) -> Result<FiguresPartial, Fault> {
        let mut part = FiguresPartial { sums: GroupSums::default(), own: 0, users: Vec::new() };
        let mut lists = 0;
        for key in keys {
            let Some((group, mut load)) = reader.group(*key)? else { continue };
            part.sums.add(&group.sums(self.window, &mut load)?, Sign::Plus);
            match group.count_members(self.window) {
                Some(members) if !shared && keys.len() == 1 => part.own = members,
                _ => group.members(self.window, &mut part.users, load)?,
            }
            lists += 1;
        }
        if lists > 1 {
            // A member who was active under several keys occurs once per key. Each list is sorted already.
            part.users.sort();
            part.users.dedup();
        }
        if shared {
            reader.tell_users_apart(&mut part);
        } else {
            part.own += part.users.len() as u64;
            part.users.clear();
        }
        Ok(part)
    }
}

impl<S> Reader<'_, S> {
    /// Who a member of a group is, and whether anything identifies it. Reads no record.
    pub(super) fn who(&self, member: RecordKey) -> (MemberRef, bool) {
        if member.is_user() {
            return (MemberRef::User(member), true);
        }
        match self.project.rollups.member_aliases.of(member) {
            Some(MemberAlias::User(user)) => (MemberRef::User(user), true),
            Some(MemberAlias::Addressed) => (MemberRef::Of(self.id, member), true),
            None => (MemberRef::Of(self.id, member), false),
        }
    }

    /// Leaves the users among the members, and counts the others.
    fn tell_users_apart(&self, part: &mut FiguresPartial) {
        let members = part.users.len();
        part.users.retain_mut(|member| match self.who(*member).0 {
            MemberRef::User(user) => {
                *member = user;
                true
            }
            MemberRef::Of(..) => false,
        });
        part.own += (members - part.users.len()) as u64;
    }
}

/// The figures of a company or group in all projects.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) sums: GroupSums,
    pub(super) users: u64,
}

/// What some companies or groups did in a window, anywhere. Each comes with how many projects know it.
pub(super) async fn figures<P: Projects>(
    projects: &P,
    groups: Vec<(Keys, usize)>,
    window: Window,
) -> Result<Vec<Figures>, P::Error> {
    let groups: Vec<(Keys, bool)> = groups.into_iter().map(|(keys, projects)| (keys, projects > 1)).collect();
    let mut total = vec![Figures::default(); groups.len()];
    let mut users: Vec<Vec<RecordKey>> = vec![Vec::new(); groups.len()];
    for part in projects.scatter(FiguresQuery { groups, window }).await? {
        for ((total, users), part) in total.iter_mut().zip(&mut users).zip(part) {
            total.sums.add(&part.sums, Sign::Plus);
            total.users += part.own;
            users.extend(part.users);
        }
    }
    for (total, mut users) in total.iter_mut().zip(users) {
        // Some lists that are in order, or nearly: this sort merges them.
        users.sort();
        users.dedup();
        total.users += users.len() as u64;
    }
    Ok(total)
}
