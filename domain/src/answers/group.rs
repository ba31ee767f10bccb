//! Companies and groups, over all projects of their organization: the questions and the parts that both have in common,
//! and the answers about groups.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::question::{Projects, Question, Reader, candidates, rank};
use super::{GroupMetrics, Listed};
use crate::facts::Moment;
use crate::groups::{Group, GroupSums};
use crate::ids::{ProjectId, RawId, RecordKey};
use crate::money::Amount;
use crate::people::Person;
use crate::records::{Fault, Source, page_key};
use crate::rollup::Sign;
use crate::rollups::Activity;
use crate::time::{Instant, Window};

/// The keys that one company or group was told by; the first is the one that it goes by.
pub(super) type Keys = Vec<RecordKey>;

/// Asks which groups of a type were active.
#[derive(Debug, Clone)]
pub(super) struct AskActive {
    pub(super) kind: Box<str>,
    pub(super) window: Window,
}

impl Question for AskActive {
    type Part = HashMap<RecordKey, Activity>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Part, Fault> {
        let mut active = HashMap::new();
        for (key, activity) in reader.project.rollups.group_activity.of_type(&self.kind, self.window) {
            add_activity(&mut active, key, activity);
        }
        Ok(active)
    }
}

fn add_activity(active: &mut HashMap<RecordKey, Activity>, key: RecordKey, activity: Activity) {
    let sum = active.entry(key).or_default();
    sum.events += activity.events;
    sum.revenue += activity.revenue;
}

/// Which groups were active anywhere, with what they did.
pub(super) async fn active<P: Projects>(
    projects: &P,
    kind: &str,
    window: Window,
) -> Result<HashMap<RecordKey, Activity>, P::Error> {
    let mut parts = projects.each(AskActive { kind: kind.into(), window }).await?.into_iter();
    let mut total = parts.next().unwrap_or_default();
    parts.flatten().for_each(|(key, activity)| add_activity(&mut total, key, activity));
    Ok(total)
}

impl<S: Source> Reader<'_, S> {
    /// The record of a company or group of this project, with the pages of `window`.
    fn group(&mut self, key: RecordKey, window: Option<Window>) -> Result<Option<&mut Group>, Fault> {
        let source = self.source;
        let Some(group) = self.project.groups.get_to_load(key, || source.record(key))? else { return Ok(None) };
        if let Some(Window { start, end }) = window {
            group.load(start, end, |serial| source.page::<Group>(page_key(key, serial)))?;
        }
        Ok(Some(group))
    }
}

/// Asks what companies or groups are called, and when they were seen.
#[derive(Debug, Clone)]
pub(super) struct AskNamed {
    pub(super) groups: Vec<Keys>,
}

/// What one group is called, and when it was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedPart {
    /// The key that it goes by, as text.
    pub(super) key: Option<Box<str>>,
    /// The latest name, and when it was told.
    pub(super) name: Option<(Moment, Box<str>)>,
    /// Its first and its last event ever.
    pub(super) seen: Option<(Instant, Instant)>,
}

impl NamedPart {
    fn merge(&mut self, other: Self) {
        self.key = self.key.take().or(other.key);
        self.name = self.name.take().into_iter().chain(other.name).max();
        let both = self.seen.zip(other.seen).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.seen = both.or(self.seen).or(other.seen);
    }

    pub(super) fn name(&self) -> Option<String> {
        self.name.as_ref().map(|(_, name)| name.to_string())
    }

    /// What orders equals: the name, the key where there is none; then the key.
    pub(super) fn rank(&self) -> (String, String) {
        let key = self.key.as_deref().unwrap_or_default().to_owned();
        (self.name().unwrap_or_else(|| key.clone()), key)
    }
}

