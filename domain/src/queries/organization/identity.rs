//! Queries about one identity, over all projects of its organization.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::company::normalise_email;
use crate::facts::{CountKey, Moment, Span, Times};
use crate::fault::Fault;
use crate::identity::{EmailOwners, Identity, IdentityId, IdentitySlot};
use crate::ids::{OrganizationId, ProjectId, RecordKey};
use crate::indexes::dictionary::TermId;
use crate::money::{Amount, ratio};
use crate::queries::answers::{IdentityCounts, IdentitySelector, Listed, Profile};
use crate::queries::partial::{Projects, Query, Reader, rank};
use crate::records::{Source, page_key};
use crate::time::{Day, Window};
use serde::{Deserialize, Serialize};

/// The identity of a query. A user is shared by all projects; any other identity belongs to one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Subject {
    /// The canonical id.
    pub(super) id: IdentityId,
    /// The only project that knows it, unless it is a user.
    pub(super) project: Option<ProjectId>,
}

impl Subject {
    pub(super) fn public(&self, organization: OrganizationId) -> String {
        self.id.public(organization, self.project.unwrap_or(ProjectId(0)))
    }
}

impl<S: Source> Reader<'_, S> {
    /// Returns the record of an identity of this project, with the pages of `window` loaded.
    pub(super) fn identity(&mut self, key: RecordKey, window: Option<Window>) -> Result<Option<&Identity>, Fault> {
        let source = self.source;
        let Some(IdentitySlot::Canonical(identity)) = self.project.people.get_to_load(key, || source.record(key))? else {
            return Ok(None);
        };
        if let Some(window) = window {
            let member = identity.history_key;
            let span = Span { first: window.start, last: window.end };
            let page = |serial| source.page::<IdentitySlot>(page_key(member, serial));
            identity.facts.load_days(span, page)?;
            identity.facts.load_sessions(Times::around(span), page)?;
            identity.facts.load_counts(span, page)?;
        }
        Ok(Some(identity)
            .filter(|identity| !identity.facts.is_empty() && identity.id != IdentityId::Nobody)
            .map(|identity| &**identity))
    }

    /// Returns the record of a subject, if this project knows it.
    fn subject(&mut self, subject: &Subject, window: Option<Window>) -> Result<Option<&Identity>, Fault> {
        if subject.project.is_some_and(|project| project != self.id) {
            return Ok(None);
        }
        self.identity(self.hasher.identity(&subject.id), window)
    }
}

/// Asks for the identities that had an e-mail address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EmailOwnersQuery {
    email: String,
    /// The smallest owner to return, since there may be any number of owners.
    from: RecordKey,
}

/// The number of owners or last-seen times per message.
const OWNERS_TOGETHER: usize = 256;

impl Query for EmailOwnersQuery {
    /// Some owners, and the key of the next one, if there may be more.
    type Partial = (Vec<Subject>, Option<RecordKey>);

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (key, source) = (reader.hasher.email(&self.email), reader.source);
        let page = |serial| source.page::<EmailOwners>(page_key(key, serial));
        let owners = match reader.project.emails.get_to_load(key, || source.record(key))? {
            Some(owners) => owners.from(self.from, OWNERS_TOGETHER, page)?,
            None => Vec::new(),
        };
        let next = owners.get(OWNERS_TOGETHER - 1).and_then(|last| last.0.checked_add(1)).map(RecordKey);
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        for owner in owners {
            let owner = reader.project.resolve(owner, source)?;
            let project = reader.id;
            if let Some(identity) = reader.identity(owner, None)?
                && known.insert(owner)
            {
                let project = (!matches!(identity.id, IdentityId::User(_))).then_some(project);
                found.push(Subject { id: identity.id.clone(), project });
            }
        }
        Ok((found, next))
    }
}

/// Asks for the times of the last events of identities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LastSeenQuery {
    subjects: Vec<Subject>,
}

impl Query for LastSeenQuery {
    type Partial = Vec<Option<Moment>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Option<Moment>>, Fault> {
        let seen = |subject| Ok(reader.subject(subject, None)?.and_then(|identity| Some(identity.seen?.1)));
        self.subjects.iter().map(seen).collect()
    }
}

