//! The event that a message becomes.

use std::borrow::Cow;

use serde::Deserialize;

use super::context::Context;
use super::message::{Call, Envelope, Message};
use super::values::{JsonField, id, instant, is_empty, text};
use super::{metadata, money};
use crate::intake::submission::{Invalid, Raw, Submission, TextField};
use crate::time::Instant;

/// A message as the fields of an event.
#[derive(Debug)]
pub struct Mapped<'a> {
    call: Call,
    name: Cow<'a, str>,
    texts: Vec<(TextField, Cow<'a, str>)>,
    metadata: Option<Cow<'a, str>>,
    value: Option<String>,
    timestamp: Option<String>,
    overrides: Option<String>,
    user_agent: Option<Cow<'a, str>>,
    ip: Option<Cow<'a, str>>,
    is_of_device: bool,
}

/// The properties that have a meaning.
#[derive(Default, Deserialize)]
struct Properties<'a> {
    #[serde(borrow)]
    revenue: JsonField<'a>,
    #[serde(borrow)]
    total: JsonField<'a>,
    #[serde(borrow)]
    currency: JsonField<'a>,
    #[serde(borrow)]
    url: JsonField<'a>,
    #[serde(borrow)]
    referrer: JsonField<'a>,
    #[serde(borrow)]
    name: JsonField<'a>,
    #[serde(borrow)]
    category: JsonField<'a>,
}

impl<'a> Properties<'a> {
    fn read(field: JsonField<'a>) -> Result<Self, Invalid> {
        let Some(json) = field.map(|raw| raw.get()).filter(|json| json.starts_with('{')) else { return Ok(Self::default()) };
        serde_json::from_str(json)
            .map_err(|error| Invalid::parameter("properties", format!("`properties` can't be read: {error}")))
    }
}

impl<'a> Mapped<'a> {
    /// Maps a message, received at `received`, as `call`.
    ///
    /// # Errors
    /// An id that the call needs is missing, or an id, a time or an amount can't be read.
    pub fn new(message: &Message<'a>, call: Call, envelope: &Envelope<'a>, received: Instant) -> Result<Self, Invalid> {
        let context = Context::read(message.context).or(envelope.context);
        let properties = match call {
            Call::Track | Call::Page | Call::Screen => Properties::read(message.properties)?,
            Call::Identify | Call::Group | Call::Alias => Properties::default(),
        };
        let mut texts = Vec::new();
        let mut add = |field, text: Option<Cow<'a, str>>| texts.extend(text.map(|text| (field, text)));
        let [user_id, anonymous_id] = ids(message, call)?;
        add(TextField::UserId, user_id);
        add(TextField::AnonymousId, anonymous_id);
        add(TextField::GroupId, group_id(message, call, context)?);
        add(TextField::ExternalId, id(message.message_id, "messageId")?);
        let [url, referrer] = context.page();
        let of_page = |field| text(field).filter(|_| call == Call::Page);
        add(TextField::Url, url.or_else(|| of_page(properties.url)));
        add(TextField::Referrer, referrer.or_else(|| of_page(properties.referrer)));
        add(TextField::Language, context.locale());
        let screen = text(message.name).filter(|_| call == Call::Screen);
        add(TextField::Screen, screen.or_else(|| context.screen()));
        let name = name(message, call)?;
        let amount = match call {
            Call::Track => money::money(&name, properties.revenue, properties.total)?,
            _ => None,
        };
        if amount.is_some() {
            add(TextField::Currency, id(properties.currency, "properties.currency")?);
        }
        Ok(Self {
            call,
            name,
            texts,
            metadata: metadata(message, call, &properties)?,
            value: amount.map(|amount| amount.to_string()),
            timestamp: time(message, envelope, received)?.map(|time| time.epoch_ms().to_string()),
            overrides: context.overrides(),
            user_agent: context.user_agent(),
            ip: context.ip(),
            is_of_device: context.is_of_device(),
        })
    }

