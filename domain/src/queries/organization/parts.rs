//! The common part of queries about companies and groups: partial answers of projects, and their merging.

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
    /// Returns the record of a company or group of this project, and the loader of its pages.
    pub(super) fn group(&mut self, key: RecordKey) -> Result<Option<(&mut Group, impl LoadGroupPage)>, Fault> {
        let source = self.source;
        let group = self.project.groups.get_to_load(key, || source.record(key))?;
        Ok(group.map(|group| (group, move |serial| source.page::<Group>(page_key(key, serial)))))
    }
}

/// Asks for the names of companies or groups, and the times of their events.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct DescribeQuery {
    groups: Vec<Keys>,
    /// Their type and a window, if their number of events in the window is requested.
    events: Option<(Box<str>, Window)>,
}

/// The name of a group, and the times of its events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Description {
    /// The canonical key, as text.
    pub(super) key: Option<Box<str>>,
    /// The most recently reported name and its time.
    pub(super) name: Option<(Moment, Box<str>)>,
    /// The times of the first and the last event ever.
    pub(super) seen: Option<(Instant, Instant)>,
    /// The number of events in the requested window, if any.
    pub(super) events: i64,
    /// The number of projects that know the group.
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

    /// Returns the sort key for ties: the name, or the key if there is none; then the key.
    pub(super) fn rank(&self) -> (String, String) {
        let key = self.key.as_deref().unwrap_or_default().to_owned();
        (self.name().unwrap_or_else(|| key.clone()), key)
    }
}

impl Query for DescribeQuery {
    type Partial = Vec<Description>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Description>, Fault> {
        let mut named = Vec::with_capacity(self.groups.len());
        // The numbers of the groups, and for each the index of the group that it counts for.
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
            let (window, activity) = (reader.kept(*window), &reader.project.rollups.group_activity);
            let kind = reader.hasher.group_type(kind);
            let events = activity.sums_of(kind, &numbers, &activity.cover(kind, window));
            places.into_iter().zip(events).for_each(|(place, events)| named[place].events += events);
        }
        Ok(named)
    }
}

/// Returns the names of companies or groups in all projects, and the times of their events; and their number of events if
/// a type and a window are given.
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
    /// The groups, and for each whether several projects know it. Their users may then overlap, so counts alone don't
    /// suffice.
    groups: Vec<(Keys, bool)>,
    window: Window,
}

/// The figures of a group in one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FiguresPartial {
    sums: GroupSums,
    /// The number of distinct identities that only this project knows.
    own: u64,
    /// The other identities: users, whom other projects may know. Almost sorted.
    users: Vec<RecordKey>,
}

/// An identity of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum MemberRef {
    /// A user, shared by all projects.
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
        let (mut lists, window) = (0, reader.kept(self.window));
        for key in keys {
            let Some((group, mut load)) = reader.group(*key)? else { continue };
            part.sums.add(&group.sums(window, &mut load)?, Sign::Plus);
            match group.count_members(window) {
                Some(members) if !shared && keys.len() == 1 => part.own = members,
                _ => group.members(window, &mut part.users, load)?,
            }
            lists += 1;
        }
        if lists > 1 {
            // A member who was active under several keys occurs once per key. Each list is already sorted.
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
    /// Resolves a member of a group, and returns whether the member is identified. Reads no record.
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

    /// Keeps the users among the members, and counts the others.
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

/// The figures of a company or group over all projects.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) sums: GroupSums,
    pub(super) users: u64,
}

/// Returns the figures of companies or groups in a window over all projects. For each, the number of projects that know
/// it is given.
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
        // The concatenated lists are almost sorted, so this sort merges them.
        users.sort();
        users.dedup();
        total.users += users.len() as u64;
    }
    Ok(total)
}
