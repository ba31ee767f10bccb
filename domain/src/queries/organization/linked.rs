//! Checks whether the given key of a company is its only one. Then a query finds its keys without
//! another step.

use crate::fault::Fault;
use crate::ids::{PublicCompany, RecordKey};
use crate::indexes::CompanyLink;
use crate::queries::partial::Reader;
use crate::records::Source;
use serde::{Deserialize, Serialize};

/// The key of a company, as one project knows it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Linked {
    key: RecordKey,
    /// Its link. A project that knows the link also knows the company.
    link: Option<CompanyLink>,
    /// Whether other companies are linked to it.
    has_aliases: bool,
}

/// The company of a key over all projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolved {
    /// It has only this key.
    Alone(RecordKey),
    /// This is its canonical key, and it may have others.
    Linked(RecordKey),
}

impl Linked {
    /// Returns the company of a key that some projects know; `None` if there are none.
    pub(super) fn resolve(known: &[Self]) -> Option<Resolved> {
        let key = known.first()?.key;
        let link = known.iter().filter_map(|known| known.link).min();
        let company = link.map_or(key, |link| link.domain);
        let is_alone = company == key && !known.iter().any(|known| known.has_aliases);
        Some(if is_alone { Resolved::Alone(key) } else { Resolved::Linked(company) })
    }
}

impl<S: Source> Reader<'_, S> {
    /// Returns the key of the company of a public id, if this project knows it.
    pub(super) fn company_of(&mut self, company: PublicCompany) -> Result<Option<RecordKey>, Fault> {
        let (key, source) = (self.hasher.public_company(company), self.source);
        Ok(self.project.company_ids.get(key, || source.record(key))?.map(|company| company.0))
    }

    /// Returns this project's information about a key.
    pub(super) fn linked(&mut self, key: RecordKey) -> Result<Linked, Fault> {
        let link = self.project.rollups.company_links.of(key);
        let has_aliases = self.group(key)?.is_some_and(|(group, _)| group.count_aliases() > 0);
        Ok(Linked { key, link, has_aliases })
    }
}
