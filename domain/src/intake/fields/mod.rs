//! The properties of events that queries filter and group by: built-in fields, and paths into the
//! metadata.
//!
//! Reading a property can't fail: an absent property is null.

mod metadata;
mod number;
mod paths;
mod session;

use std::borrow::Cow;
use std::fmt;

use compact_str::CompactString;
pub(crate) use metadata::metadata_text;
pub use metadata::{MAX_PATH_BYTES, MetadataPath, PathError, Scalar};
pub use number::Number;
pub use paths::{ScalarType, visit_paths};
pub use session::{Decider, SessionField};

use crate::acquisition::{self, Channel, Utm};
use crate::agent::Agent;
use crate::intake::country::Country;
use crate::intake::event::Event;
use crate::named_values;
use crate::names::NamedValues;
use crate::text;

/// The prefix of the names of metadata properties.
const METADATA_PREFIX: &str = "metadata.";

named_values! {
    /// A property that every event may have. All of them are text.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum BuiltIn by as_str {
        /// The event's name.
        Name = "name",
        /// The browser's name.
        Browser = "browser",
        /// The browser's full version.
        BrowserVersion = "browser_version",
        /// The operating system, without its version.
        Os = "os",
        /// `desktop`, `mobile`, `tablet`, `bot` or `other`.
        Device = "device",
        /// The visitor's country: its ISO 3166-1 alpha-2 code, in upper case.
        LocationCountry = "location_country",
        /// The language tag, as sent.
        Language = "language",
        /// The screen, as sent.
        Screen = "screen",
        /// The page's host: as sent, else the host of the page's address.
        Hostname = "hostname",
        /// The page's address without query and fragment.
        Url = "url",
        /// The path of the page's address.
        Path = "path",
        /// The `url` of the session's first interactive event that has one.
        EntryUrl = "entry_url",
        /// The external referrer's host, without `www.`.
        Referrer = "referrer",
        /// The parameter of the page's address, lower-cased.
        UtmSource = "utm_source",
        /// The parameter of the page's address, lower-cased.
        UtmMedium = "utm_medium",
        /// The parameter of the page's address, lower-cased.
        UtmCampaign = "utm_campaign",
        /// The parameter of the page's address, lower-cased.
        UtmTerm = "utm_term",
        /// The parameter of the page's address, lower-cased.
        UtmContent = "utm_content",
        /// The channel of the session's first interactive event with a source; of its entry, if
        /// none has one.
        AcquisitionChannel = "acquisition_channel",
        /// The notification channel, as sent.
        Channel = "channel",
        /// The currency of an event with a `value`: as sent, else the project's.
        Currency = "currency",
        /// The type of the group that the event names; `company` if only an id was sent.
        GroupType = "group_type",
        /// The group that the event names, as sent.
        GroupId = "group_id",
        /// The user id as sent, which may differ from the identity that the event is attributed to.
        UserId = "user_id",
        /// The source of the consent, as sent.
        ConsentSource = "consent_source",
    }
}

impl BuiltIn {
    /// Whether the field belongs to the event's session, and so requires an [`Entry`].
    #[must_use]
    pub const fn of_session(self) -> bool {
        matches!(self, BuiltIn::EntryUrl | BuiltIn::AcquisitionChannel)
    }

    /// Returns the field's value for `event`, whose session has this `entry`. An event without a
    /// session has no entry.
    #[must_use]
    pub fn value<'e>(self, event: &'e Event, entry: Option<&'e Entry>) -> Option<Cow<'e, str>> {
        match self {
            BuiltIn::EntryUrl | BuiltIn::AcquisitionChannel => self.value_of_session(entry).map(Cow::Borrowed),
            _ => self.value_of(|text| text.of(event)),
        }
    }

