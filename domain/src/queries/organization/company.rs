//! Queries about companies, over all projects of their organization.

use super::aliases::{aliases_of, resolve};
use super::card::{Card, CardSubject, card};
use super::parts::{self, Description};
use super::top_k::{self, Leading};
use crate::company::{CompanyKey, normalise_domain};
use crate::ids::{OrganizationId, PublicCompany, RecordKey};
use crate::queries::answers::{CompanyMetrics, Listed, TopCompany};
use crate::queries::partial::Projects;
use crate::time::Window;

use crate::ids::COMPANY_TYPE as COMPANY;

/// Returns the activity in a window of the company of a domain in any spelling; `None` if there is
/// none.
///
/// # Errors
/// A project did not answer.
pub async fn company_by_domain<P: Projects>(
    projects: &P,
    domain: &str,
    window: Window,
) -> Result<Option<CompanyMetrics>, P::Error> {
    let Some(company) = CompanyKey::from_domain(domain) else { return Ok(None) };
    metrics(projects, CardSubject::Key(projects.hasher().company(company.as_str())), window).await
}

/// Returns the activity in a window of the company of a public id; `None` if there is none.
///
/// # Errors
/// A project did not answer.
pub async fn company_by_id<P: Projects>(projects: &P, id: &str, window: Window) -> Result<Option<CompanyMetrics>, P::Error> {
    let Ok(company) = PublicCompany::from_id(id, projects.organization()) else { return Ok(None) };
    metrics(projects, CardSubject::Id(company), window).await
}

async fn metrics<P: Projects>(projects: &P, of: CardSubject, window: Window) -> Result<Option<CompanyMetrics>, P::Error> {
    let Some(Card { described: named, figures }) = card(projects, of, window).await? else { return Ok(None) };
    let Some((first_seen, last_seen)) = named.seen else { return Ok(None) };
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

/// The names of a company.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyNames {
    /// `co_…`
    pub company_id: String,
    /// Its key: the domain, or the reported id.
    pub key: String,
    /// The most recently reported name.
    pub name: Option<String>,
    /// Its domain, if it has one.
    pub domain: Option<String>,
}

/// Returns the names of companies by their reported keys; `None` for a company that no project
/// knows.
///
/// # Errors
/// A project did not answer.
pub async fn company_names<P: Projects>(projects: &P, companies: Vec<RecordKey>) -> Result<Vec<Option<CompanyNames>>, P::Error> {
    let aliases = aliases_of(projects, resolve(projects, companies).await?).await?;
    let named = parts::named(projects, aliases).await?;
    let names = |named: &Description| {
        let key = named.key.as_deref()?.to_owned();
        Some(CompanyNames { key, company_id: public(named, projects.organization()), name: named.name(), domain: domain(named) })
    };
    Ok(named.iter().map(names).collect())
}

/// Returns the most active companies of a window.
///
/// # Errors
/// A project did not answer.
pub async fn top_companies<P: Projects>(projects: &P, window: Window, limit: usize) -> Result<Listed<TopCompany>, P::Error> {
    let Leading { keys, aliases, truncated } = top_k::leading(projects, COMPANY, window, limit).await?;
    let keys = match aliases {
        true => aliases_of(projects, keys).await?,
        false => keys.into_iter().map(|key| vec![key]).collect(),
    };
    let rows = top_k::rows(projects, COMPANY, keys, window, limit).await?;
    let company = |Card { described: named, figures }: &Card| {
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
