//! The keys of a company in the whole organization. They depend on all projects, because the first
//! recorded link of a company takes effect.

use std::collections::HashMap;

use super::parts::Keys;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::indexes::CompanyLink;
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::Source;
use serde::{Deserialize, Serialize};

/// Asks for the links of companies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LinksQuery {
    companies: Keys,
}

impl Query for LinksQuery {
    type Partial = Vec<Option<CompanyLink>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let links = &reader.project.rollups.company_links;
        if links.is_empty() {
            return Ok(vec![None; self.companies.len()]);
        }
        Ok(self.companies.iter().map(|company| links.of(*company)).collect())
    }
}

/// Resolves company keys by the links of all projects.
pub(super) async fn resolve<P: Projects>(projects: &P, companies: Keys) -> Result<Keys, P::Error> {
    let parts = projects.scatter(LinksQuery { companies: companies.clone() }).await?;
    let earliest = |at: usize| parts.iter().filter_map(|part| part.get(at).copied().flatten()).min();
    Ok(companies.iter().enumerate().map(|(at, key)| earliest(at).map_or(*key, |link| link.domain)).collect())
}

/// Asks for the companies that are linked to these domains.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AliasesQuery {
    domains: Keys,
}

impl Query for AliasesQuery {
    type Partial = Vec<Keys>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<Keys>, Fault> {
        let mut aliases = Vec::with_capacity(self.domains.len());
        for domain in &self.domains {
            aliases.push(match reader.group(*domain)? {
                Some((group, load)) => group.aliases(load)?.collect(),
                None => Keys::new(),
            });
        }
        Ok(aliases)
    }
}

/// Returns the reported keys of each company in all projects, its own key first.
pub(super) async fn aliases_of<P: Projects>(projects: &P, companies: Keys) -> Result<Vec<Keys>, P::Error> {
    let mut reported: Vec<Keys> = companies.iter().map(|key| vec![*key]).collect();
    for part in projects.scatter(AliasesQuery { domains: companies.clone() }).await? {
        for (keys, aliases) in reported.iter_mut().zip(part) {
            let new: Keys = aliases.into_iter().filter(|alias| !keys.contains(alias)).collect();
            keys.extend(new);
        }
    }
    if projects.count() > 1 && reported.iter().any(|keys| keys.len() > 1) {
        // Another project may have linked an alias to another domain earlier.
        let all: Keys = reported.iter().flat_map(|keys| &keys[1..]).copied().collect();
        let means: HashMap<RecordKey, RecordKey> = all.iter().copied().zip(resolve(projects, all.clone()).await?).collect();
        for (keys, company) in reported.iter_mut().zip(&companies) {
            keys.retain(|key| key == company || means.get(key) == Some(company));
        }
    }
    Ok(reported)
}
