//! The settings of an organization and a project that admission reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hosts::HostList;
use crate::ids::{OrganizationId, ProjectId};
use crate::money::{Amount, Currency, Rate, convert};
use crate::time::Timezone;

/// The treatment of events from crawlers, monitors and previewers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BotPolicy {
    /// Answers `dropped`, with the reason `bot`.
    #[default]
    Drop,
    /// Records the event with the `device` `bot`.
    Record,
}

/// The treatment of events with a privacy signal (`gpc`, `dnt`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalsPolicy {
    /// Records the signal with the event.
    #[default]
    Record,
    /// Records the event as an event without consent.
    Anonymize,
    /// Answers `dropped`, with the reason `consent`.
    Drop,
}

/// The value of one unit of each currency in USD. USD itself is 1 and has no entry.
pub type Rates = BTreeMap<Currency, Rate>;

/// The settings of a project and its organization that admission reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The project.
    pub project: ProjectId,
    /// Its organization.
    pub organization: OrganizationId,
    /// The currency of the project's figures.
    pub currency: Currency,
    /// The currency of the organization's figures.
    pub organization_currency: Currency,
    /// The current rates.
    pub rates: Arc<Rates>,
    /// The timezone that defines the organization's days.
    pub timezone: Timezone,
    /// The treatment of bots.
    pub bots: BotPolicy,
    /// The treatment of privacy signals.
    pub signals: SignalsPolicy,
    /// Whether visitors without ids are distinguished by a daily hash.
    pub cookieless: bool,
    /// Whether money sent with a public key is stored with the event but not counted.
    pub server_only_revenue: bool,
    /// The hosts that never count as a referrer: the project's own domains, and its ignored
    /// referrers.
    pub no_referrers: HostList,
}

impl Policy {
    /// Converts `amount` between two currencies, rounding once; `None` if a rate is missing.
    #[must_use]
    pub fn convert(&self, amount: Amount, from: Currency, to: Currency) -> Option<Amount> {
        if from == to {
            return Some(amount);
        }
        let rate = |currency| if currency == Currency::USD { Some(Rate::ONE) } else { self.rates.get(&currency).copied() };
        Some(convert(amount, rate(from)?, rate(to)?))
    }
}
