//! Companies, over all projects of their organization. Which of the keys that they were told by are one company is only
//! known when all projects were asked: of several links of a company the one told first counts.

use std::collections::{HashMap, HashSet};

use super::group::{self, Keys, NamedPart, TopRow};
use super::identity::Subject;
use super::question::{Projects, Question, Reader, candidates, rank};
use super::{CompanyMetrics, Listed, TopCompany, TopUser};
use crate::company::{CompanyKey, normalise_domain};
use crate::facts::{Moment, Named, Span};
use crate::groups::Group;
use crate::ids::{OrganizationId, PublicCompany, RawId, RecordKey};
use crate::people::{Identity, Person};
use crate::records::{Fault, Source, page_key};
use crate::rollups::CompanyLink;
use crate::table::KeyHashBuilder;
use crate::time::{Instant, Window};

const COMPANY: &str = "company";

/// Asks what some companies are linked to.
#[derive(Debug, Clone)]
struct AskLinks {
    companies: Keys,
}

impl Question for AskLinks {
    type Part = Vec<Option<CompanyLink>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Part, Fault> {
        let links = &reader.project.rollups.company_links;
        if links.is_empty() {
            return Ok(vec![None; self.companies.len()]);
        }
        Ok(self.companies.iter().map(|company| links.of(*company)).collect())
    }
}

/// The companies that some keys mean organization-wide.
async fn resolve<P: Projects>(projects: &P, companies: Keys) -> Result<Keys, P::Error> {
    let parts = projects.each(AskLinks { companies: companies.clone() }).await?;
    let earliest = |at: usize| parts.iter().filter_map(|part| part.get(at).copied().flatten()).min();
    Ok(companies.iter().enumerate().map(|(at, key)| earliest(at).map_or(*key, |link| link.domain)).collect())
}

/// Asks which companies were told to be these domains.
#[derive(Debug, Clone)]
struct AskAliases {
    domains: Keys,
}

impl Question for AskAliases {
    type Part = Vec<Keys>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Keys>, Fault> {
        let source = reader.source;
        let groups = &mut reader.project.groups;
        let aliases = |domain: &RecordKey| {
            let group = groups.get(*domain, || source.record(*domain))?;
            Ok(group.map(|group| group.aliases.clone()).unwrap_or_default())
        };
        self.domains.iter().map(aliases).collect()
    }
}

/// All keys that each of some companies was told by anywhere, its own first.
async fn told_keys<P: Projects>(projects: &P, companies: Keys) -> Result<Vec<Keys>, P::Error> {
    let mut told: Vec<Keys> = companies.iter().map(|key| vec![*key]).collect();
    for part in projects.each(AskAliases { domains: companies.clone() }).await? {
        for (keys, aliases) in told.iter_mut().zip(part) {
            let new: Keys = aliases.into_iter().filter(|alias| !keys.contains(alias)).collect();
            keys.extend(new);
        }
    }
    if projects.count() > 1 {
        // Another project may have told an alias to be something else, and earlier.
        let all: Keys = told.iter().flat_map(|keys| &keys[1..]).copied().collect();
        let means: HashMap<RecordKey, RecordKey> = all.iter().copied().zip(resolve(projects, all.clone()).await?).collect();
        for (keys, company) in told.iter_mut().zip(&companies) {
            keys.retain(|key| key == company || means.get(key) == Some(company));
        }
    }
    Ok(told)
}

/// Asks for the key of a company by its domain.
#[derive(Debug, Clone)]
struct AskKey {
    company: CompanyKey,
}

impl Question for AskKey {
    type Part = RecordKey;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<RecordKey, Fault> {
        Ok(reader.hasher.company(self.company.as_str()))
    }
}

/// Asks for the key of a company by its public id.
#[derive(Debug, Clone)]
struct AskById {
    company: PublicCompany,
}