    /// The texts of an event from which the field is computed. Fields of the session depend on the
    /// texts of other events.
    #[must_use]
    pub const fn reads(self) -> &'static [EventText] {
        use EventText as Text;
        match self {
            BuiltIn::Name => &[Text::Name],
            BuiltIn::Browser => &[Text::Browser],
            BuiltIn::BrowserVersion => &[Text::BrowserVersion],
            BuiltIn::Os => &[Text::Os],
            BuiltIn::Device => &[Text::Device],
            BuiltIn::LocationCountry => &[Text::Country],
            BuiltIn::Language => &[Text::Language],
            BuiltIn::Screen => &[Text::Screen],
            BuiltIn::Hostname => &[Text::Hostname, Text::Url],
            BuiltIn::Url
            | BuiltIn::Path
            | BuiltIn::UtmSource
            | BuiltIn::UtmMedium
            | BuiltIn::UtmCampaign
            | BuiltIn::UtmTerm
            | BuiltIn::UtmContent => &[Text::Url],
            BuiltIn::EntryUrl | BuiltIn::AcquisitionChannel => &[],
            BuiltIn::Referrer => &[Text::ReferrerHost],
            BuiltIn::Channel => &[Text::Channel],
            BuiltIn::Currency => &[Text::Currency],
            BuiltIn::GroupType => &[Text::GroupType],
            BuiltIn::GroupId => &[Text::GroupId],
            BuiltIn::UserId => &[Text::UserId],
            BuiltIn::ConsentSource => &[Text::ConsentSource],
        }
    }

    /// Returns the field's value for an event with these texts; `None` for fields of the session.
    /// Reads only the texts of [`BuiltIn::reads`].
    #[must_use]
    pub fn value_of<'e>(self, text: impl Fn(EventText) -> Option<&'e str>) -> Option<Cow<'e, str>> {
        let url = || text(EventText::Url);
        match self {
            BuiltIn::Hostname => text(EventText::Hostname).map(Cow::Borrowed).or_else(|| text::host_of(url()?)),
            BuiltIn::Url => page(url()?).map(Cow::Owned),
            BuiltIn::Path => text::path_of(url()?).map(Cow::Borrowed),
            BuiltIn::UtmSource => utm(url(), |utm| utm.source),
            BuiltIn::UtmMedium => utm(url(), |utm| utm.medium),
            BuiltIn::UtmCampaign => utm(url(), |utm| utm.campaign),
            BuiltIn::UtmTerm => utm(url(), |utm| utm.term),
            BuiltIn::UtmContent => utm(url(), |utm| utm.content),
            _ => self.reads().first().and_then(|one| text(*one)).map(Cow::Borrowed),
        }
    }

    /// Returns the value of a field of the session that has this `entry`; `None` for other fields.
    #[must_use]
    pub fn value_of_session(self, entry: Option<&Entry>) -> Option<&str> {
        match self {
            BuiltIn::EntryUrl => entry?.url.as_deref(),
            BuiltIn::AcquisitionChannel => entry?.channel.map(Channel::name),
            _ => None,
        }
    }
}

/// A recorded text of an event, from which built-in fields are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventText {
    /// The name.
    Name,
    /// The browser.
    Browser,
    /// The browser's version.
    BrowserVersion,
    /// The operating system.
    Os,
    /// The kind of device.
    Device,
    /// The country's code.
    Country,
    /// The language.
    Language,
    /// The screen.
    Screen,
    /// The host, as sent.
    Hostname,
    /// The page's address.
    Url,
    /// The host of an external referrer.
    ReferrerHost,
    /// The notification channel.
    Channel,
    /// The currency.
    Currency,
    /// The type of the group.
    GroupType,
    /// The group.
    GroupId,
    /// The user.
    UserId,
    /// The source of the consent.
    ConsentSource,
}

impl EventText {
    /// Returns the text of `event`.
    #[must_use]
    pub fn of(self, event: &Event) -> Option<&str> {
        let details = &event.details;
        let agent = |pick: fn(&Agent) -> Option<&str>| details.agent.as_ref().and_then(pick);
        match self {
            EventText::Name => Some(&*event.name),
            EventText::Browser => agent(|agent| agent.browser.as_deref()),
            EventText::BrowserVersion => agent(|agent| agent.browser_version.as_deref()),
            EventText::Os => agent(|agent| agent.os.as_deref()),
            EventText::Device => agent(|agent| Some(agent.device.name())),
            EventText::Country => details.country.as_ref().map(Country::as_str),
            EventText::Language => details.language.as_deref(),
            EventText::Screen => details.screen.as_deref(),
            EventText::Hostname => details.hostname.as_deref(),
            EventText::Url => details.url.as_deref(),
            EventText::ReferrerHost => details.referrer_host.as_deref(),
            EventText::Channel => details.channel.as_deref(),
            EventText::Currency => event.money.as_ref().map(|money| money.currency.as_str()),
            EventText::GroupType => details.group_type.as_deref(),
            EventText::GroupId => details.group_id.as_deref(),
            EventText::UserId => event.who.user_id.as_deref(),
            EventText::ConsentSource => details.consent_source.as_deref(),
        }
    }
}