    /// Returns the event.
    #[must_use]
    pub fn submission(&self) -> Submission<'_> {
        let mut submission = Submission::new(&self.name);
        for (field, text) in &self.texts {
            submission.set(*field, text);
        }
        submission.metadata = self.metadata.as_deref().map(Raw);
        submission.value = self.value.as_deref().map(Raw);
        submission.timestamp = self.timestamp.as_deref().map(Raw);
        submission.overrides = self.overrides.as_deref().map(Raw);
        submission
    }

    /// Returns the user agent of the user, if the message names it.
    #[must_use]
    pub fn user_agent(&self) -> Option<&str> {
        self.user_agent.as_deref()
    }

    /// Returns the address of the user, if the message names it.
    #[must_use]
    pub fn ip(&self) -> Option<&str> {
        self.ip.as_deref()
    }

    /// Whether the message was sent from the user's device, so that the request has the user's address.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        self.is_of_device
    }

    /// Names the field of the message instead of that of the event.
    #[must_use]
    pub fn renamed(&self, invalid: Invalid) -> Invalid {
        let Invalid { code, param, message } = invalid;
        let Some(field) = param else { return Invalid { code, param, message } };
        let of_message = match field.as_str() {
            "name" if self.call == Call::Track => "event",
            "user_id" => "userId",
            "anonymous_id" if self.call == Call::Alias => "previousId",
            "anonymous_id" => "anonymousId",
            "external_id" => "messageId",
            "group_id" => "groupId",
            "metadata" if matches!(self.call, Call::Identify | Call::Group) => "traits",
            "metadata" => "properties",
            "value" => "properties.revenue",
            "currency" => "properties.currency",
            "url" => "context.page.url",
            "referrer" => "context.page.referrer",
            "language" => "context.locale",
            "_acOverrides.source" => "context.campaign.source",
            "_acOverrides.medium" => "context.campaign.medium",
            "_acOverrides.campaign" => "context.campaign.name",
            other => other,
        };
        let message = message.replace(&format!("`{field}`"), &format!("`{of_message}`"));
        Invalid { code, param: Some(of_message.to_owned()), message }
    }
}

/// Returns the user and the anonymous id; at least one of them is there. An alias links the id that the user had before.
fn ids<'a>(message: &Message<'a>, call: Call) -> Result<[Option<Cow<'a, str>>; 2], Invalid> {
    let user_id = id(message.user_id, "userId")?;
    let anonymous_id = id(message.anonymous_id, "anonymousId")?;
    if call == Call::Alias {
        let previous = id(message.previous_id, "previousId")?.ok_or_else(|| Invalid::missing("previousId"))?;
        let user = user_id.ok_or_else(|| Invalid::missing("userId"))?;
        return Ok([Some(user), Some(previous)]);
    }
    if user_id.is_none() && anonymous_id.is_none() {
        let message = "one of `userId` and `anonymousId` is required".into();
        return Err(Invalid { code: "missing_parameter", param: Some("userId".into()), message });
    }
    Ok([user_id, anonymous_id])
}

fn group_id<'a>(message: &Message<'a>, call: Call, context: Context<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    match call {
        Call::Group => id(message.group_id, "groupId")?.ok_or_else(|| Invalid::missing("groupId")).map(Some),
        _ => Ok(context.group_id()),
    }
}

fn name<'a>(message: &Message<'a>, call: Call) -> Result<Cow<'a, str>, Invalid> {
    Ok(match call {
        Call::Track => id(message.event, "event")?.ok_or_else(|| Invalid::missing("event"))?,
        Call::Identify => "identify".into(),
        Call::Page => "page".into(),
        Call::Screen => "screen".into(),
        Call::Group => "group".into(),
        Call::Alias => "alias".into(),
    })
}

fn metadata<'a>(message: &Message<'a>, call: Call, properties: &Properties<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    let unless = |field: JsonField<'a>, known: JsonField<'a>| field.filter(|_| known.is_none() && text(field).is_some());
    Ok(match call {
        Call::Track => metadata::with_fields(message.properties, &[]),
        Call::Page | Call::Screen => {
            let name = ("name", unless(message.name, properties.name));
            let category = ("category", unless(message.category, properties.category));
            metadata::with_fields(message.properties, &[name, category])
        }
        Call::Identify => metadata::with_fields(message.traits, &[]),
        Call::Group => metadata::of_group(message.traits)?,
        Call::Alias => None,
    })
}

/// Returns when it happened by the clock of the server: as long before the receipt as it was before it was sent. A clock that is wrong is
/// wrong for both.
fn time(message: &Message<'_>, envelope: &Envelope<'_>, received: Instant) -> Result<Option<Instant>, Invalid> {
    let field = message.timestamp.filter(|_| !is_empty(message.timestamp));
    if field.is_none() {
        return Ok(None);
    }
    let wrong = "`timestamp` must be an RFC 3339 date-time or a number of milliseconds since 1970";
    let time = instant(field).ok_or_else(|| Invalid::parameter("timestamp", wrong))?;
    let sent_at = instant(message.sent_at).or(envelope.sent_at);
    Ok(Some(sent_at.map_or(time, |sent_at| time.corrected(sent_at, received))))
}
