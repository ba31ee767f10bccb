//! The event that a message maps to: its metadata are the properties or traits as sent, except a
//! few keys, and its money depends on the name.

use std::borrow::Cow;

use super::context::{Context, object};
use super::message::{Call, Envelope, Message};
use super::values::{JsonField, given, text};
use crate::intake::json_fields::{JsonFields, text_of};
use crate::intake::placeholder::is_placeholder;
use crate::intake::repairs::{amount, instant};
use crate::intake::submission::{Invalid, MAX_TEXT_BYTES, Raw, Submission, Text, TextField};
use crate::intake::warning::Warning;

/// The prefix of the external id of an order, before its `order_id`.
const ORDER: &str = "order:";

/// A message as the fields of an event.
#[derive(Debug)]
pub struct Mapped<'a> {
    call: Call,
    name: Option<Cow<'a, str>>,
    texts: Vec<(TextField, Cow<'a, str>)>,
    metadata: Option<Cow<'a, str>>,
    value: Option<(Cow<'a, str>, &'static str)>,
    timestamp: JsonField<'a>,
    sent_at: JsonField<'a>,
    overrides: Option<String>,
    user_agent: Option<Cow<'a, str>>,
    ip: Option<Cow<'a, str>>,
    is_of_device: bool,
    of_other_type: Vec<&'static str>,
}

impl<'a> Mapped<'a> {
    /// Maps a message of the call `call`.
    #[must_use]
    pub fn new(message: &Message<'a>, call: Call, envelope: &Envelope<'a>) -> Self {
        let context = Context::read(message.get("context")).or(envelope.context);
        let properties = match call {
            Call::Track | Call::Page | Call::Screen => object(message.get("properties")),
            Call::Identify | Call::Group | Call::Alias => JsonFields::default(),
        };
        let is_readable = |field: &&str| instant(field).is_some();
        let mut mapped = Self {
            call,
            name: None,
            texts: Vec::new(),
            metadata: metadata(message, call, &properties),
            value: None,
            timestamp: message.get("timestamp"),
            sent_at: message.get("sentAt").filter(is_readable).or(envelope.sent_at),
            overrides: context.overrides(),
            user_agent: context.user_agent(),
            ip: context.ip(),
            is_of_device: context.is_of_device(),
            of_other_type: Vec::new(),
        };
        mapped.name = mapped.read_name(message);
        mapped.add_ids(message, context);
        mapped.add_page(message, context, &properties);
        if call == Call::Track {
            mapped.add_order(&properties);
        }
        mapped
    }

