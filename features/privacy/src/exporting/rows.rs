//! The objects of an artifact. Every key is always there.

use std::fmt::Display;

use headcount_domain::acquisition::Channel;
use headcount_domain::agent::Agent;
use headcount_domain::ids::event_id;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::money::Amount;
use headcount_domain::time::Instant;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An exact number, as JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) Amount);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// What is shown as text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<T>(pub(super) T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An event.
#[derive(Debug, Serialize)]
pub(super) struct EventRow<'e> {
    event_id: String,
    project_id: String,
    position: Position,
    identity_id: &'e str,
    timestamp: Shown<Instant>,
    received_at: Shown<Instant>,
    name: &'e str,
    user_id: Option<&'e str>,
    anonymous_id: Option<&'e str>,
    external_id: Option<&'e str>,
    url: Option<&'e str>,
    hostname: Option<&'e str>,
    referrer: Option<&'e str>,
    referrer_host: Option<&'e str>,
    screen: Option<&'e str>,
    language: Option<&'e str>,
    channel: Option<&'e str>,
    message: Option<&'e str>,
    notify: Option<bool>,
    group_type: Option<&'e str>,
    group_id: Option<&'e str>,
    privacy_categories: Option<&'e str>,
    privacy_signals: Option<&'e str>,
    consent_source: Option<&'e str>,
    value: Option<Number>,
    currency: Option<&'e str>,
    metadata: Option<&'e RawValue>,
    browser: Option<&'e str>,
    browser_version: Option<&'e str>,
    os: Option<&'e str>,
    device: Option<&'static str>,
    location_country: Option<&'e str>,
    source: Option<&'e str>,
    medium: Option<&'e str>,
    campaign: Option<&'e str>,
    acquisition_channel: Option<&'static str>,
    company_id: Option<&'e str>,
    amount: Option<Number>,
    counted: Option<bool>,
    interactive: bool,
}

impl<'e> EventRow<'e> {
    pub(super) fn of(
        position: Position,
        event: &'e Event,
        identity_id: &'e str,
        company_id: Option<&'e str>,
    ) -> serde_json::Result<Self> {
        let (details, money) = (&event.details, event.money.as_ref());
        let (agent, from) = (details.agent.as_ref(), details.acquisition.as_ref());
        let text = |get: fn(&Agent) -> Option<&str>| agent.and_then(get);
        Ok(Self {
            event_id: event_id(event.project, event.external_id.as_deref(), position),
            project_id: event.project.to_string(),
            position,
            identity_id,
            timestamp: Shown(event.time),
            received_at: Shown(event.received),
            name: &event.name,
            user_id: event.who.user_id.as_deref(),
            anonymous_id: event.who.anonymous_id.as_deref(),
            external_id: event.external_id.as_deref(),
            url: details.url.as_deref(),
            hostname: details.hostname.as_deref(),
            referrer: details.referrer.as_deref(),
            referrer_host: details.referrer_host.as_deref(),
            screen: details.screen.as_deref(),
            language: details.language.as_deref(),
            channel: details.channel.as_deref(),
            message: details.message.as_deref(),
            notify: details.notify,
            group_type: details.group_type.as_deref(),
            group_id: details.group_id.as_deref(),
            privacy_categories: details.privacy_categories.as_deref(),
            privacy_signals: details.privacy_signals.as_deref(),
            consent_source: details.consent_source.as_deref(),
            value: money.map(|money| Number(money.amount)),
            currency: money.map(|money| money.currency.as_str()),
            metadata: details.metadata.as_deref().map(serde_json::from_str).transpose()?,
            browser: text(|agent| agent.browser.as_deref()),
            browser_version: text(|agent| agent.browser_version.as_deref()),
            os: text(|agent| agent.os.as_deref()),
            device: agent.map(|agent| agent.device.name()),
            location_country: details.country.as_ref().map(Country::as_str),
            source: from.map(|from| from.source.as_str()),
            medium: from.map(|from| from.medium.as_str()),
            campaign: from.map(|from| from.campaign.as_str()),
            acquisition_channel: from.map(|from| Channel::name(from.channel)),
            company_id,
            amount: money.and_then(|money| money.in_project).map(Number),
            counted: money.map(|money| money.counted),
            interactive: event.interactive,
        })
    }
}

/// An order or a refund.
#[derive(Debug, Serialize)]
pub(super) struct OrderRow<'e> {
    event_id: String,
    project_id: String,
    at: Shown<Instant>,
    kind: &'static str,
    value: Number,
    currency: &'e str,
    amount: Option<Number>,
    counted: bool,
}

impl<'e> OrderRow<'e> {
    /// Returns the order or refund that an event is, if it is one.
    pub(super) fn of(position: Position, event: &'e Event) -> Option<Self> {
        let money = event.money.as_ref().filter(|money| !money.amount.is_zero())?;
        Some(Self {
            event_id: event_id(event.project, event.external_id.as_deref(), position),
            project_id: event.project.to_string(),
            at: Shown(event.time),
            kind: if money.amount.is_positive() { "order" } else { "refund" },
            value: Number(money.amount),
            currency: money.currency.as_str(),
            amount: money.in_project.map(Number),
            counted: money.counted,
        })
    }
}

/// A session.
#[derive(Debug, Serialize)]
pub(super) struct SessionRow<'s> {
    pub(super) project_id: String,
    pub(super) identity_id: &'s str,
    pub(super) started_at: Shown<Instant>,
    pub(super) ended_at: Shown<Instant>,
    pub(super) duration_sec: Number,
    pub(super) events: u64,
    pub(super) pageviews: u64,
    pub(super) source: &'s str,
    pub(super) medium: &'s str,
    pub(super) campaign: &'s str,
    pub(super) acquisition_channel: &'static str,
    pub(super) entry_url: Option<&'s str>,
    pub(super) exit_url: Option<&'s str>,
}

/// A company.
#[derive(Debug, Serialize)]
pub(super) struct CompanyRow {
    pub(super) company_id: String,
    pub(super) name: Option<String>,
    pub(super) domain: Option<String>,
    pub(super) events: u64,
}

/// A group that is no company.
#[derive(Debug, Serialize)]
pub(super) struct GroupRow {
    pub(super) group_type: String,
    pub(super) group_key: String,
    pub(super) name: Option<String>,
    pub(super) events: u64,
}

/// An anonymous id of an identity.
#[derive(Debug, Serialize)]
pub(super) struct AnonymousIdRow<'i> {
    pub(super) project_id: String,
    pub(super) anonymous_id: &'i str,
}
