//! Links from companies to their domains, in this project.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Room, StoredCells, Value, signed, unsigned};
use crate::ids::RecordKey;
use crate::moment::Moment;
use crate::time::Instant;
use serde::{Deserialize, Serialize};

/// A company's domain, and the moment of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompanyLink {
    /// The moment of the link. Among the links of several projects, the first recorded one takes
    /// effect.
    pub reported_at: Moment,
    /// The domain's key.
    pub domain: RecordKey,
}

/// The key of a row: 0 for the maximum, 1 and the company's key for a link.
type Of = (u8, RecordKey);

/// The value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Link {
    /// The link of a company.
    To(CompanyLink),
    /// The largest number of companies linked to one domain, in a row of its own.
    Most(u32),
}

impl Value for Link {
    fn columns(self) -> Columns {
        match self {
            Self::Most(most) => [0, most.into(), 0, 0],
            Self::To(CompanyLink { reported_at, domain: RecordKey(domain) }) => {
                [1, unsigned(reported_at.time.0.into()), reported_at.position.into(), domain]
            }
        }
    }

    fn from_columns(columns: &Columns) -> Self {
        let [kind, one, other, domain] = *columns;
        if kind == 0 {
            return Self::Most(u32::try_from(one).unwrap_or_default());
        }
        let time = Instant(i64::try_from(signed(one)).unwrap_or_default());
        let reported_at = Moment { time, position: u64::try_from(other).unwrap_or_default() };
        Self::To(CompanyLink { reported_at, domain: RecordKey(domain) })
    }
}

/// The links of companies to their domains.
#[derive(Debug)]
pub struct CompanyLinks;

impl StoredCells for CompanyLinks {
    const TAG: u8 = 12;
    const NAME: &'static str = "company_links";
    const ROOM: Room = Room::Tables;
    type Key = Of;
    type Value = Link;
}

/// Returns the key of the row with the maximum.
const MOST: Of = (0, RecordKey(0));

/// Returns the key of the row with a company's link.
fn of(company: RecordKey) -> Of {
    (1, company)
}

impl Cells<Of, Link> {
    /// Raises the recorded maximum of aliases per domain.
    pub(crate) fn remember_most(&mut self, companies: usize) {
        let companies = u32::try_from(companies).unwrap_or(u32::MAX);
        if companies > self.most() {
            self.set(MOST, Link::Most(companies));
        }
    }

    /// Returns the largest number of companies linked to one domain.
    pub fn most(&self) -> u32 {
        match self.get(MOST) {
            Some(Link::Most(most)) => most,
            _ => 0,
        }
    }

    /// Records a company's domain. The first recorded domain takes effect, from the earliest event
    /// that reports it.
    pub(crate) fn remember(&mut self, company: RecordKey, domain: RecordKey, reported_at: Moment) {
        let known = self.of(company);
        if known.is_some_and(|known| known.domain != domain || known.reported_at <= reported_at) {
            return;
        }
        self.set(of(company), Link::To(CompanyLink { reported_at, domain }));
    }

    /// Returns the link of a company, if any.
    pub fn of(&self, company: RecordKey) -> Option<CompanyLink> {
        match self.get(of(company))? {
            Link::To(link) => Some(link),
            Link::Most(_) => None,
        }
    }
}
