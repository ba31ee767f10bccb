//! Counts of pages and referrers by day.

use serde::{Deserialize, Serialize};

use crate::cache::paged::{SortKey, sort_key_in_day};
use crate::ids::RecordKey;
use crate::indexes::dictionary::TermId;
use crate::time::Day;

/// The term under which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CountKey {
    /// A pageview of this page.
    Page(TermId),
    /// An event with this external referrer.
    Referrer(TermId),
}

impl CountKey {
    /// Returns the term.
    #[must_use]
    pub fn term(self) -> TermId {
        match self {
            Self::Page(term) | Self::Referrer(term) => term,
        }
    }
}

/// The count of a term on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyCount {
    /// The day.
    pub day: Day,
    /// The counted term.
    pub what: CountKey,
    /// The number of events.
    pub count: u32,
}

impl DailyCount {
    pub(super) fn sort_key(&self) -> SortKey {
        let (kind, TermId(name)) = match self.what {
            CountKey::Page(name) => (0, name),
            CountKey::Referrer(name) => (1, name),
        };
        // Terms are numbered in the order of their appearance, so their sort keys follow time.
        sort_key_in_day(self.day, RecordKey((kind << 64 | u128::from(name)) << 32))
    }
}
