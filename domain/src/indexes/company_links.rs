//! Which companies were told to be which domain, in this project.

use crate::cells::packed::Columns;
use crate::cells::{Cells, StoredCells, Value, signed, unsigned};
use crate::facts::Moment;
use crate::ids::RecordKey;
use crate::time::Instant;
use serde::{Deserialize, Serialize};

/// A company's domain, and when that was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompanyLink {
    /// When. Of several projects' links the one told first counts.
    pub told: Moment,
    /// The domain's key.
    pub domain: RecordKey,
}

/// What a row is of.
type Of = (u8, RecordKey);

/// What a row holds.
#[derive(Debug, Clone, Copy)]
pub enum Link {
    /// Of a company.
    To(CompanyLink),
    /// How many companies were told to be one domain, at most: in a row of its own.
    Most(u32),
}

impl Value for Link {
    fn columns(self) -> Columns {
        match self {
            Self::Most(most) => [0, most.into(), 0, 0],
            Self::To(CompanyLink { told, domain: RecordKey(domain) }) => {
                [1, unsigned(told.time.0.into()), told.position.into(), domain]
            }
        }
    }

    fn from_columns(columns: &Columns) -> Self {
        let [kind, one, other, domain] = *columns;
        if kind == 0 {
            return Self::Most(u32::try_from(one).unwrap_or_default());
        }
        let time = Instant(i64::try_from(signed(one)).unwrap_or_default());
        let told = Moment { time, position: u64::try_from(other).unwrap_or_default() };
        Self::To(CompanyLink { told, domain: RecordKey(domain) })
    }
}

/// See the module.
#[derive(Debug)]
pub struct CompanyLinks;

impl StoredCells for CompanyLinks {
    const TAG: u8 = 12;
    const NAME: &'static str = "company_links";
    type Key = Of;
    type Value = Link;
}

/// Where the greatest number of companies of one domain is.
const MOST: Of = (0, RecordKey(0));

/// Where a company's link is.
fn of(company: RecordKey) -> Of {
    (1, company)
}

impl Cells<Of, Link> {
    /// A domain has so many companies that were told to be it.
    pub fn remember_most(&mut self, companies: usize) {
        let companies = u32::try_from(companies).unwrap_or(u32::MAX);
        if companies > self.most() {
            self.set(MOST, Link::Most(companies));
        }
    }

    /// How many companies were told to be one domain, at most.
    #[must_use]
    pub fn most(&self) -> u32 {
        match self.get(MOST) {
            Some(Link::Most(most)) => most,
            _ => 0,
        }
    }

    /// A company was told its domain. The first one recorded counts, from the earliest event that told it.
    pub fn remember(&mut self, company: RecordKey, domain: RecordKey, told: Moment) {
        let known = self.of(company);
        if known.is_some_and(|known| known.domain != domain || known.told <= told) {
            return;
        }
        self.set(of(company), Link::To(CompanyLink { told, domain }));
    }

    /// What a company is linked to.
    #[must_use]
    pub fn of(&self, company: RecordKey) -> Option<CompanyLink> {
        match self.get(of(company))? {
            Link::To(link) => Some(link),
            Link::Most(_) => None,
        }
    }
}