    /// Returns the text of a field. Notes a field of another type.
    fn read(&mut self, name: &'static str, field: JsonField<'a>) -> Option<Cow<'a, str>> {
        let text = text_of(field?);
        if text.is_none() {
            self.of_other_type.push(name);
        }
        text
    }

    fn add_field(&mut self, name: &'static str, place: TextField, field: JsonField<'a>) {
        let text = self.read(name, field);
        self.add(place, text);
    }

    fn add(&mut self, place: TextField, text: Option<Cow<'a, str>>) {
        self.texts.extend(text.map(|text| (place, text)));
    }

    fn read_name(&mut self, message: &Message<'a>) -> Option<Cow<'a, str>> {
        match self.call {
            Call::Track => self.read("name", message.get("event")),
            Call::Identify => Some("identify".into()),
            Call::Page => Some("page".into()),
            Call::Screen => Some("screen".into()),
            Call::Group => Some("group".into()),
            Call::Alias => Some("alias".into()),
        }
    }

    /// Adds the ids. An alias links the user's previous id.
    fn add_ids(&mut self, message: &Message<'a>, context: Context<'a>) {
        let anonymous_id = if self.call == Call::Alias { "previousId" } else { "anonymousId" };
        let group_id = if self.call == Call::Group { message.get("groupId") } else { context.group_id() };
        self.add_field("user_id", TextField::UserId, message.get("userId"));
        self.add_field("anonymous_id", TextField::AnonymousId, message.get(anonymous_id));
        self.add_field("external_id", TextField::ExternalId, message.get("messageId"));
        self.add_field("group_id", TextField::GroupId, group_id);
    }

    fn add_page(&mut self, message: &Message<'a>, context: Context<'a>, properties: &JsonFields<'a>) {
        let [url, referrer] = context.page();
        let is_page = self.call == Call::Page;
        let of_page = |name| text(properties.get(name)).filter(|_| is_page);
        self.add(TextField::Url, url.or_else(|| of_page("url")));
        self.add(TextField::Referrer, referrer.or_else(|| of_page("referrer")));
        self.add(TextField::Language, context.locale());
        let screen = text(message.get("name")).filter(|_| self.call == Call::Screen);
        self.add(TextField::Screen, screen.or_else(|| context.screen()));
    }

    /// Adds the money and the key of an order. A reloaded page or a second SDK sends the same order
    /// with another `messageId`.
    fn add_order(&mut self, properties: &JsonFields<'a>) {
        let Some(name) = self.name.as_deref() else { return };
        let order_id = text(properties.get("order_id")).filter(|id| is_order(name) && is_order_id(id));
        self.value = money(name, properties.get("revenue"), properties.get("total"));
        if self.value.is_some() {
            self.add_field("currency", TextField::Currency, properties.get("currency"));
        }
        // The last text of a field counts.
        self.add(TextField::ExternalId, order_id.map(|id| format!("{ORDER}{id}").into()));
    }

    /// Returns the event.
    #[must_use]
    pub fn submission(&self) -> Submission<'_> {
        let mut submission = Submission {
            name: self.name.as_deref().map(|name| Text(Cow::Borrowed(name))),
            metadata: self.metadata.as_deref().map(Raw),
            value: self.value.as_ref().map(|(json, _)| Raw(json)),
            timestamp: self.timestamp.map(Raw),
            sent_at: self.sent_at.map(Raw),
            overrides: self.overrides.as_deref().map(Raw),
            of_other_type: self.of_other_type.clone(),
            ..Submission::default()
        };
        for (field, text) in &self.texts {
            submission.set(*field, text);
        }
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

    /// Whether the message was sent from the user's device. The request then has the user's
    /// address.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        self.is_of_device
    }

    /// Replaces the event's field name by the message's field name.
    #[must_use]
    pub fn renamed(&self, invalid: Invalid) -> Invalid {
        let Invalid { code, param, message } = invalid;
        let Some(field) = param else { return Invalid { code, param, message } };
        let of_message = self.field_of_message(&field);
        let message = message.replace(&format!("`{field}`"), &format!("`{of_message}`"));
        Invalid { code, param: Some(of_message.to_owned()), message }
    }

    /// Like [`Mapped::renamed`].
    #[must_use]
    pub fn renamed_warning(&self, warning: Warning) -> Warning {
        let Warning { code, param, message } = warning;
        let of_message = self.field_of_message(&param).to_owned();
        let message = message.replace(&format!("`{param}`"), &format!("`{of_message}`"));
        Warning { code, param: of_message.into(), message }
    }

    fn field_of_message<'f>(&self, field: &'f str) -> &'f str {
        match field {
            "name" if self.call == Call::Track => "event",
            "user_id" => "userId",
            "anonymous_id" if self.call == Call::Alias => "previousId",
            "anonymous_id" => "anonymousId",
            "external_id" => "messageId",
            "group_id" => "groupId",
            "metadata" if matches!(self.call, Call::Identify | Call::Group) => "traits",
            "metadata" => "properties",
            "value" => self.value.as_ref().map_or("properties.revenue", |(_, name)| name),
            "currency" => "properties.currency",
            "url" => "context.page.url",
            "referrer" => "context.page.referrer",
            "language" => "context.locale",
            "_acOverrides.source" => "context.campaign.source",
            "_acOverrides.medium" => "context.campaign.medium",
            "_acOverrides.campaign" => "context.campaign.name",
            other => other,
        }
    }
}

/// Whether an `order_id` can identify an order, and fits into an external id.
fn is_order_id(id: &str) -> bool {
    !is_placeholder(id) && ORDER.len() + id.len() <= MAX_TEXT_BYTES
}

