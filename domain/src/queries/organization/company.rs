//! Queries about companies, over all projects of their organization.

use super::aliases::{aliases_of, resolve};
use super::parts::{self, Description};
use super::top_k::{self, Leading, TopRow};
use crate::company::{CompanyKey, normalise_domain};
use crate::fault::Fault;
use crate::ids::{OrganizationId, PublicCompany, RecordKey};
use crate::indexes::CompanyLink;
use crate::queries::answers::{CompanyMetrics, Listed, TopCompany};
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::Source;
use crate::time::Window;

use crate::ids::COMPANY_TYPE as COMPANY;
use serde::{Deserialize, Serialize};

/// Asks for the key of a company by its public id, and for its link. A project that knows the link also knows the
/// company.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CompanyByIdQuery {
    company: PublicCompany,
}

impl Query for CompanyByIdQuery {
    type Partial = Option<(RecordKey, Option<CompanyLink>)>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (key, source) = (reader.hasher.public_company(self.company), reader.source);
        let company = reader.project.company_ids.get(key, || source.record(key))?.map(|company| company.0);
        Ok(company.map(|company| (company, reader.project.rollups.company_links.of(company))))
    }
}

/// Returns the company of a public id. If the company was linked to a domain later, the id refers to the domain.
pub(super) async fn by_id<P: Projects>(projects: &P, id: &str) -> Result<Option<RecordKey>, P::Error> {
    let Ok(company) = PublicCompany::from_id(id, projects.organization()) else { return Ok(None) };
    let found: Vec<_> = projects.scatter(CompanyByIdQuery { company }).await?.into_iter().flatten().collect();
    let link = found.iter().filter_map(|(_, link)| *link).min();
    Ok(found.first().map(|(key, _)| link.map_or(*key, |link| link.domain)))
}

/// Returns the activity in a window of the company of a domain in any spelling; `None` if there is no such company.
///
/// # Errors A project did not answer.
pub async fn company_by_domain<P: Projects>(
    projects: &P,
    domain: &str,
    window: Window,
) -> Result<Option<CompanyMetrics>, P::Error> {
    let Some(company) = CompanyKey::from_domain(domain) else { return Ok(None) };
    metrics(projects, projects.hasher().company(company.as_str()), window).await
}

/// Returns the activity in a window of the company of a public id; `None` if there is no such company.
///
/// # Errors A project did not answer.
pub async fn company_by_id<P: Projects>(projects: &P, id: &str, window: Window) -> Result<Option<CompanyMetrics>, P::Error> {
    match by_id(projects, id).await? {
        Some(key) => metrics(projects, key, window).await,
        None => Ok(None),
    }
}

async fn metrics<P: Projects>(projects: &P, company: RecordKey, window: Window) -> Result<Option<CompanyMetrics>, P::Error> {
    let keys = aliases_of(projects, vec![company]).await?.pop().unwrap_or_default();
    let named = parts::named(projects, vec![keys.clone()], None).await?.pop().unwrap_or_default();
    let Some((first_seen, last_seen)) = named.seen else { return Ok(None) };
    let figures = parts::figures(projects, vec![(keys, named.projects)], window).await?.pop().unwrap_or_default();
    Ok(Some(CompanyMetrics {
        company_id: public(&named, projects.organization()),
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

fn public(named: &Description, organization: OrganizationId) -> String {
    PublicCompany::of(named.key.as_deref().unwrap_or_default()).to_id(organization)
}

fn domain(named: &Description) -> Option<String> {
    let key = named.key.as_deref()?;
    normalise_domain(key).filter(|domain| domain == key)
}

/// What a company is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyNames {
    /// `co_…`
    pub company_id: String,
    /// Its key: the domain, or the id that was reported.
    pub key: String,
    /// The most recently reported name.
    pub name: Option<String>,
    /// Its domain, if it has one.
    pub domain: Option<String>,
}

/// Returns what companies are called, by the keys under which they were reported; `None` for one that no project knows.
///
/// # Errors A project did not answer.
pub async fn company_names<P: Projects>(projects: &P, companies: Vec<RecordKey>) -> Result<Vec<Option<CompanyNames>>, P::Error> {
    let aliases = aliases_of(projects, resolve(projects, companies).await?).await?;
    let named = parts::named(projects, aliases, None).await?;
    let names = |named: &Description| {
        let key = named.key.as_deref()?.to_owned();
        Some(CompanyNames { key, company_id: public(named, projects.organization()), name: named.name(), domain: domain(named) })
    };
    Ok(named.iter().map(names).collect())
}

/// Returns the most active companies of a window.
///
/// # Errors A project did not answer.
pub async fn top_companies<P: Projects>(projects: &P, window: Window, limit: usize) -> Result<Listed<TopCompany>, P::Error> {
    let Leading { keys, aliases, truncated } = top_k::leading(projects, COMPANY, window, limit).await?;
    let keys = match aliases {
        true => aliases_of(projects, keys).await?,
        false => keys.into_iter().map(|key| vec![key]).collect(),
    };
    let rows = top_k::rows(projects, COMPANY, keys, window, limit).await?;
    let company = |TopRow { named, figures }: &TopRow| {
        Some(TopCompany {
            company_id: public(named, projects.organization()),
            name: named.name(),
            domain: domain(named),
            events: figures.sums.events,
            users: figures.users,
            revenue: figures.sums.revenue,
            last_seen: named.seen?.1,
        })
    };
    Ok(Listed { rows: rows.iter().filter_map(company).collect(), truncated })
}
