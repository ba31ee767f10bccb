//! The accounts of events: the company that an event names, else the first company of its identity,
//! else the identity itself.

mod companies;
mod pinned;

use std::io;

use headcount_domain::RecordKey;

use super::error::Result;
use super::events::Scan;
use super::external_sort::Sorter;
use super::identities::{KEY, bytes, key_of};
use companies::{Companies, add_known_links, company_bytes, company_keys};
use pinned::{FirstPins, Pins};

/// An account, or an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntityKey {
    pub(super) key: RecordKey,
    pub(super) is_company: bool,
}

/// The bytes of an [`EntityKey`].
pub(super) const ENTITY: usize = KEY + 1;

impl EntityKey {
    pub(super) fn of_identity(key: RecordKey) -> Self {
        Self { key, is_company: false }
    }

    pub(super) fn to_bytes(self) -> [u8; ENTITY] {
        let mut entity = [0; ENTITY];
        entity[..KEY].copy_from_slice(&bytes(self.key));
        entity[KEY] = self.is_company.into();
        entity
    }

    pub(super) fn read(entity: &[u8]) -> Self {
        let (key, is_company) = entity.split_at(KEY.min(entity.len()));
        Self { key: key_of(key), is_company: is_company == [1] }
    }
}

/// Finds the accounts of events, as they were reported.
pub(super) struct Accounts {
    of_identities: FirstPins,
    links: Pins,
    companies: Sorter<KEY>,
    /// The identity that was met last, with its company.
    last: Option<(RecordKey, Option<RecordKey>)>,
}

impl Accounts {
    /// Reads what events report of companies. Costs a pass over the project's events.
    pub(super) fn read(scan: &Scan<'_>, sort_bytes: usize) -> Result<Self> {
        let Companies { of_identities, links } = Companies::read(scan, sort_bytes)?;
        Ok(Self { of_identities, links, companies: company_keys(scan, sort_bytes), last: None })
    }

    /// Returns the account of an event of an identity, which may name a company. Identities must
    /// rise from call to call.
    pub(super) fn of(&mut self, identity: RecordKey, named: Option<RecordKey>) -> io::Result<EntityKey> {
        let own = match self.last {
            Some((last, own)) if last == identity => own,
            _ => self.of_identities.of(identity)?,
        };
        self.last = Some((identity, own));
        let Some(company) = named.or(own) else { return Ok(EntityKey::of_identity(identity)) };
        self.companies.push(company_bytes(company))?;
        Ok(EntityKey { key: company, is_company: true })
    }

    /// Returns the domains of the companies that were found.
    pub(super) fn finish(mut self, scan: &Scan<'_>) -> Result<AccountDomains> {
        add_known_links(scan, self.companies, &mut self.links)?;
        Ok(AccountDomains(self.links.finish()?))
    }
}

/// The domains of companies, which are their accounts.
pub(super) struct AccountDomains(FirstPins);

impl AccountDomains {
    /// Returns the account of an entity as it was reported. Keys must rise from call to call.
    pub(super) fn account(&mut self, entity: EntityKey) -> io::Result<EntityKey> {
        if !entity.is_company {
            return Ok(entity);
        }
        Ok(EntityKey { key: self.0.of(entity.key)?.unwrap_or(entity.key), is_company: true })
    }
}
