//! Assembles a row from the values of its columns.

use compact_str::CompactString;
use headcount_domain::acquisition::{Acquisition, Channel};
use headcount_domain::agent::{Agent, Device};
use headcount_domain::company::CompanyKey;
use headcount_domain::intake::event::{Details, Money, SentIds};
use headcount_domain::{Amount, Currency, Day, Event, Instant, Position, ProjectId};

use crate::row::{Currencies, Row};

/// The values of a row's columns so far.
#[derive(Debug, Default)]
pub struct Draft {
    pub(super) position: Position,
    pub(super) time: Instant,
    pub(super) received: Instant,
    pub(super) day: Day,
    pub(super) name: CompactString,
    pub(super) consented: bool,
    pub(super) interactive: bool,
    pub(super) who: SentIds,
    pub(super) external_id: Option<CompactString>,
    pub(super) money: MoneyDraft,
    pub(super) company: Option<CompanyKey>,
    pub(super) company_domain: Option<CompanyKey>,
    pub(super) email_company: Option<CompanyKey>,
    pub(super) agent: Agent,
    pub(super) device: Option<Device>,
    pub(super) source: Option<CompactString>,
    pub(super) medium: Option<CompactString>,
    pub(super) campaign: Option<CompactString>,
    pub(super) channel: Option<Channel>,
    /// All details except agent and acquisition.
    pub(super) details: Details,
    pub(super) set_aside: bool,
}

#[derive(Debug, Default)]
pub(super) struct MoneyDraft {
    pub(super) value: Option<Amount>,
    pub(super) in_project: Option<Amount>,
    pub(super) in_organization: Option<Amount>,
    pub(super) counted: Option<bool>,
    pub(super) currency: Option<Currency>,
    pub(super) project_currency: Option<Currency>,
    pub(super) organization_currency: Option<Currency>,
}

/// The columns of a row are inconsistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Some columns of money are null and others are not.
    #[error("the columns of money are incomplete")]
    Money,
    /// `device` is null, but another column of the agent is not.
    #[error("the columns of the agent are incomplete")]
    Agent,
    /// Some of `event_source`, `event_medium`, `event_campaign` and `event_channel` are null and
    /// others are not.
    #[error("the columns of the event's acquisition are incomplete")]
    Acquisition,
    /// `consented` must be true if and only if the columns of the acquisition are not null.
    #[error("consent and acquisition are inconsistent")]
    Consent,
}

impl Draft {
    /// Creates the row of an event of `project`.
    ///
    /// # Errors
    /// The columns are inconsistent.
    pub fn finish(mut self, project: ProjectId) -> Result<Row, Malformed> {
        let (money, currencies) = self.money.finish()?.unzip();
        self.details.agent = match self.device {
            Some(device) => Some(Agent { device, ..self.agent }),
            None if self.agent == Agent::default() => None,
            None => return Err(Malformed::Agent),
        };
        self.details.acquisition = match (self.source, self.medium, self.campaign, self.channel) {
            (Some(source), Some(medium), Some(campaign), Some(channel)) => {
                Some(Acquisition { source, medium, campaign, channel })
            }
            (None, None, None, None) => None,
            _ => return Err(Malformed::Acquisition),
        };
        if self.consented != self.details.acquisition.is_some() {
            return Err(Malformed::Consent);
        }
        let event = Event {
            project,
            time: self.time,
            received: self.received,
            day: self.day,
            interactive: self.interactive,
            name: self.name,
            who: self.who,
            external_id: self.external_id,
            money,
            company: self.company,
            company_domain: self.company_domain,
            email_company: self.email_company,
            details: self.details,
        };
        Ok(Row { position: self.position, event, currencies, set_aside: self.set_aside })
    }
}

impl MoneyDraft {
    fn finish(self) -> Result<Option<(Money, Currencies)>, Malformed> {
        let Self { in_project, in_organization, .. } = self;
        match (self.value, self.counted, self.currency, self.project_currency, self.organization_currency) {
            (Some(amount), Some(counted), Some(currency), Some(project), Some(organization)) => {
                let money = Money { amount, currency, in_project, in_organization, counted };
                Ok(Some((money, Currencies { project, organization })))
            }
            (None, None, None, None, None) if in_project.is_none() && in_organization.is_none() => Ok(None),
            _ => Err(Malformed::Money),
        }
    }
}