/// Finds the identity of a selector. If several identities had the e-mail address, returns the one
/// that was seen last.
async fn find<P: Projects>(projects: &P, who: &IdentitySelector) -> Result<Option<Subject>, P::Error> {
    let email = match who {
        IdentitySelector::User(user) => return Ok(Some(Subject { id: IdentityId::User(user.as_str().into()), project: None })),
        IdentitySelector::Email(email) => email,
    };
    let Some(email) = normalise_email(email) else { return Ok(None) };
    let mut best: Option<(Option<Moment>, Subject)> = None;
    let mut from = Some(RecordKey(0));
    while let Some(first) = from {
        let parts = projects.scatter(EmailOwnersQuery { email: email.clone(), from: first }).await?;
        // Owners beyond the point at which another project stopped are reported again.
        from = parts.iter().filter_map(|(_, next)| *next).min();
        let mut known: HashSet<Subject> = HashSet::new();
        let mut subjects: Vec<Subject> = parts.into_iter().flat_map(|(subjects, _)| subjects).collect();
        subjects.retain(|subject| known.insert(subject.clone()));
        if subjects.len() < 2 && first == RecordKey(0) && from.is_none() {
            return Ok(subjects.pop());
        }
        let parts = projects.scatter(LastSeenQuery { subjects: subjects.clone() }).await?;
        let last_seen = |at: usize| parts.iter().filter_map(|part| part.get(at).copied().flatten()).max();
        let seen = subjects.into_iter().enumerate().map(|(at, subject)| (last_seen(at), subject));
        best = best.into_iter().chain(seen).max_by_key(|(seen, _)| *seen);
    }
    Ok(best.map(|(_, subject)| subject))
}

/// Asks for the profile of an identity.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ProfileQuery {
    subject: Subject,
    window: Window,
}

/// The profile of an identity in one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProfilePartial {
    events: u64,
    pageviews: u64,
    durations_ms: Vec<i64>,
    bounces: u64,
    days: BTreeSet<Day>,
    seen: Option<(Moment, Moment)>,
    revenue: Amount,
}

impl Query for ProfileQuery {
    type Partial = Option<ProfilePartial>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Option<ProfilePartial>, Fault> {
        let window = reader.kept(self.window);
        let Some(identity) = reader.subject(&self.subject, Some(window))? else { return Ok(None) };
        let span = Span { first: window.start, last: window.end };
        let mut part = ProfilePartial {
            events: 0,
            pageviews: 0,
            durations_ms: Vec::new(),
            bounces: 0,
            days: identity.facts.active_days(span).collect(),
            seen: identity.seen,
            revenue: Amount::ZERO,
        };
        for entry in identity.facts.days(span) {
            part.events += u64::from(entry.sums.events);
            part.pageviews += u64::from(entry.sums.pageviews);
            part.revenue += entry.sums.money.as_ref().map(|money| money.organization_revenue).unwrap_or_default();
        }
        for session in identity.facts.sessions(Times::around(span)).filter(|session| window.contains(session.day)) {
            part.durations_ms.push(session.last.0 - session.at.time.0);
            part.bounces += u64::from(session.events == 1);
        }
        Ok(Some(part))
    }
}

impl ProfilePartial {
    fn merge(mut self, other: Self) -> Self {
        self.events += other.events;
        self.pageviews += other.pageviews;
        self.durations_ms.extend(other.durations_ms);
        self.bounces += other.bounces;
        self.days.extend(other.days);
        let seen = self.seen.zip(other.seen).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.seen = seen.or(self.seen).or(other.seen);
        self.revenue += other.revenue;
        self
    }
}

/// Converts milliseconds to seconds.
fn seconds(ms: i64) -> Amount {
    Amount::from_micros(i128::from(ms) * 1000)
}

/// Returns the nearest-rank 90th percentile: the smallest value that is not below 90 % of all
/// values.
fn p90(mut values: Vec<i64>) -> i64 {
    let rank = (values.len() * 9).div_ceil(10);
    let Some(at) = rank.checked_sub(1) else { return 0 };
    *values.select_nth_unstable(at).1
}

