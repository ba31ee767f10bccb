//! The first version of the event in the log, which had no country and no host of a referrer. Only read.
//!
//! Its fields use the current types. Changing the encoding of such a type requires a copy of the old one here.

use compact_str::CompactString;
use serde::Deserialize;

use crate::acquisition::{Acquisition, external_host};
use crate::agent::Agent;
use crate::company::CompanyKey;
use crate::hosts::HostList;
use crate::ids::ProjectId;
use crate::intake::event::{Details, Event, Money, SentIds};
use crate::intake::interaction::tells_traits;
use crate::time::{Day, Instant};

/// A version 1 event, which converts to an [`Event`].
#[derive(Debug, Deserialize)]
pub struct EventV1 {
    project: ProjectId,
    time: Instant,
    received: Instant,
    day: Day,
    name: CompactString,
    who: SentIds,
    external_id: Option<CompactString>,
    money: Option<Money>,
    company: Option<CompanyKey>,
    company_domain: Option<CompanyKey>,
    email_company: Option<CompanyKey>,
    details: DetailsV1,
}

#[derive(Debug, Deserialize)]
struct DetailsV1 {
    url: Option<CompactString>,
    hostname: Option<CompactString>,
    referrer: Option<CompactString>,
    screen: Option<CompactString>,
    language: Option<CompactString>,
    channel: Option<CompactString>,
    message: Option<CompactString>,
    notify: Option<bool>,
    group_type: Option<CompactString>,
    group_id: Option<CompactString>,
    email: Option<CompactString>,
    privacy_categories: Option<CompactString>,
    privacy_signals: Option<CompactString>,
    consent_source: Option<CompactString>,
    metadata: Option<CompactString>,
    agent: Option<Agent>,
    acquisition: Option<Acquisition>,
}

impl From<EventV1> for Event {
    fn from(event: EventV1) -> Self {
        Self {
            project: event.project,
            time: event.time,
            received: event.received,
            day: event.day,
            interactive: !tells_traits(&event.name),
            name: event.name,
            who: event.who,
            external_id: event.external_id,
            money: event.money,
            company: event.company,
            company_domain: event.company_domain,
            email_company: event.email_company,
            details: event.details.into(),
        }
    }
}

impl From<DetailsV1> for Details {
    fn from(details: DetailsV1) -> Self {
        Self {
            referrer_host: external_host(
                details.referrer.as_deref(),
                details.hostname.as_deref(),
                details.url.as_deref(),
                &HostList::default(),
            )
            .map(Into::into),
            url: details.url,
            hostname: details.hostname,
            referrer: details.referrer,
            screen: details.screen,
            language: details.language,
            channel: details.channel,
            message: details.message,
            notify: details.notify,
            group_type: details.group_type,
            group_id: details.group_id,
            email: details.email,
            privacy_categories: details.privacy_categories,
            privacy_signals: details.privacy_signals,
            consent_source: details.consent_source,
            metadata: details.metadata,
            agent: details.agent,
            acquisition: details.acquisition,
            country: None,
        }
    }
}
