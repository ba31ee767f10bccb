//! The settings of an organization and a project that admission reads. Nothing reads them later.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{OrganizationId, ProjectId};
use crate::money::{Amount, Currency, Rate, convert};
use crate::time::Timezone;

/// What happens to events of crawlers, monitors and previewers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BotPolicy {
    /// They are answered `dropped`, with the reason `bot`.
    #[default]
    Drop,
    /// They are recorded; their `device` is `bot`.
    Record,
}

/// What happens to events that carry a privacy signal (`gpc`, `dnt`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalsPolicy {
    /// The signal is recorded with the event.
    #[default]
    Record,
    /// The event is recorded as one without consent.
    Anonymize,
    /// The event is answered `dropped`, with the reason `consent`.
    Drop,
}

/// The worth of one unit of each currency in USD. USD itself is 1 and needs no entry.
pub type Rates = BTreeMap<Currency, Rate>;

/// The settings of a project and its organization that admission reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The project.
    pub project: ProjectId,
    /// Its organization.
    pub organization: OrganizationId,
    /// The currency that the project counts in.
    pub currency: Currency,
    /// The currency that the organization counts in.
    pub organization_currency: Currency,
    /// The rates of the moment.
    pub rates: Arc<Rates>,
    /// The organization's calendar.
    pub timezone: Timezone,
    /// About bots.
    pub bots: BotPolicy,
    /// About privacy signals.
    pub signals: SignalsPolicy,
    /// Whether visitors without ids are distinguished by a daily hash.
    pub cookieless: bool,
    /// Whether money sent with a public key is kept on the event and not counted.
    pub server_only_revenue: bool,
}

impl Policy {
    /// `amount` of `from` in `to`, rounded once; `None` where a rate is missing.
    #[must_use]
    pub fn convert(&self, amount: Amount, from: Currency, to: Currency) -> Option<Amount> {
        if from == to {
            return Some(amount);
        }
        let rate = |currency| if currency == Currency::USD { Some(Rate::ONE) } else { self.rates.get(&currency).copied() };
        Some(convert(amount, rate(from)?, rate(to)?))
    }
}
