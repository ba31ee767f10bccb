//! How often pages and referrers were seen on a day.

use serde::{Deserialize, Serialize};

use crate::cache::paged::{Number, number_in_day};
use crate::ids::RecordKey;
use crate::indexes::dictionary::NameId;
use crate::time::Day;

/// What an event counts under, beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HitKind {
    /// A pageview of this page.
    Page(NameId),
    /// An event with this external referrer.
    Referrer(NameId),
}

/// How often on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The day.
    pub day: Day,
    /// What.
    pub what: HitKind,
    /// How often.
    pub count: u32,
}

impl Hit {
    pub(super) fn number(&self) -> Number {
        let (kind, NameId(name)) = match self.what {
            HitKind::Page(name) => (0, name),
            HitKind::Referrer(name) => (1, name),
        };
        // Names are numbered as they come: their numbers lie in the order of time.
        number_in_day(self.day, RecordKey((kind << 64 | u128::from(name)) << 32))
    }
}
