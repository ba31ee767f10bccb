//! The most active identified users of a company.

use super::aliases::aliases_of;
use super::identity::Subject;
use super::linked::{Linked, Resolved};
use super::parts::{self, Keys, MemberRef};
use super::top_k;
use crate::cache::table::KeyHashBuilder;
use crate::company::group::MemberDay;
use crate::facts::{GroupRef, Moment, Span};
use crate::fault::Fault;
use crate::identity::{Identity, IdentityId, IdentitySlot};
use crate::ids::{PublicCompany, RecordKey};
use crate::queries::answers::{Listed, TopUser};
use crate::queries::partial::{Projects, Query, Reader, candidates, rank};
use crate::records::{Source, page_key};
use crate::time::{Instant, Window};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Asks for the identified users who were active at a company.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MembersQuery {
    keys: Keys,
    window: Window,
    /// The number of users that is enough if no other project is involved.
    enough: Option<usize>,
    /// The range of members to return, if all of them don't fit into one message.
    only: Option<(RecordKey, RecordKey)>,
}

/// The active users of a company in one project, with their number of events.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum MembersPartial {
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
            // One more user than the list has, to detect truncation, and all users that tie with
            // the last.
            candidates(&mut members, enough.saturating_add(1), |(_, events)| *events);
        }
        Ok(MembersPartial::Users(members))
    }
}

/// Asks for the identified users who were active at the company of a public id, as if it had only
/// one key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CompanyMembersQuery {
    company: PublicCompany,
    window: Window,
    enough: Option<usize>,
}

impl Query for CompanyMembersQuery {
    type Partial = Option<(Linked, MembersPartial)>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let Some(key) = reader.company_of(self.company)? else { return Ok(None) };
        let members = MembersQuery { keys: vec![key], window: self.window, enough: self.enough, only: None };
        Ok(Some((reader.linked(key)?, members.answer(reader)?)))
    }
}

/// An id, the most recently reported e-mail address with its time, and the time when the user was
/// last seen, if requested.
pub(super) type ReportedUser = (IdentityId, Option<(Moment, Box<str>)>, Option<Instant>);

/// Asks for the ids and the latest e-mail addresses of users.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UserNamesQuery {
    users: Vec<MemberRef>,
    /// The company, if the times when they were last seen there are requested.
    at: Option<Keys>,
}

impl Query for UserNamesQuery {
    type Partial = Vec<Option<ReportedUser>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (at, source) = (self.at.as_ref().map(|keys| keys.iter().copied().collect::<HashSet<_>>()), reader.source);
        let user = |who: &MemberRef| {
            let Some(identity) = known(*who, reader)? else { return Ok(None) };
            let seen = at.as_ref().map_or(Ok(None), |keys| seen_at(identity, keys, source))?;
            let latest = identity.emails.iter().max_by_key(|(_, reported_at)| *reported_at);
            Ok(Some((identity.id.clone(), latest.map(|(email, reported_at)| (*reported_at, email.clone())), seen)))
        };
        self.users.iter().map(user).collect()
    }
}

/// Asks for the times when users were last seen at a company.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LastSeenAtQuery {
    users: Vec<MemberRef>,
    keys: Keys,
}

impl Query for LastSeenAtQuery {
    type Partial = Vec<Option<Instant>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (keys, source) = (self.keys.iter().copied().collect(), reader.source);
        let seen = |who: &MemberRef| known(*who, reader)?.map_or(Ok(None), |identity| seen_at(identity, &keys, source));
        self.users.iter().map(seen).collect()
    }
}

