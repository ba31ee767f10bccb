//! Which companies were told to be which domain, in this project.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::Moment;
use crate::ids::RecordKey;
use crate::rollup::{Cell, Cells, Kept};

/// A company's domain, and when that was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompanyLink {
    /// When. Of several projects' links the one told first counts.
    pub told: Moment,
    /// The domain's key.
    pub domain: RecordKey,
}

/// Some companies' links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    by_company: BTreeMap<RecordKey, CompanyLink>,
    /// How many companies were told to be one domain, at most: in a cell of its own.
    most: u32,
}

impl Cell for Links {
    fn is_empty(&self) -> bool {
        self.by_company.is_empty() && self.most == 0
    }
}

/// See the module.
#[derive(Debug)]
pub struct CompanyLinks;

impl Kept for CompanyLinks {
    const TAG: u8 = 12;
    const NAME: &'static str = "company_links";
    type Cell = Links;
}

/// Where the greatest number of companies of one domain is.
const MOST: i32 = -1;

impl Cells<Links> {
    /// A domain has so many companies that were told to be it.
    pub fn remember_most(&mut self, companies: usize) {
        let companies = u32::try_from(companies).unwrap_or(u32::MAX);
        if companies > self.get(MOST).map_or(0, |cell| cell.most) {
            self.change(MOST, |cell| cell.most = companies);
        }
    }

    /// How many companies were told to be one domain, at most.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.get(MOST).map_or(0, |cell| cell.most)
    }

    /// A company was told its domain. The first one recorded counts, from the earliest event that told it.
    pub fn remember(&mut self, company: RecordKey, domain: RecordKey, told: Moment) {
        let known = self.of(company);
        if known.is_some_and(|known| known.domain != domain || known.told <= told) {
            return;
        }
        self.change(company.bucket(), |cell| {
            cell.by_company.insert(company, CompanyLink { told, domain });
        });
    }

    /// What a company is linked to.
    #[must_use]
    pub fn of(&self, company: RecordKey) -> Option<CompanyLink> {
        self.get(company.bucket())?.by_company.get(&company).copied()
    }
}