impl Question for AskNamed {
    type Part = Vec<NamedPart>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<NamedPart>, Fault> {
        let source = reader.source;
        let mut named = Vec::with_capacity(self.groups.len());
        for keys in &self.groups {
            let mut all = NamedPart::default();
            for (place, key) in keys.iter().enumerate() {
                let Some(group) = reader.group(*key, None)? else { continue };
                let seen = group.seen(|serial| source.page::<Group>(page_key(*key, serial)))?;
                let text = (place == 0).then(|| group.key.clone());
                all.merge(NamedPart { key: text, name: group.name.clone(), seen });
            }
            named.push(all);
        }
        Ok(named)
    }
}

/// What some companies or groups are called, and when they were seen, anywhere.
pub(super) async fn named<P: Projects>(projects: &P, groups: Vec<Keys>) -> Result<Vec<NamedPart>, P::Error> {
    let mut total = vec![NamedPart::default(); groups.len()];
    for part in projects.each(AskNamed { groups }).await? {
        total.iter_mut().zip(part).for_each(|(total, part)| total.merge(part));
    }
    Ok(total)
}

/// Asks what companies or groups did.
#[derive(Debug, Clone)]
pub(super) struct AskFigures {
    groups: Vec<Keys>,
    window: Window,
    /// Whether other projects may know the same users, so that their number alone doesn't do.
    shared: bool,
}

/// What a group did in one project.
#[derive(Debug)]
pub(super) struct FiguresPart {
    sums: GroupSums,
    users: Users,
}

/// Its distinct identities.
#[derive(Debug)]
enum Users {
    /// So many: nobody else knows any of them.
    Count(u64),
    /// These.
    Set(HashSet<Who>),
}

/// An identity, as other projects may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Who {
    /// A user: the same in all projects.
    User(RecordKey),
    /// An identity of one project.
    Of(ProjectId, RecordKey),
}

impl Question for AskFigures {
    type Part = Vec<FiguresPart>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<FiguresPart>, Fault> {
        self.groups.iter().map(|keys| self.figures(keys, reader)).collect()
    }
}

impl AskFigures {
    fn figures<S: Source>(&self, keys: &Keys, reader: &mut Reader<'_, S>) -> Result<FiguresPart, Fault> {
        let mut sums = GroupSums::default();
        let mut members: HashSet<RecordKey> = HashSet::new();
        for key in keys {
            if let Some(group) = reader.group(*key, Some(self.window))? {
                sums.add(&group.sums(self.window), Sign::Plus);
                members.extend(group.members(self.window).map(|(member, _)| member));
            }
        }
        let users = match self.shared {
            false => Users::Count(members.len() as u64),
            true => Users::Set(members.into_iter().map(|member| reader.who(member)).collect::<Result<_, Fault>>()?),
        };
        Ok(FiguresPart { sums, users })
    }
}

impl<S: Source> Reader<'_, S> {
    /// The key of the identity that groups know as `member`.
    pub(super) fn member(&mut self, member: RecordKey) -> Result<RecordKey, Fault> {
        self.project.resolve(member, self.source)
    }

    fn who(&mut self, member: RecordKey) -> Result<Who, Fault> {
        let source = self.source;
        let key = self.member(member)?;
        let is_user = match self.project.people.get(key, || source.record(key))? {
            Some(Person::Identity(identity)) => matches!(identity.id, RawId::User(_)),
            _ => false,
        };
        Ok(if is_user { Who::User(key) } else { Who::Of(self.id, key) })
    }
}

/// What a company or group did anywhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) sums: GroupSums,
    pub(super) users: u64,
}

/// What some companies or groups did in a window, anywhere.
pub(super) async fn figures<P: Projects>(projects: &P, groups: Vec<Keys>, window: Window) -> Result<Vec<Figures>, P::Error> {
    let mut total = vec![Figures::default(); groups.len()];
    let mut sets: BTreeMap<usize, HashSet<Who>> = BTreeMap::new();
    let shared = projects.count() > 1;
    for part in projects.each(AskFigures { groups, window, shared }).await? {
        for (at, part) in part.into_iter().enumerate() {
            total[at].sums.add(&part.sums, Sign::Plus);
            match part.users {
                Users::Count(users) => total[at].users += users,
                Users::Set(users) => sets.entry(at).or_default().extend(users),
            }
        }
    }
    sets.into_iter().for_each(|(at, set)| total[at].users = set.len() as u64);
    Ok(total)
}