fn metadata<'a>(message: &Message<'a>, call: Call, properties: &JsonFields<'a>) -> Option<Cow<'a, str>> {
    let unless_known = |name| {
        let field = message.get(name).filter(|field| properties.get(name).is_none() && text(Some(field)).is_some());
        (name, field)
    };
    match call {
        Call::Track => with_fields(message.get("properties"), &[]),
        Call::Page | Call::Screen => with_fields(message.get("properties"), &[unless_known("name"), unless_known("category")]),
        Call::Identify => with_fields(message.get("traits"), &[]),
        Call::Group => metadata_of_group(message.get("traits")),
        Call::Alias => None,
    }
}

/// The key of a group's own e-mail address. `email` would be the user's.
const GROUP_EMAIL: &str = "group_email";

/// Prepends fields to properties. Properties that are not an object stay unchanged.
fn with_fields<'a>(properties: JsonField<'a>, further: &[(&str, JsonField<'a>)]) -> Option<Cow<'a, str>> {
    let further: Vec<String> = further.iter().filter_map(|(name, field)| Some(format!("\"{name}\":{}", (*field)?))).collect();
    let inner = properties.unwrap_or("{}").strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inner {
        Some(inner) if !further.is_empty() => {
            let separator = if inner.trim().is_empty() { "" } else { "," };
            Some(format!("{{{}{separator}{inner}}}", further.join(",")).into())
        }
        _ => properties.map(Cow::Borrowed),
    }
}

/// Renames the e-mail address in a group's traits, which would otherwise be taken for the user's.
fn metadata_of_group<'a>(traits: JsonField<'a>) -> Option<Cow<'a, str>> {
    let json = traits?;
    let fields = JsonFields::read(json).ok().filter(|fields| fields.0.iter().any(|(name, _)| name == "email"));
    let Some(JsonFields(fields)) = fields else { return Some(json.into()) };
    let renamed = |(name, value): (Cow<'_, str>, &str)| {
        let name = if name == "email" { GROUP_EMAIL } else { &*name };
        format!("{}:{value}", serde_json::Value::from(name))
    };
    Some(format!("{{{}}}", fields.into_iter().map(renamed).collect::<Vec<_>>().join(",")).into())
}

/// The meaning of an event's money by its name, from Segment's specification of e-commerce events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `Order Completed`: without a `revenue`, its `total` counts.
    Order,
    /// `Order Refunded`: the refunded amount.
    Refund,
    /// An event with an expected or already counted amount. It must not count again.
    Estimate,
    /// Any other event.
    Other,
}

impl Kind {
    fn of(event: &str) -> Self {
        let words: Vec<String> =
            event.split([' ', '_']).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).take(4).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["order", "completed"] => Self::Order,
            ["order", "refunded"] => Self::Refund,
            ["product" | "cart" | "checkout", _, ..]
            | ["payment", "info", "entered"]
            | ["order", "updated" | "cancelled" | "canceled"]
            | ["started", "order"] => Self::Estimate,
            _ => Self::Other,
        }
    }
}

/// Returns the JSON of an event's money and the name of its property, from the event's name and its
/// properties `revenue` and `total`. An invalid amount is returned unchanged.
pub(super) fn money<'a>(event: &str, revenue: JsonField<'a>, total: JsonField<'a>) -> Option<(Cow<'a, str>, &'static str)> {
    let kind = Kind::of(event);
    let (field, name) = match kind {
        Kind::Estimate => return None,
        Kind::Order | Kind::Refund if given(revenue).is_none() => (total, "properties.total"),
        _ => (revenue, "properties.revenue"),
    };
    let json = given(field)?;
    match amount(json) {
        Ok(amount) if kind == Kind::Refund && amount.is_positive() => Some(((-amount).to_string().into(), name)),
        _ => Some((json.into(), name)),
    }
}

/// Whether an event of this name is an order, which its `order_id` identifies.
fn is_order(event: &str) -> bool {
    Kind::of(event) == Kind::Order
}
