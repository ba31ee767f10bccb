//! The objects of an artifact. Every key is always there.

use headcount_api::openapi::schemas::AnyJson;
use headcount_api::respond::answer::{Decimal, Timestamp};
use headcount_domain::acquisition::Channel;
use headcount_domain::agent::Agent;
use headcount_domain::ids::event_id;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::Money;
use headcount_domain::{Event, Position};
use serde::ser::{Error, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::schema::{ArtifactValue, object};

/// JSON as it was sent.
#[derive(Debug)]
pub(crate) struct RawJson<'e>(Option<&'e str>);

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: Option<&RawValue> = self.0.map(serde_json::from_str).transpose().map_err(Error::custom)?;
        raw.serialize(serializer)
    }
}

impl ArtifactValue for RawJson<'_> {
    fn schema() -> RefOr<Schema> {
        <AnyJson as ArtifactValue>::schema()
    }
}

/// Defines a row, describes it, and makes it of what the expressions behind the types say.
macro_rules! row {
    ($(#[doc = $summary:literal])+ struct $name:ident $(<$life:lifetime>)? {
        $(#[doc = $text:literal] $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $summary])+
        #[derive(Debug, serde::Serialize)]
        pub(crate) struct $name $(<$life>)? { $(#[doc = $text] pub(crate) $field: $type,)* }

        object! { [$($life)?] $name, concat!($($summary),+), $($text $field: $type,)* }
    };
    ($(#[doc = $summary:literal])+ struct $name:ident<$life:lifetime> of($($arg:ident: $arg_type:ty),*) { $($bound:tt)* } {
        $(#[doc = $text:literal] $field:ident: $type:ty = $make:expr,)*
    }) => {
        row! { $(#[doc = $summary])+ struct $name<$life> { $(#[doc = $text] $field: $type,)* } }

        impl<$life> $name<$life> {
            pub(super) fn of($($arg: $arg_type),*) -> Self {
                $($bound)*
                Self { $($field: $make,)* }
            }
        }
    };
}

row! {
    /// An event, as it is stored.
    struct EventRow<'e> of(position: Position, event: &'e Event, identity_id: &'e str, company_id: Option<&'e str>) {
        let (details, money) = (&event.details, event.money.as_ref());
        let (agent, from) = (details.agent.as_ref(), details.acquisition.as_ref());
        let text = |get: fn(&Agent) -> Option<&str>| agent.and_then(get);
    } {
        /// The event's id.
        event_id: String = event_id(event.project, event.external_id.as_deref(), position),
        /// Its project.
        project_id: String = event.project.to_string(),
        /// Its position in the project.
        position: u64 = position,
        /// Whose it is.
        identity_id: &'e str = identity_id,
        /// When it happened.
        timestamp: Timestamp = Timestamp::from(event.time),
        /// When it was received.
        received_at: Timestamp = Timestamp::from(event.received),
        /// Its name.
        name: &'e str = &event.name,
        /// The user's id.
        user_id: Option<&'e str> = event.who.user_id.as_deref(),
        /// The anonymous id.
        anonymous_id: Option<&'e str> = event.who.anonymous_id.as_deref(),
        /// The sender's id of the event.
        external_id: Option<&'e str> = event.external_id.as_deref(),
        /// The page.
        url: Option<&'e str> = details.url.as_deref(),
        /// The page's host.
        hostname: Option<&'e str> = details.hostname.as_deref(),
        /// Where the visitor came from.
        referrer: Option<&'e str> = details.referrer.as_deref(),
        /// The host of an external referrer.
        referrer_host: Option<&'e str> = details.referrer_host.as_deref(),
        /// The size of the screen.
        screen: Option<&'e str> = details.screen.as_deref(),
        /// The language.
        language: Option<&'e str> = details.language.as_deref(),
        /// The channel, as it was sent.
        channel: Option<&'e str> = details.channel.as_deref(),
        /// The text of a notification.
        message: Option<&'e str> = details.message.as_deref(),
        /// Whether it is a notification.
        notify: Option<bool> = details.notify,
        /// The type of its group.
        group_type: Option<&'e str> = details.group_type.as_deref(),
        /// The key of its group.
        group_id: Option<&'e str> = details.group_id.as_deref(),
        /// The categories that were granted.
        privacy_categories: Option<&'e str> = details.privacy_categories.as_deref(),
        /// The privacy signals.
        privacy_signals: Option<&'e str> = details.privacy_signals.as_deref(),
        /// Where the consent was given.
        consent_source: Option<&'e str> = details.consent_source.as_deref(),
        /// The money, as it was sent.
        value: Option<Decimal> = money.map(|money| Decimal(money.amount)),
        /// Its currency.
        currency: Option<&'e str> = money.map(|money| money.currency.as_str()),
        /// What the sender added.
        metadata: RawJson<'e> = RawJson(details.metadata.as_deref()),
        /// The browser.
        browser: Option<&'e str> = text(|agent| agent.browser.as_deref()),
        /// The browser's version.
        browser_version: Option<&'e str> = text(|agent| agent.browser_version.as_deref()),
        /// The operating system.
        os: Option<&'e str> = text(|agent| agent.os.as_deref()),
        /// The kind of device.
        device: Option<&'static str> = agent.map(|agent| agent.device.name()),
        /// The country.
        location_country: Option<&'e str> = details.country.as_ref().map(Country::as_str),
        /// The event's own source, not its session's.
        source: Option<&'e str> = from.map(|from| from.source.as_str()),
        /// The event's own medium.
        medium: Option<&'e str> = from.map(|from| from.medium.as_str()),
        /// The event's own campaign.
        campaign: Option<&'e str> = from.map(|from| from.campaign.as_str()),
        /// The event's own channel group.
        acquisition_channel: Option<&'static str> = from.map(|from| Channel::name(from.channel)),
        /// The company.
        company_id: Option<&'e str> = company_id,
        /// The money in the project's currency.
        amount: Option<Decimal> = money.and_then(|money| money.in_project).map(Decimal),
        /// Whether the money counts.
        counted: Option<bool> = money.map(|money| money.counted),
        /// Whether somebody did something at its time: only such events make sessions.
        interactive: bool = event.interactive,
    }
}

row! {
    /// An order or a refund.
    struct OrderRow<'e> of(position: Position, event: &'e Event, money: &'e Money) {} {
        /// The event's id.
        event_id: String = event_id(event.project, event.external_id.as_deref(), position),
        /// Its project.
        project_id: String = event.project.to_string(),
        /// When it happened.
        at: Timestamp = Timestamp::from(event.time),
        /// `order` or `refund`.
        kind: &'static str = if money.amount.is_positive() { "order" } else { "refund" },
        /// The money, as it was sent.
        value: Decimal = Decimal(money.amount),
        /// Its currency.
        currency: &'e str = money.currency.as_str(),
        /// The money in the project's currency.
        amount: Option<Decimal> = money.in_project.map(Decimal),
        /// Whether the money counts.
        counted: bool = money.counted,
    }
}

row! {
    /// A session.
    struct SessionRow<'s> {
        /// Its project.
        project_id: String,
        /// Whose it is.
        identity_id: &'s str,
        /// Its first event.
        started_at: Timestamp,
        /// Its last event.
        ended_at: Timestamp,
        /// The time between them in seconds.
        duration_sec: Decimal,
        /// How many events.
        events: u64,
        /// How many of them are pageviews.
        pageviews: u64,
        /// Where it came from.
        source: &'s str,
        /// By which medium.
        medium: &'s str,
        /// By which campaign.
        campaign: &'s str,
        /// The channel group.
        acquisition_channel: &'static str,
        /// Its first page.
        entry_url: Option<&'s str>,
        /// Its last page.
        exit_url: Option<&'s str>,
    }
}

row! {
    /// A company that events belong to.
    struct CompanyRow {
        /// The company, `co_…`.
        company_id: String,
        /// Its name.
        name: Option<String>,
        /// Its domain.
        domain: Option<String>,
        /// How many of the events.
        events: u64,
    }
}

row! {
    /// A group that events belong to.
    struct GroupRow {
        /// Its type.
        group_type: String,
        /// Its key.
        group_key: String,
        /// Its name.
        name: Option<String>,
        /// How many of the events.
        events: u64,
    }
}

row! {
    /// An anonymous id.
    struct AnonymousIdRow<'i> {
        /// The project that reported it.
        project_id: String,
        /// The id.
        anonymous_id: &'i str,
    }
}