/// Asks for the keys of what goes by these names.
#[derive(Debug, Clone)]
struct AskGroupKey {
    kind: Box<str>,
    id: Box<str>,
}

impl Question for AskGroupKey {
    type Part = RecordKey;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<RecordKey, Fault> {
        Ok(reader.hasher.group(&self.kind, &self.id))
    }
}

/// What a group did in a window. `None`: there is no such group.
///
/// # Errors
/// A project did not answer.
pub async fn group_metrics<P: Projects>(
    projects: &P,
    group_type: &str,
    group_key: &str,
    window: Window,
) -> Result<Option<GroupMetrics>, P::Error> {
    let ask = AskGroupKey { kind: group_type.into(), id: group_key.into() };
    let Some(key) = projects.each(ask).await?.pop() else { return Ok(None) };
    let named = named(projects, vec![vec![key]]).await?.pop().unwrap_or_default();
    let Some((_, last_seen)) = named.seen else { return Ok(None) };
    let figures = figures(projects, vec![vec![key]], window).await?.pop().unwrap_or_default();
    Ok(Some(metrics(group_type, &named, &figures, last_seen)))
}

fn metrics(group_type: &str, named: &NamedPart, figures: &Figures, last_seen: Instant) -> GroupMetrics {
    GroupMetrics {
        group_type: group_type.to_owned(),
        group_key: named.key.as_deref().unwrap_or_default().to_owned(),
        name: named.name(),
        events: figures.sums.events,
        users: figures.users,
        last_seen,
    }
}

/// One row of a top list, before its users are counted.
#[derive(Debug, Clone)]
pub(super) struct TopRow {
    pub(super) keys: Keys,
    pub(super) events: i64,
    pub(super) revenue: Amount,
    pub(super) named: NamedPart,
}

/// The first rows of a top list, named and in order.
pub(super) async fn top_rows<P: Projects>(projects: &P, rows: Vec<TopRow>, limit: usize) -> Result<Listed<TopRow>, P::Error> {
    let mut rows: Vec<TopRow> = rows.into_iter().filter(|row| row.events > 0).collect();
    let truncated = rows.len() > limit;
    candidates(&mut rows, limit, |row| row.events);
    let keys = rows.iter().map(|row| row.keys.clone()).collect();
    for (row, named) in rows.iter_mut().zip(named(projects, keys).await?) {
        row.named = named;
    }
    rank(&mut rows, |row| row.events, |row| row.named.rank());
    rows.truncate(limit);
    Ok(Listed { rows, truncated })
}

/// The most active groups of a type in a window.
///
/// # Errors
/// A project did not answer.
pub async fn top_groups<P: Projects>(
    projects: &P,
    group_type: &str,
    window: Window,
    limit: usize,
) -> Result<Listed<GroupMetrics>, P::Error> {
    let active = active(projects, group_type, window).await?;
    let row = |(key, did): (RecordKey, Activity)| TopRow {
        keys: vec![key],
        events: did.events,
        revenue: did.revenue,
        named: NamedPart::default(),
    };
    let Listed { rows, truncated } = top_rows(projects, active.into_iter().map(row).collect(), limit).await?;
    let figures = figures(projects, rows.iter().map(|row| row.keys.clone()).collect(), window).await?;
    let metrics = |(row, figures): (&TopRow, &Figures)| Some(metrics(group_type, &row.named, figures, row.named.seen?.1));
    Ok(Listed { rows: rows.iter().zip(&figures).filter_map(metrics).collect(), truncated })
}