/// Returns the record of an identity in this project, if any.
pub(super) fn known<'r, S: Source>(who: MemberRef, reader: &'r mut Reader<'_, S>) -> Result<Option<&'r mut Identity>, Fault> {
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

/// Returns the time when an identity was last seen at a company with these keys.
fn seen_at<S: Source>(identity: &mut Identity, keys: &HashSet<RecordKey>, source: &S) -> Result<Option<Instant>, Fault> {
    let member = identity.history_key;
    let page = |serial| source.page::<IdentitySlot>(page_key(member, serial));
    identity.facts.load_days(Span::ALL, page)?;
    identity.facts.load_named(Span::ALL, page)?;
    let own = identity.company.map(|association| association.company);
    let here = |named: Option<GroupRef>| named.and_then(GroupRef::company).or(own).is_some_and(|company| keys.contains(&company));
    let days = identity.facts.named_days(Span::ALL).filter(|(_, named, _)| here(*named));
    Ok(days.filter_map(|(day, _, sums)| sums.seen.at(day)).map(|(_, last)| last).max())
}

/// Returns the candidates for the first `limit` active users of a company with their events, and
/// whether there are more. `parts` are the projects' answers to `ask`.
async fn most_active<P: Projects>(
    projects: &P,
    ask: &MembersQuery,
    parts: Vec<MembersPartial>,
    limit: usize,
) -> Result<(Vec<(MemberRef, u64)>, bool), P::Error> {
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

/// Divides all keys into ranges with few visits each. Keys are hashes, so the ranges are even.
fn slices(visits: usize, together: usize) -> impl Iterator<Item = (RecordKey, RecordKey)> {
    let parts = visits.div_ceil(together / 2).clamp(1, 1 << 20) as u128;
    let first = move |part: u128| u128::MAX / parts * part;
    (0..parts).map(move |part| {
        let last = if part + 1 == parts { u128::MAX } else { first(part + 1) - 1 };
        (RecordKey(first(part)), RecordKey(last))
    })
}

/// Returns a company's most active identified users in a window; `None` if there is no such
/// company.
///
/// # Errors
/// A project did not answer.
pub async fn company_top_users<P: Projects>(
    projects: &P,
    id: &str,
    window: Window,
    limit: usize,
) -> Result<Option<Listed<TopUser>>, P::Error> {
    let Ok(company) = PublicCompany::from_id(id, projects.organization()) else { return Ok(None) };
    let enough = (projects.count() == 1).then_some(limit);
    let of_company = CompanyMembersQuery { company, window, enough };
    let (linked, mut parts): (Vec<Linked>, Vec<_>) = projects.scatter(of_company).await?.into_iter().flatten().unzip();
    let Some(company) = Linked::resolve(&linked) else { return Ok(None) };
    let members = |keys| MembersQuery { keys, window, enough, only: None };
    let ask = match company {
        Resolved::Alone(key) => members(vec![key]),
        Resolved::Linked(company) => {
            let ask = members(aliases_of(projects, vec![company]).await?.pop().unwrap_or_default());
            parts = projects.scatter(ask.clone()).await?;
            ask
        }
    };
    let (users, truncated) = most_active(projects, &ask, parts, limit).await?;
    let keys = ask.keys;
    if users.is_empty() && !is_seen(projects, &keys).await? {
        return Ok(None);
    }
    let rows = rows(projects, &users, &keys, limit).await?;
    let row = |row: UserRow| {
        let UserRow { name, user_id, email, public, events, last_seen, .. } = row;
        Some(TopUser { resolved_identifier: name, identity_id: public, user_id, email, events, last_seen: last_seen? })
    };
    Ok(Some(Listed { rows: rows.into_iter().filter_map(row).collect(), truncated }))
}

/// Returns the first `limit` of some users, in order.
async fn rows<P: Projects>(
    projects: &P,
    users: &[(MemberRef, u64)],
    keys: &Keys,
    limit: usize,
) -> Result<Vec<UserRow>, P::Error> {
    let mut rows: Vec<UserRow> = Vec::new();
    // A short list gets names and times in one step.
    let are_few = users.len() <= limit.saturating_add(top_k::FEW_MORE);
    for some in users.chunks(top_k::NAMED_TOGETHER) {
        let mut named = named_users(projects, some, are_few.then_some(keys)).await?;
        let last = limit.checked_sub(1).and_then(|last| rows.get(last));
        named.retain(|row| last.is_none_or(|last| (Reverse(row.events), &row.name) <= (Reverse(last.events), &last.name)));
        if !are_few {
            see_users(projects, &mut named, keys).await?;
        }
        rows.append(&mut named);
        rank(&mut rows, |row| row.events, |row| (row.name.clone(), Reverse(row.last_seen), row.public.clone()));
        rows.truncate(limit);
    }
    Ok(rows)
}

/// One row of a list of users.
struct UserRow {
    who: MemberRef,
    name: String,
    user_id: Option<String>,
    email: Option<String>,
    events: u64,
    /// The public id.
    public: String,
    /// The time of the last event at the company, once requested.
    last_seen: Option<Instant>,
}

/// Looks up the names of users. With `at`, a company, also looks up when they were last seen there.
async fn named_users<P: Projects>(projects: &P, users: &[(MemberRef, u64)], at: Option<&Keys>) -> Result<Vec<UserRow>, P::Error> {
    let query = UserNamesQuery { users: users.iter().map(|(who, _)| *who).collect(), at: at.cloned() };
    let answers = projects.scatter(query).await?;
    let row = |(at, (who, events)): (usize, &(MemberRef, u64))| {
        let parts = || answers.iter().filter_map(|part| part.get(at)?.as_ref());
        let (id, ..) = parts().next()?;
        let email = parts().filter_map(|(_, email, _)| email.as_ref()).max().map(|(_, email)| email.to_string());
        let last_seen = parts().filter_map(|(.., seen)| *seen).max();
        let project = if let MemberRef::Of(project, _) = who { Some(*project) } else { None };
        let public = Subject { id: id.clone(), project }.public(projects.organization());
        let name = email.clone().unwrap_or_else(|| id.text());
        Some(UserRow { who: *who, name, user_id: id.user_id().map(str::to_owned), email, events: *events, public, last_seen })
    };
    Ok(users.iter().enumerate().filter_map(row).collect())
}

/// Looks up when users were last seen at a company.
async fn see_users<P: Projects>(projects: &P, rows: &mut [UserRow], keys: &Keys) -> Result<(), P::Error> {
    let seen = projects.scatter(LastSeenAtQuery { users: rows.iter().map(|row| row.who).collect(), keys: keys.clone() }).await?;
    for (at, row) in rows.iter_mut().enumerate() {
        row.last_seen = seen.iter().filter_map(|part| part.get(at).copied().flatten()).max();
    }
    Ok(())
}

/// Whether a company has any event.
async fn is_seen<P: Projects>(projects: &P, keys: &Keys) -> Result<bool, P::Error> {
    let named = parts::named(projects, vec![keys.clone()]).await?.pop();
    Ok(named.is_some_and(|named| named.seen.is_some()))
}
