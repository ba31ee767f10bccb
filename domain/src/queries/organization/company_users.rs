//! The most active identified users of a company.

use super::aliases::aliases_of;
use super::company::by_id;
use super::identity::Subject;
use super::parts::{self, Keys, MemberRef};
use super::top_k;
use crate::cache::table::KeyHashBuilder;
use crate::company::group::MemberDay;
use crate::facts::{GroupRef, Moment, Span};
use crate::fault::Fault;
use crate::identity::{Identity, IdentityId, IdentitySlot};
use crate::ids::RecordKey;
use crate::queries::answers::{Listed, TopUser};
use crate::queries::partial::{Projects, Query, Reader, candidates, rank};
use crate::records::{Source, page_key};
use crate::time::{Instant, Window};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Asks for the identified users who were active at a company.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MembersQuery {
    keys: Keys,
    window: Window,
    /// The number of users that suffices if no other project is involved.
    enough: Option<usize>,
    /// The range of members to return, if all of them are too many for one message.
    only: Option<(RecordKey, RecordKey)>,
}

/// The active users of a company in one project, with their number of events.
#[derive(Debug, Serialize, Deserialize)]
enum MembersPartial {
    Users(Vec<(MemberRef, u64)>),
    /// The number of member days, if it is too large for one message.
    TooMany(usize),
}

impl Query for MembersQuery {
    type Partial = MembersPartial;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let mut events: HashMap<RecordKey, u64, KeyHashBuilder> = HashMap::default();
        let (mut visits, together) = (0, reader.project.limits.member_days);
        let window = reader.kept(self.window);
        for key in &self.keys {
            let Some((group, load)) = reader.group(*key)? else { continue };
            visits += group.count_visits();
            let mut count = |member, did: MemberDay| *events.entry(member).or_default() += u64::from(did.events);
            match self.only {
                Some(only) => group.visits_of(window, only, load, count)?,
                None if visits <= together => group.visits(window, load)?.for_each(|(member, did)| count(member, did)),
                None => {}
            }
        }
        if self.only.is_none() && visits > together {
            return Ok(MembersPartial::TooMany(visits));
        }
        let identified = |(member, events)| {
            let (who, identified) = reader.who(member);
            identified.then_some((who, events))
        };
        let mut members: Vec<(MemberRef, u64)> = events.into_iter().filter_map(identified).collect();
        if let Some(enough) = self.enough {
            // One more than the list holds, to detect whether it is cut; and all that tie with the last.
            candidates(&mut members, enough.saturating_add(1), |(_, events)| *events);
        }
        Ok(MembersPartial::Users(members))
    }
}

/// An id, and the most recently reported e-mail address with its time.
type ReportedEmail = (IdentityId, Option<(Moment, Box<str>)>);

/// Asks for the ids and the latest e-mail addresses of users.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct UserNamesQuery {
    users: Vec<MemberRef>,
}

impl Query for UserNamesQuery {
    type Partial = Vec<Option<ReportedEmail>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let user = |who: &MemberRef| {
            let Some(identity) = known(*who, reader)? else { return Ok(None) };
            let latest = identity.emails.iter().max_by_key(|(_, reported_at)| *reported_at);
            Ok(Some((identity.id.clone(), latest.map(|(email, reported_at)| (*reported_at, email.clone())))))
        };
        self.users.iter().map(user).collect()
    }
}

/// Asks for the times at which users were last seen at a company.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LastSeenAtQuery {
    users: Vec<MemberRef>,
    keys: Keys,
}

impl Query for LastSeenAtQuery {
    type Partial = Vec<Option<Instant>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (keys, source): (HashSet<RecordKey>, _) = (self.keys.iter().copied().collect(), reader.source);
        let seen = |who: &MemberRef| {
            let Some(identity) = known(*who, reader)? else { return Ok(None) };
            let member = identity.history_key;
            let page = |serial| source.page::<IdentitySlot>(page_key(member, serial));
            identity.facts.load_days(Span::ALL, page)?;
            identity.facts.load_named(Span::ALL, page)?;
            Ok(last_seen(identity, &keys))
        };
        self.users.iter().map(seen).collect()
    }
}

/// Returns the record of an identity in this project, if any.
fn known<'r, S: Source>(who: MemberRef, reader: &'r mut Reader<'_, S>) -> Result<Option<&'r mut Identity>, Fault> {
    let key = match who {
        MemberRef::User(user) => user,
        // An identity that is not a user has the same key in all lists.
        MemberRef::Of(project, member) if project == reader.id => member,
        MemberRef::Of(..) => return Ok(None),
    };
    let source = reader.source;
    Ok(match reader.project.people.get_to_load(key, || source.record(key))? {
        Some(IdentitySlot::Canonical(identity)) => Some(identity),
        _ => None,
    })
}

fn last_seen(identity: &Identity, keys: &HashSet<RecordKey>) -> Option<Instant> {
    let own = identity.company.map(|association| association.company);
    let here = |named: Option<GroupRef>| named.and_then(GroupRef::company).or(own).is_some_and(|company| keys.contains(&company));
    let days = identity.facts.named_days(Span::ALL).filter(|(_, named, _)| here(*named));
    days.filter_map(|(day, _, sums)| sums.seen.at(day)).map(|(_, last)| last).max()
}

