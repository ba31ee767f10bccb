//! A validated, normalised event: the log's payload and the input of folding.
//!
//! Everything that could differ in a replay is decided before the event is logged: the day in the
//! organization's timezone, converted amounts, visitor ids, the parsed agent and the acquisition.
//! Folding reads no table, no clock and no configuration.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::acquisition::Acquisition;
use crate::agent::Agent;
use crate::company::CompanyKey;
use crate::facts::{MoneySums, SeenOnDay, Sums};
use crate::ids::ProjectId;
use crate::intake::country::Country;
use crate::money::{Amount, Currency};
use crate::text;
use crate::time::{Day, Instant};

/// An event's index in recording order.
pub type Position = u64;

/// The version of [`Event`] in the log. Changing the shape of any field requires a new version; old
/// versions stay readable.
pub const EVENT_VERSION: u8 = 1;

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The project of the event.
    pub project: ProjectId,
    /// The time at which it happened.
    pub time: Instant,
    /// The time of receipt.
    pub received: Instant,
    /// The calendar day of `time` in the organization's timezone.
    pub day: Day,
    /// Whether the event reports something that a person did at its time. Only such events make
    /// sessions.
    pub interactive: bool,
    /// The event's name, 1 to 100 characters.
    pub name: CompactString,
    /// The ids in the event.
    pub who: SentIds,
    /// The event's idempotency key, unique in the project.
    pub external_id: Option<CompactString>,
    /// The event's money, if it has a `value`.
    pub money: Option<Money>,
    /// The company that the event names directly.
    pub company: Option<CompanyKey>,
    /// The domain that a `group` event reports for `company`.
    pub company_domain: Option<CompanyKey>,
    /// The company of the e-mail address that the event reports.
    pub email_company: Option<CompanyKey>,
    /// The fields that only filters, groupings and exports read.
    pub details: Details,
}

/// The ids in an event. An event without ids has no identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentIds {
    /// The user, as sent.
    pub user_id: Option<CompactString>,
    /// The browser or device, as sent.
    pub anonymous_id: Option<CompactString>,
    /// The cookieless visitor; only set if no id was sent.
    pub visitor: Option<u128>,
}

/// The money of an event, converted at the rates of its time of receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    /// The amount, as sent.
    pub amount: Amount,
    /// The currency as sent, or the project's.
    pub currency: Currency,
    /// The amount in the project's currency; absent without a rate.
    pub in_project: Option<Amount>,
    /// The amount in the organization's currency; absent without a rate.
    pub in_organization: Option<Amount>,
    /// Whether the money counts. It does not count if a public key sent it to a project that
    /// accepts money only from servers.
    pub counted: bool,
}

/// The fields that filters, groupings and exports read. Text is as sent unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The page's address.
    pub url: Option<CompactString>,
    /// The page's host.
    pub hostname: Option<CompactString>,
    /// The referrer.
    pub referrer: Option<CompactString>,
    /// The host of an external referrer, by the project's settings at the time of receipt.
    pub referrer_host: Option<CompactString>,
    /// The screen, `1920x1080` or a name.
    pub screen: Option<CompactString>,
    /// The language tag.
    pub language: Option<CompactString>,
    /// The notification channel.
    pub channel: Option<CompactString>,
    /// The notification's text.
    pub message: Option<CompactString>,
    /// Whether to notify.
    pub notify: Option<bool>,
    /// The type of the group, if the event names a group.
    pub group_type: Option<CompactString>,
    /// The group, as sent.
    pub group_id: Option<CompactString>,
    /// The e-mail address that the event reports, normalised.
    pub email: Option<CompactString>,
    /// The granted categories, as sent.
    pub privacy_categories: Option<CompactString>,
    /// The privacy signals, as sent in the body and in headers.
    pub privacy_signals: Option<CompactString>,
    /// The source of the consent.
    pub consent_source: Option<CompactString>,
    /// Any JSON, as sent.
    pub metadata: Option<CompactString>,
    /// The parsed user agent; absent without consent.
    pub agent: Option<Agent>,
    /// The acquisition, resolved with the tables at the time of receipt; absent without consent.
    pub acquisition: Option<Acquisition>,
    /// The visitor's country, from the address database or the proxy at the time of receipt; absent
    /// without consent, or if neither knows it.
    pub country: Option<Country>,
}

impl Details {
    /// Returns the part of the page URL that an event without consent keeps: no query, fragment or
    /// userinfo.
    pub(crate) fn url_without_person(&self) -> Option<CompactString> {
        let page = self.url.as_deref().map(text::page_without_userinfo);
        page.filter(|page| !page.is_empty()).map(CompactString::from)
    }

    /// Returns the part of the referrer that an event without consent keeps: the host, if it is
    /// external.
    pub(crate) fn referrer_without_person(&self) -> Option<CompactString> {
        self.referrer_host.as_deref().map(|host| text::host_as_referrer(host).into())
    }
}

impl Event {
    /// Returns the event's contribution to the sums of its day.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let money = self.money.as_ref().and_then(money_sums);
        Sums { events: 1, pageviews: u32::from(self.is_pageview()), seen: SeenOnDay::once(self.day, self.time), money }
    }

    /// Whether the event was recorded with consent. Otherwise it contains nothing about a person.
    #[must_use]
    pub fn has_consent(&self) -> bool {
        self.details.acquisition.is_some()
    }

    /// Whether the event's source is known, which makes it a touch of its entity.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.details.acquisition.as_ref().is_some_and(|acquisition| !acquisition.is_direct())
    }

    /// Whether the event has a page URL.
    #[must_use]
    pub fn has_page(&self) -> bool {
        self.details.url.as_deref().is_some_and(|url| !text::page(url).is_empty())
    }

    /// Whether the event is a pageview.
    #[must_use]
    pub fn is_pageview(&self) -> bool {
        is_pageview(&self.name)
    }

    /// Returns the event's value in the project's currency and its number of orders (0 for a
    /// refund), if it counts.
    #[must_use]
    pub fn order(&self) -> Option<(Amount, u8)> {
        let money = self.money.as_ref().filter(|money| money.counted && !money.amount.is_zero())?;
        Some((money.in_project?, u8::from(money.amount.is_positive())))
    }
}

/// The names of pageviews.
pub const PAGEVIEWS: [&str; 4] = ["pageview", "page_view", "$pageview", "page"];

/// Whether events of this name are pageviews.
#[must_use]
pub fn is_pageview(name: &str) -> bool {
    PAGEVIEWS.contains(&name)
}

fn money_sums(money: &Money) -> Option<Box<MoneySums>> {
    if !money.counted || money.amount.is_zero() {
        return None;
    }
    let orders = i64::from(money.amount.is_positive());
    let mut sums = MoneySums::default();
    match money.in_project {
        Some(revenue) => (sums.revenue, sums.orders) = (revenue, orders),
        None => sums.unconverted.add(money.currency, money.amount, orders),
    }
    if let Some(revenue) = money.in_organization {
        (sums.organization_revenue, sums.organization_orders) = (revenue, orders);
    }
    Some(Box::new(sums))
}
