//! The common part of queries about companies and groups: the partial answers of projects, and
//! their merging.

use crate::company::group::{Group, GroupSums, LoadGroupPage};
use crate::contribution::Sign;
use crate::facts::Moment;
use crate::fault::Fault;
use crate::ids::{ProjectId, RecordKey};
use crate::indexes::{MemberAlias, NamePrefix};
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::{Source, page_key};
use crate::time::{Instant, Window};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The reported keys of one company or group, its canonical key first.
pub(super) type Keys = Vec<RecordKey>;

/// The rank of a group in its project's list: by activity, descending, then by name prefix.
pub(super) type Rank = (Reverse<i64>, NamePrefix);

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
pub(super) struct DescribeQuery {
    groups: Vec<Keys>,
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
    /// The number of projects that know the group.
    pub(super) projects: usize,
}

impl Description {
    pub(super) fn merge(&mut self, other: Self) {
        self.key = self.key.take().or(other.key);
        self.name = self.name.take().into_iter().chain(other.name).max();
        let both = self.seen.zip(other.seen).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.seen = both.or(self.seen).or(other.seen);
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

impl<S: Source> Reader<'_, S> {
    /// Describes a company or group of this project.
    pub(super) fn description(&mut self, keys: &Keys) -> Result<Description, Fault> {
        let mut all = Description::default();
        for (at, key) in keys.iter().enumerate() {
            let Some((group, load)) = self.group(*key)? else { continue };
            let key = (at == 0).then(|| group.key.clone());
            all.merge(Description { key, name: group.name.clone(), seen: group.seen(load)?, projects: 0 });
            all.projects = 1;
        }
        Ok(all)
    }
}

impl Query for DescribeQuery {
    type Partial = Vec<Description>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Description>, Fault> {
        self.groups.iter().map(|keys| reader.description(keys)).collect()
    }
}

/// Returns the names of companies or groups in all projects, and the times of their events.
pub(super) async fn named<P: Projects>(projects: &P, groups: Vec<Keys>) -> Result<Vec<Description>, P::Error> {
    let mut total = vec![Description::default(); groups.len()];
    for part in projects.scatter(DescribeQuery { groups }).await? {
        total.iter_mut().zip(part).for_each(|(total, part)| total.merge(part));
    }
    Ok(total)
}

/// Asks for the figures of companies or groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FiguresQuery {
    /// The groups, each with whether several projects know it. Their users may then overlap, so
    /// counts alone are not enough.
    groups: Vec<(Keys, bool)>,
    window: Window,
}

/// The figures of a group in one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FiguresPartial {
    sums: GroupSums,
    /// The number of distinct identities that only this project can know.
    own: u64,
    /// The other identities: users that other projects may know. Almost sorted.
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
        self.groups.iter().map(|(keys, shared)| reader.figures(keys, *shared, self.window)).collect()
    }
}

impl<S: Source> Reader<'_, S> {
    /// Returns the figures of a company or group in this project. With `shared`, lists the users,
    /// since other projects may know them.
    pub(super) fn figures(&mut self, keys: &Keys, shared: bool, window: Window) -> Result<FiguresPartial, Fault> {
        let mut part = FiguresPartial { sums: GroupSums::default(), own: 0, users: Vec::new() };
        let (mut lists, window) = (0, self.kept(window));
        for key in keys {
            let Some((group, mut load)) = self.group(*key)? else { continue };
            part.sums.add(&group.sums(window, &mut load)?, Sign::Plus);
            match group.count_members(window) {
                Some(members) if !shared && keys.len() == 1 => part.own = members,
                _ => group.members(window, &mut part.users, load)?,
            }
            lists += 1;
        }
        if lists > 1 {
            // A member with several keys occurs once per key. Each list is already sorted.
            part.users.sort();
            part.users.dedup();
        }
        if shared {
            self.tell_users_apart(&mut part);
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

/// The figures of some projects, and their users.
#[derive(Debug, Clone, Default)]
pub(super) struct FiguresSum {
    figures: Figures,
    users: Vec<RecordKey>,
}

impl FiguresSum {
    pub(super) fn add(&mut self, part: FiguresPartial) {
        self.figures.sums.add(&part.sums, Sign::Plus);
        self.figures.users += part.own;
        self.users.extend(part.users);
    }

    /// Returns the figures, with each user counted once.
    pub(super) fn total(self) -> Figures {
        let Self { mut figures, mut users } = self;
        // The concatenated lists are almost sorted, so this sort merges them.
        users.sort();
        users.dedup();
        figures.users += users.len() as u64;
        figures
    }
}

/// Returns the figures of companies or groups in a window over all projects. Each comes with the
/// number of projects that know it.
pub(super) async fn figures<P: Projects>(
    projects: &P,
    groups: Vec<(Keys, usize)>,
    window: Window,
) -> Result<Vec<Figures>, P::Error> {
    let groups: Vec<(Keys, bool)> = groups.into_iter().map(|(keys, projects)| (keys, projects > 1)).collect();
    let mut total = vec![FiguresSum::default(); groups.len()];
    for part in projects.scatter(FiguresQuery { groups, window }).await? {
        total.iter_mut().zip(part).for_each(|(total, part)| total.add(part));
    }
    Ok(total.into_iter().map(FiguresSum::total).collect())
}
