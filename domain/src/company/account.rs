//! Companies within one project: their facts are the sum of the contributions of identities.

use serde::{Deserialize, Serialize};

use super::CompanyKey;
use crate::facts::{Facts, FactsPage};
use crate::ids::RecordKey;
use crate::records::{Record, page_key};

/// The value of a company's key: the company, or its link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AccountSlot {
    /// The company itself.
    Canonical(Box<Account>),
    /// A company that is permanently linked to its domain.
    Alias(RecordKey),
}

/// The record of one company in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The key; a domain if the company has one.
    pub key: CompanyKey,
    /// The sum of the contributions of identities and of events without consent.
    pub facts: Facts,
}

impl Record for AccountSlot {
    const SPACE: u8 = 1;
    const PAGE_SPACE: u8 = 4;
    const NAME: &'static str = "account";
    const VERSION: u8 = 1;
    type Page = FactsPage;

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &FactsPage)) {
        if let Self::Canonical(account) = self {
            account.facts.dirty(&mut |serial, page| visit(page_key(key, serial), page));
        }
    }

    fn saved(&mut self) {
        if let Self::Canonical(account) = self {
            account.facts.saved();
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Canonical(account) => {
                size_of::<Self>() + size_of::<Account>() + account.key.as_str().len() + 64 + account.facts.weight()
            }
            Self::Alias(_) => size_of::<Self>(),
        }
    }

    fn has_pages(&self) -> bool {
        matches!(self, Self::Canonical(account) if account.facts.has_pages())
    }

    fn shed(&mut self) {
        if let Self::Canonical(account) = self {
            account.facts.shed();
        }
    }
}