/// Returns the activity of an identity in a window; `None` if there is no such identity.
///
/// # Errors
/// A project did not answer.
pub async fn profile<P: Projects>(projects: &P, who: &IdentitySelector, window: Window) -> Result<Option<Profile>, P::Error> {
    let Some(subject) = find(projects, who).await? else { return Ok(None) };
    let parts = projects.scatter(ProfileQuery { subject: subject.clone(), window }).await?;
    let Some(part) = parts.into_iter().flatten().reduce(ProfilePartial::merge) else { return Ok(None) };
    let Some((first, last)) = part.seen else { return Ok(None) };
    let sessions = part.durations_ms.len() as u64;
    Ok(Some(Profile {
        identity_id: subject.public(projects.organization()),
        events: part.events,
        pageviews: part.pageviews,
        sessions,
        duration_avg_sec: ratio(part.durations_ms.iter().map(|ms| seconds(*ms)).sum(), sessions),
        duration_p90_sec: seconds(p90(part.durations_ms)),
        bounce_rate: ratio(Amount::from_units(i64::try_from(part.bounces).unwrap_or(i64::MAX)), sessions),
        active_days: part.days.len() as u64,
        first_seen: first.time,
        last_seen: last.time,
        revenue: part.revenue,
    }))
}

/// The kind of an identity's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CountOf {
    /// Events by their external referrer.
    Referrers,
    /// Pageviews by their page.
    Pages,
}

/// Asks for an identity's counts by referrer or by page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CountsQuery {
    subject: Subject,
    window: Window,
    of: CountOf,
}

impl Query for CountsQuery {
    type Partial = Option<Vec<(String, u64)>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Option<Vec<(String, u64)>>, Fault> {
        let window = reader.kept(self.window);
        let Some(identity) = reader.subject(&self.subject, Some(window))? else { return Ok(None) };
        let mut counts: BTreeMap<TermId, u64> = BTreeMap::new();
        for hit in identity.facts.daily_counts(Span { first: window.start, last: window.end }) {
            match (hit.what, self.of) {
                (CountKey::Page(name), CountOf::Pages) | (CountKey::Referrer(name), CountOf::Referrers) => {
                    *counts.entry(name).or_default() += u64::from(hit.count);
                }
                _ => {}
            }
        }
        let named = |(name, count)| Ok((reader.project.dictionary.text(name, reader.source)?.to_owned(), count));
        counts.into_iter().map(named).collect::<Result<_, Fault>>().map(Some)
    }
}

/// Returns the number of events of an identity in a window per referrer or page; `None` if there is
/// no such identity.
///
/// # Errors
/// A project did not answer.
pub async fn counts<P: Projects>(
    projects: &P,
    who: &IdentitySelector,
    of: CountOf,
    window: Window,
    limit: usize,
) -> Result<Option<IdentityCounts>, P::Error> {
    let Some(subject) = find(projects, who).await? else { return Ok(None) };
    let parts = projects.scatter(CountsQuery { subject: subject.clone(), window, of }).await?;
    let mut total: Option<BTreeMap<String, u64>> = None;
    for part in parts.into_iter().flatten() {
        let total = total.get_or_insert_default();
        part.into_iter().for_each(|(name, count)| *total.entry(name).or_default() += count);
    }
    let Some(total) = total else { return Ok(None) };
    let mut rows: Vec<(String, u64)> = total.into_iter().collect();
    rank(&mut rows, |(_, count)| *count, |(name, _)| name.clone());
    let truncated = rows.len() > limit;
    rows.truncate(limit);
    Ok(Some(IdentityCounts { identity_id: subject.public(projects.organization()), counts: Listed { rows, truncated } }))
}

#[cfg(test)]
mod tests {
    use super::p90;

    #[test]
    fn the_nearest_rank_is_a_value_that_is_there() {
        assert_eq!(p90(vec![]), 0);
        assert_eq!(p90(vec![7]), 7);
        assert_eq!(p90((1..=10).rev().collect()), 9);
        assert_eq!(p90((1..=11).collect()), 10);
    }
}
