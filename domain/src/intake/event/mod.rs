//! One validated, normalised event: what the log holds and what folding reads.
//!
//! Everything that could be different at a replay is decided before it is logged: the day in the organization's
//! timezone, converted amounts, visitor ids, what was made of the agent and of where the visitor came from. Folding
//! reads no table, no clock and no configuration.

mod v1;

use serde::{Deserialize, Serialize};

pub use v1::EventV1;

use crate::acquisition::Acquisition;
use crate::agent::Agent;
use crate::company::CompanyKey;
use crate::facts::{MoneySums, SeenOnDay, Sums};
use crate::ids::ProjectId;
use crate::intake::country::Country;
use crate::money::{Amount, Currency};
use crate::time::{Day, Instant};

/// The place of an event in the order in which events were recorded.
pub type Position = u64;

/// The version of [`Event`] in the log. A change of any field's shape is a new version, and the old ones stay readable: version 1
/// as [`EventV1`].
pub const EVENT_VERSION: u8 = 2;

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The project it belongs to.
    pub project: ProjectId,
    /// When it happened.
    pub time: Instant,
    /// When it was received.
    pub received: Instant,
    /// The calendar day of `time` in the organization's timezone.
    pub day: Day,
    /// What happened; 1 to 100 characters.
    pub name: Box<str>,
    /// The ids that it names.
    pub who: SentIds,
    /// Its idempotency key in the project.
    pub external_id: Option<Box<str>>,
    /// Its money, if it has a `value`.
    pub money: Option<Money>,
    /// The company that it names itself.
    pub company: Option<CompanyKey>,
    /// The domain that a `group` event reports for `company`.
    pub company_domain: Option<CompanyKey>,
    /// The company of the e-mail address that it reports.
    pub email_company: Option<CompanyKey>,
    /// Everything that only filters, groupings and exports read.
    pub details: Details,
}

/// The ids that an event names. Without any, it has no identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentIds {
    /// The user, as sent.
    pub user_id: Option<Box<str>>,
    /// The browser or device, as sent.
    pub anonymous_id: Option<Box<str>>,
    /// The cookieless visitor; only where nothing was sent.
    pub visitor: Option<u128>,
}

/// The money of an event, converted with the rates of the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    /// As sent.
    pub amount: Amount,
    /// As sent, or the project's.
    pub currency: Currency,
    /// In the project's currency; absent without a rate.
    pub in_project: Option<Amount>,
    /// In the organization's currency; absent without a rate.
    pub in_organization: Option<Amount>,
    /// Whether it counts: not, where only servers may send money and a public key did.
    pub counted: bool,
}

/// What filters, groupings and exports read. Text as sent unless it says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The page's address.
    pub url: Option<Box<str>>,
    /// The page's host.
    pub hostname: Option<Box<str>>,
    /// Where the visitor came from.
    pub referrer: Option<Box<str>>,
    /// The screen, `1920x1080` or a name.
    pub screen: Option<Box<str>>,
    /// The language tag.
    pub language: Option<Box<str>>,
    /// The notification channel.
    pub channel: Option<Box<str>>,
    /// The notification's text.
    pub message: Option<Box<str>>,
    /// Whether to notify.
    pub notify: Option<bool>,
    /// The type of the group, where a group is named.
    pub group_type: Option<Box<str>>,
    /// The group, as sent.
    pub group_id: Option<Box<str>>,
    /// The e-mail address that it reports, normalised.
    pub email: Option<Box<str>>,
    /// The categories that were granted, as sent.
    pub privacy_categories: Option<Box<str>>,
    /// The privacy signals, as sent and as the headers said.
    pub privacy_signals: Option<Box<str>>,
    /// Where consent was given.
    pub consent_source: Option<Box<str>>,
    /// Any JSON, as sent.
    pub metadata: Option<Box<str>>,
    /// What the user agent says; absent without consent.
    pub agent: Option<Agent>,
    /// Where the visitor came from, by the tables of the moment; absent without consent.
    pub acquisition: Option<Acquisition>,
    /// Where the visitor was, by the address or the proxy of the moment; absent without consent, and where neither says. Since
    /// version 2.
    pub country: Option<Country>,
}

impl Event {
    /// What the event adds to its day.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let money = self.money.as_ref().and_then(money_sums);
        Sums { events: 1, pageviews: u32::from(self.is_pageview()), seen: SeenOnDay::once(self.day, self.time), money }
    }

    /// Whether it is a pageview.
    #[must_use]
    pub fn is_pageview(&self) -> bool {
        matches!(&*self.name, "pageview" | "page_view" | "$pageview" | "page")
    }

    /// What it is worth in the project's currency, and how many orders it is (none, for a refund): if it counts there.
    #[must_use]
    pub fn order(&self) -> Option<(Amount, u8)> {
        let money = self.money.as_ref().filter(|money| money.counted && !money.amount.is_zero())?;
        Some((money.in_project?, u8::from(money.amount.is_positive())))
    }
}

fn money_sums(money: &Money) -> Option<Box<MoneySums>> {
    if !money.counted || money.amount.is_zero() {
        return None;
    }
    let orders = i64::from(money.amount.is_positive());
    let mut sums = MoneySums::default();
    match money.in_project {
        Some(revenue) => (sums.revenue, sums.orders) = (revenue, orders),
        None => drop(sums.unconverted.insert(money.currency, (money.amount, orders))),
    }
    if let Some(revenue) = money.in_organization {
        (sums.organization_revenue, sums.organization_orders) = (revenue, orders);
    }
    Some(Box::new(sums))
}