fn page(url: &str) -> Option<String> {
    Some(text::page_url(url)).filter(|page| !page.is_empty())
}

fn utm(url: Option<&str>, pick: fn(Utm) -> Option<CompactString>) -> Option<Cow<'static, str>> {
    pick(acquisition::utm(url?)).map(|value| Cow::Owned(value.into()))
}

/// The fields that all events of a session share, including attached events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The page's address, without query and fragment.
    pub url: Option<Box<str>>,
    /// The channel of the visit.
    pub channel: Option<Channel>,
}

impl Entry {
    /// Returns the fields of a session with this deciding URL and channel.
    #[must_use]
    pub fn new(url: Option<&str>, channel: Option<Channel>) -> Entry {
        Entry { url: url.and_then(page).map(Into::into), channel }
    }

    /// Returns the fields of a session if `event` decides both.
    #[must_use]
    pub fn of(event: &Event) -> Entry {
        let details = &event.details;
        Self::new(details.url.as_deref(), details.acquisition.as_ref().map(|acquisition| acquisition.channel))
    }
}

/// A property of events, identified by name: `browser`, `metadata.plan.name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    /// A built-in field.
    BuiltIn(BuiltIn),
    /// A metadata property.
    Metadata(MetadataPath),
    /// A property of the session, in questions about sessions.
    Session(SessionField),
}

/// The reason why a text is not the name of a property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It is neither a built-in field nor a metadata property.
    #[error("must be metadata.<path> or one of {}, not {:?}", BuiltIn::names().join(", "), text::cut_chars(.0, 64))]
    Unknown(String),
    /// It is neither a built-in field, nor a property of sessions, nor a metadata property.
    #[error(
        "must be metadata.<path> or one of {}, {}, not {:?}",
        BuiltIn::names().join(", "),
        SessionField::names().join(", "),
        text::cut_chars(.0, 64)
    )]
    UnknownInSessions(String),
    /// The text after `metadata.` is not a path.
    #[error("the path after metadata. {0}")]
    Path(#[from] PathError),
}

impl Field {
    /// Parses the name of a built-in field, or `metadata.` and a path.
    ///
    /// # Errors
    /// [`FieldError`], whose message lists the known fields.
    pub fn parse(name: &str) -> Result<Field, FieldError> {
        if let Some(path) = name.strip_prefix(METADATA_PREFIX) {
            return Ok(Field::Metadata(MetadataPath::parse(path)?));
        }
        name.parse().map(Field::BuiltIn).map_err(|_| FieldError::Unknown(name.to_owned()))
    }

    /// Parses the name of a property in a question about sessions.
    ///
    /// # Errors
    /// [`FieldError`], whose message lists the known fields.
    pub fn parse_in_sessions(name: &str) -> Result<Field, FieldError> {
        if let Ok(field) = name.parse() {
            return Ok(Field::Session(field));
        }
        Field::parse(name).map_err(|error| match error {
            FieldError::Unknown(name) => FieldError::UnknownInSessions(name),
            error => error,
        })
    }

    /// Whether the property belongs to the event's session, see [`BuiltIn::of_session`].
    #[must_use]
    pub const fn of_session(&self) -> bool {
        self.decider().is_some()
    }

    /// Returns the value of a property of the session that has this `entry`; null for other
    /// properties.
    #[must_use]
    pub fn value_of_session<'e>(&self, entry: Option<&'e Entry>) -> Scalar<'e> {
        match self {
            Field::BuiltIn(field) => field.value_of_session(entry).map_or(Scalar::Null, |text| Scalar::Text(Cow::Borrowed(text))),
            Field::Metadata(_) | Field::Session(_) => Scalar::Null,
        }
    }

    /// Returns the property's value for `event`, whose session has this `entry`.
    #[must_use]
    pub fn value<'e>(&self, event: &'e Event, entry: Option<&'e Entry>) -> Scalar<'e> {
        match self {
            Field::BuiltIn(field) => field.value(event, entry).map_or(Scalar::Null, Scalar::Text),
            Field::Metadata(path) => event.details.metadata.as_deref().map_or(Scalar::Null, |json| path.find(json)),
            Field::Session(_) => Scalar::Null,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::BuiltIn(field) => field.fmt(f),
            Field::Session(field) => field.fmt(f),
            Field::Metadata(path) => write!(f, "{METADATA_PREFIX}{path}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