impl Question for AskById {
    type Part = Option<RecordKey>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Option<RecordKey>, Fault> {
        let (key, source) = (reader.hasher.public_company(self.company), reader.source);
        Ok(reader.project.company_ids.get(key, || source.record(key))?.map(|company| company.0))
    }
}

/// The company that a public id means: that of a company which was told its domain since means the domain.
async fn by_id<P: Projects>(projects: &P, organization: OrganizationId, id: &str) -> Result<Option<RecordKey>, P::Error> {
    let Ok(company) = PublicCompany::from_id(id, organization) else { return Ok(None) };
    let found = projects.each(AskById { company }).await?.into_iter().flatten().next();
    match found {
        Some(key) => Ok(resolve(projects, vec![key]).await?.pop()),
        None => Ok(None),
    }
}

/// What the company of a domain (in any spelling) did in a window. `None`: there is no such company.
///
/// # Errors
/// A project did not answer.
pub async fn company_by_domain<P: Projects>(
    projects: &P,
    organization: OrganizationId,
    domain: &str,
    window: Window,
) -> Result<Option<CompanyMetrics>, P::Error> {
    let Some(company) = CompanyKey::from_domain(domain) else { return Ok(None) };
    match projects.each(AskKey { company }).await?.pop() {
        Some(key) => metrics(projects, organization, key, window).await,
        None => Ok(None),
    }
}

/// What the company of a public id did in a window. `None`: there is no such company.
///
/// # Errors
/// A project did not answer.
pub async fn company_by_id<P: Projects>(
    projects: &P,
    organization: OrganizationId,
    id: &str,
    window: Window,
) -> Result<Option<CompanyMetrics>, P::Error> {
    match by_id(projects, organization, id).await? {
        Some(key) => metrics(projects, organization, key, window).await,
        None => Ok(None),
    }
}

async fn metrics<P: Projects>(
    projects: &P,
    organization: OrganizationId,
    company: RecordKey,
    window: Window,
) -> Result<Option<CompanyMetrics>, P::Error> {
    let told = told_keys(projects, vec![company]).await?;
    let named = group::named(projects, told.clone()).await?.pop().unwrap_or_default();
    let Some((first_seen, last_seen)) = named.seen else { return Ok(None) };
    let figures = group::figures(projects, told, window).await?.pop().unwrap_or_default();
    Ok(Some(CompanyMetrics {
        company_id: public(&named, organization),
        name: named.name(),
        domain: domain(&named),
        events: figures.sums.events,
        users: figures.users,
        sessions: figures.sums.sessions,
        revenue: figures.sums.revenue,
        orders: figures.sums.orders,
        first_seen,
        last_seen,
    }))
}

fn public(named: &NamedPart, organization: OrganizationId) -> String {
    PublicCompany::of(named.key.as_deref().unwrap_or_default()).to_id(organization)
}

fn domain(named: &NamedPart) -> Option<String> {
    let key = named.key.as_deref()?;
    normalise_domain(key).filter(|domain| domain == key)
}

/// The most active companies of a window.
///
/// # Errors
/// A project did not answer.
pub async fn top_companies<P: Projects>(
    projects: &P,
    organization: OrganizationId,
    window: Window,
    limit: usize,
) -> Result<Listed<TopCompany>, P::Error> {
    let active: Vec<_> = group::active(projects, COMPANY, window).await?.into_iter().collect();
    let means = resolve(projects, active.iter().map(|(told, _)| *told).collect()).await?;
    let mut companies: HashMap<RecordKey, TopRow, KeyHashBuilder> = HashMap::default();
    for ((_, did), company) in active.into_iter().zip(means) {
        let row = companies.entry(company).or_insert_with(|| TopRow {
            keys: vec![company],
            events: 0,
            revenue: crate::money::Amount::ZERO,
            named: NamedPart::default(),
        });
        row.events += did.events;
        row.revenue += did.revenue;
    }
    let mut rows: Vec<TopRow> = companies.into_values().filter(|row| row.events > 0).collect();
    let truncated = rows.len() > limit;
    candidates(&mut rows, limit, |row| row.events);
    let told = told_keys(projects, rows.iter().map(|row| row.keys[0]).collect()).await?;
    rows.iter_mut().zip(told).for_each(|(row, told)| row.keys = told);
    let rows = group::top_rows(projects, rows, limit).await?.rows;
    let figures = group::figures(projects, rows.iter().map(|row| row.keys.clone()).collect(), window).await?;
    let company = |(row, figures): (&TopRow, &group::Figures)| {
        Some(TopCompany {
            company_id: public(&row.named, organization),
            name: row.named.name(),
            domain: domain(&row.named),
            events: figures.sums.events,
            users: figures.users,
            revenue: row.revenue,
            last_seen: row.named.seen?.1,
        })
    };
    Ok(Listed { rows: rows.iter().zip(&figures).filter_map(company).collect(), truncated })
}