/// Returns the candidates for the first `limit` active users of a company with their events, and whether there are more.
async fn most_active<P: Projects>(
    projects: &P,
    keys: &Keys,
    window: Window,
    limit: usize,
) -> Result<(Vec<(MemberRef, u64)>, bool), P::Error> {
    let enough = (projects.count() == 1).then_some(limit);
    let ask = MembersQuery { keys: keys.clone(), window, enough, only: None };
    let parts = projects.scatter(ask.clone()).await?;
    let visits = parts.iter().map(|part| if let MembersPartial::TooMany(visits) = part { *visits } else { 0 }).max();
    let mut parts = match visits.filter(|visits| *visits > 0) {
        None => users_of(parts),
        Some(visits) => {
            let mut all: Vec<Vec<(MemberRef, u64)>> = Vec::new();
            for only in slices(visits, projects.limits().member_days) {
                let some = users_of(projects.scatter(MembersQuery { only: Some(only), ..ask.clone() }).await?);
                all.resize_with(some.len().max(all.len()), Vec::new);
                all.iter_mut().zip(some).for_each(|(all, some)| all.extend(some));
            }
            all
        }
    };
    parts.retain(|part| !part.is_empty());
    let mut users = if parts.len() > 1 {
        let mut total: HashMap<MemberRef, u64, KeyHashBuilder> = HashMap::default();
        total.reserve(parts.iter().map(Vec::len).sum());
        parts.into_iter().flatten().for_each(|(who, events)| *total.entry(who).or_default() += events);
        total.into_iter().collect()
    } else {
        parts.pop().unwrap_or_default()
    };
    let truncated = users.len() > limit;
    candidates(&mut users, limit, |(_, events)| *events);
    Ok((users, truncated))
}

fn users_of(parts: Vec<MembersPartial>) -> Vec<Vec<(MemberRef, u64)>> {
    let users = |part| if let MembersPartial::Users(users) = part { users } else { Vec::new() };
    parts.into_iter().map(users).collect()
}

/// Divides all keys into ranges, so that each has few of the visits: keys are hashes.
fn slices(visits: usize, together: usize) -> impl Iterator<Item = (RecordKey, RecordKey)> {
    let parts = visits.div_ceil(together / 2).clamp(1, 1 << 20) as u128;
    let first = move |part: u128| u128::MAX / parts * part;
    (0..parts).map(move |part| {
        let last = if part + 1 == parts { u128::MAX } else { first(part + 1) - 1 };
        (RecordKey(first(part)), RecordKey(last))
    })
}

/// Returns a company's most active identified users in a window; `None` if there is no such company.
///
/// # Errors A project did not answer.
pub async fn company_top_users<P: Projects>(
    projects: &P,
    id: &str,
    window: Window,
    limit: usize,
) -> Result<Option<Listed<TopUser>>, P::Error> {
    let Some(company) = by_id(projects, id).await? else { return Ok(None) };
    let keys = aliases_of(projects, vec![company]).await?.pop().unwrap_or_default();
    let (users, truncated) = most_active(projects, &keys, window, limit).await?;
    if users.is_empty() && !is_seen(projects, &keys).await? {
        return Ok(None);
    }
    let mut rows: Vec<UserRow> = Vec::new();
    for some in users.chunks(top_k::NAMED_TOGETHER) {
        let mut named = named_users(projects, some).await?;
        let last = limit.checked_sub(1).and_then(|last| rows.get(last));
        named.retain(|row| last.is_none_or(|last| (Reverse(row.events), &row.name) <= (Reverse(last.events), &last.name)));
        see_users(projects, &mut named, &keys).await?;
        rows.append(&mut named);
        rank(&mut rows, |row| row.events, |row| (row.name.clone(), Reverse(row.last_seen), row.public.clone()));
        rows.truncate(limit);
    }
    let row = |row: UserRow| {
        let UserRow { name, public, events, last_seen, .. } = row;
        Some(TopUser { resolved_identifier: name, identity_id: public, events, last_seen: last_seen? })
    };
    Ok(Some(Listed { rows: rows.into_iter().filter_map(row).collect(), truncated }))
}

/// One row of a list of users.
struct UserRow {
    who: MemberRef,
    id: IdentityId,
    name: String,
    events: u64,
    /// The public id and the time of the last event at the company; filled in later.
    public: String,
    last_seen: Option<Instant>,
}

/// Names users.
async fn named_users<P: Projects>(projects: &P, users: &[(MemberRef, u64)]) -> Result<Vec<UserRow>, P::Error> {
    let answers = projects.scatter(UserNamesQuery { users: users.iter().map(|(who, _)| *who).collect() }).await?;
    let row = |(at, (who, events)): (usize, &(MemberRef, u64))| {
        let parts = || answers.iter().filter_map(|part| part.get(at)?.as_ref());
        let (id, _) = parts().next()?;
        let email = parts().filter_map(|(_, email)| email.as_ref()).max().map(|(_, email)| email.to_string());
        let name = email.unwrap_or_else(|| id.text());
        Some(UserRow { who: *who, id: id.clone(), name, events: *events, public: String::new(), last_seen: None })
    };
    Ok(users.iter().enumerate().filter_map(row).collect())
}

/// Looks up the public ids of users, and when they were last seen at a company.
async fn see_users<P: Projects>(projects: &P, rows: &mut [UserRow], keys: &Keys) -> Result<(), P::Error> {
    let seen = projects.scatter(LastSeenAtQuery { users: rows.iter().map(|row| row.who).collect(), keys: keys.clone() }).await?;
    for (at, row) in rows.iter_mut().enumerate() {
        row.last_seen = seen.iter().filter_map(|part| part.get(at).copied().flatten()).max();
        let project = if let MemberRef::Of(project, _) = row.who { Some(project) } else { None };
        row.public = Subject { id: row.id.clone(), project }.public(projects.organization());
    }
    Ok(())
}

/// Whether a company has any event.
async fn is_seen<P: Projects>(projects: &P, keys: &Keys) -> Result<bool, P::Error> {
    let named = parts::named(projects, vec![keys.clone()], None).await?.pop();
    Ok(named.is_some_and(|named| named.seen.is_some()))
}