/// Asks which identified users were active at a company.
#[derive(Debug, Clone)]
struct AskMembers {
    keys: Keys,
    window: Window,
    /// How many of the most active are enough; no other project has a say then.
    enough: Option<usize>,
}

/// What one user did at a company, in one project.
#[derive(Debug)]
struct MemberPart {
    subject: Subject,
    events: u64,
}

impl Question for AskMembers {
    type Part = Vec<MemberPart>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<MemberPart>, Fault> {
        let source = reader.source;
        let mut events: HashMap<RecordKey, u64, KeyHashBuilder> = HashMap::default();
        for key in &self.keys {
            if let Some(group) = reader.project.groups.get_to_load(*key, || source.record(*key))? {
                group.load(self.window.start, self.window.end, |serial| source.page::<Group>(page_key(*key, serial)))?;
                for (member, did) in group.members(self.window) {
                    *events.entry(member).or_default() += u64::from(did.events);
                }
            }
        }
        let mut events: Vec<(RecordKey, u64)> = events.into_iter().collect();
        events.sort_unstable_by_key(|(_, events)| std::cmp::Reverse(*events));
        let mut members: Vec<MemberPart> = Vec::new();
        for (member, events) in events {
            // One more than is listed, so that it is known whether the list was cut; and all that tie with the last.
            if self.enough.is_some_and(|enough| members.len() > enough && events < members[enough.saturating_sub(1)].events) {
                break;
            }
            let key = reader.member(member)?;
            let project = reader.id;
            let Some(identity) = reader.identity(key, None)? else { continue };
            let is_user = matches!(identity.id, RawId::User(_));
            if is_user || !identity.emails.is_empty() {
                let subject = Subject { id: identity.id.clone(), project: (!is_user).then_some(project) };
                members.push(MemberPart { subject, events });
            }
        }
        Ok(members)
    }
}

/// Asks for the latest e-mail addresses of some users, and when these were told.
#[derive(Debug, Clone)]
struct AskEmails {
    subjects: Vec<Subject>,
}

impl Question for AskEmails {
    type Part = Vec<Option<(Moment, Box<str>)>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Part, Fault> {
        let email = |subject: &Subject| {
            let identity = known(subject, reader)?;
            let latest = identity.and_then(|identity| identity.emails.iter().max_by_key(|(_, told)| *told));
            Ok(latest.map(|(email, told)| (*told, email.clone())))
        };
        self.subjects.iter().map(email).collect()
    }
}

/// Asks when some users were last seen at a company.
#[derive(Debug, Clone)]
struct AskLastSeenAt {
    subjects: Vec<Subject>,
    keys: Keys,
}

impl Question for AskLastSeenAt {
    type Part = Vec<Option<Instant>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Part, Fault> {
        let (keys, source): (HashSet<RecordKey>, _) = (self.keys.iter().copied().collect(), reader.source);
        let seen = |subject: &Subject| {
            let Some(identity) = known(subject, reader)? else { return Ok(None) };
            let member = identity.member;
            identity.facts.load(Span::ALL, |serial| source.page::<Person>(page_key(member, serial)))?;
            Ok(last_seen(identity, &keys))
        };
        self.subjects.iter().map(seen).collect()
    }
}

/// The record of a subject in this project, if there is one.
fn known<'r, S: Source>(subject: &Subject, reader: &'r mut Reader<'_, S>) -> Result<Option<&'r mut Identity>, Fault> {
    if subject.project.is_some_and(|project| project != reader.id) {
        return Ok(None);
    }
    let (key, source) = (reader.hasher.identity(&subject.id), reader.source);
    Ok(match reader.project.people.get_to_load(key, || source.record(key))? {
        Some(Person::Identity(identity)) => Some(identity),
        _ => None,
    })
}

fn last_seen(identity: &Identity, keys: &HashSet<RecordKey>) -> Option<Instant> {
    let own = identity.company.map(|association| association.company);
    let here = |named: Option<Named>| named.and_then(Named::company).or(own).is_some_and(|company| keys.contains(&company));
    let days = identity.facts.days(Span::ALL).filter(|entry| here(entry.named.as_deref().copied()));
    days.filter_map(|entry| entry.sums.seen.at(entry.day)).map(|(_, last)| last).max()
}

/// A company's most active identified users in a window. `None`: there is no such company.
///
/// # Errors
/// A project did not answer.
pub async fn company_top_users<P: Projects>(
    projects: &P,
    organization: OrganizationId,
    id: &str,
    window: Window,
    limit: usize,
) -> Result<Option<Listed<TopUser>>, P::Error> {
    let Some(company) = by_id(projects, organization, id).await? else { return Ok(None) };
    let keys = told_keys(projects, vec![company]).await?.pop().unwrap_or_default();
    if group::named(projects, vec![keys.clone()]).await?.pop().is_none_or(|named| named.seen.is_none()) {
        return Ok(None);
    }
    let mut users: Vec<(Subject, u64)> = Vec::new();
    let mut places: HashMap<RawId, usize> = HashMap::new();
    let enough = (projects.count() == 1).then_some(limit);
    for member in projects.each(AskMembers { keys: keys.clone(), window, enough }).await?.into_iter().flatten() {
        match places.get(&member.subject.id).filter(|_| member.subject.project.is_none()) {
            Some(place) => users[*place].1 += member.events,
            None => {
                places.insert(member.subject.id.clone(), users.len());
                users.push((member.subject, member.events));
            }
        }
    }
    let truncated = users.len() > limit;
    candidates(&mut users, limit, |(_, events)| *events);
    let subjects: Vec<Subject> = users.iter().map(|(subject, _)| subject.clone()).collect();
    let emails = projects.each(AskEmails { subjects }).await?;
    let resolved = |(at, (subject, events)): (usize, (Subject, u64))| {
        let email = emails.iter().filter_map(|part| part.get(at)?.as_ref()).max().map(|(_, email)| email.to_string());
        (email.unwrap_or_else(|| subject.id.text()), subject, events)
    };
    let mut rows: Vec<(String, Subject, u64)> = users.into_iter().enumerate().map(resolved).collect();
    rank(&mut rows, |(_, _, events)| *events, |(name, subject, _)| (name.clone(), subject.id.clone()));
    rows.truncate(limit);
    let subjects = rows.iter().map(|(_, subject, _)| subject.clone()).collect();
    let seen = projects.each(AskLastSeenAt { subjects, keys }).await?;
    let row = |(at, (resolved_identifier, subject, events)): (usize, (String, Subject, u64))| {
        let last_seen = seen.iter().filter_map(|part| part.get(at).copied().flatten()).max()?;
        Some(TopUser { resolved_identifier, identity_id: subject.public(organization), events, last_seen })
    };
    Ok(Some(Listed { rows: rows.into_iter().enumerate().filter_map(row).collect(), truncated }))
}
