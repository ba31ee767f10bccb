//! Messages, and batches of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::context::Context;
use super::values::{JsonField, text};
use crate::intake::json_fields::JsonFields;
use crate::intake::submission::Invalid;

/// The maximum number of messages of a batch.
const MAX_BATCH_MESSAGES: usize = 5_000;

/// The SDK call of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A user did something.
    Track,
    /// A user has these traits.
    Identify,
    /// A user saw a page.
    Page,
    /// A user saw a screen of an app.
    Screen,
    /// A user belongs to a company.
    Group,
    /// A user had another id before.
    Alias,
}

/// The properties that all messages of a request share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Envelope<'a> {
    /// The context of messages without one of their own.
    pub(super) context: Context<'a>,
    /// The time of sending by the sender's clock.
    pub(super) sent_at: JsonField<'a>,
}

/// A message as sent.
#[derive(Debug, Default)]
pub struct Message<'a>(JsonFields<'a>);

/// A batch as sent.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The JSON of its messages.
    pub messages: Vec<&'a str>,
    /// The shared properties.
    pub envelope: Envelope<'a>,
}

/// The unparsed messages of a list. Messages beyond the limit are only counted.
struct Messages<'a> {
    first: Vec<&'a str>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Messages<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MessagesVisitor)
    }
}

struct MessagesVisitor;

impl<'de> Visitor<'de> for MessagesVisitor {
    type Value = Messages<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < MAX_BATCH_MESSAGES {
            let Some(message) = items.next_element::<&'de RawValue>()? else { break };
            first.push(message.get());
        }
        let mut count = first.len();
        while first.len() == MAX_BATCH_MESSAGES && items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Messages { first, count })
    }
}

impl<'a> Message<'a> {
    /// Parses the JSON of a message.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn parse(json: &'a str) -> Result<Self, Invalid> {
        fields(json, "a message").map(Self)
    }

    /// Returns the JSON of a field.
    pub(super) fn get(&self, name: &str) -> JsonField<'a> {
        self.0.get(name)
    }

    /// Returns the call that the message names.
    ///
    /// # Errors
    /// It names none, or an unknown one.
    pub fn call(&self) -> Result<Call, Invalid> {
        let known = "`type` must be track, identify, page, screen, group or alias";
        let kind = self.get("type").ok_or_else(|| Invalid::missing("type"))?;
        serde_json::from_str(kind).map_err(|_| Invalid::parameter("type", known))
    }
}

impl<'a> Batch<'a> {
    /// Parses the body of a batch. Messages are parsed separately, so an invalid one affects no
    /// other.
    ///
    /// # Errors
    /// It is not a JSON object with a list `batch`, or the list is too long.
    pub fn parse(body: &'a str) -> Result<Self, Invalid> {
        let batch = fields(body, "a batch")?;
        let list = batch.get("batch").ok_or_else(|| Invalid::missing("batch"))?;
        let Messages { first: messages, count } =
            serde_json::from_str(list).map_err(|_| Invalid::parameter("batch", "`batch` must be a list of messages"))?;
        if count > MAX_BATCH_MESSAGES {
            let message = format!("a batch has at most {MAX_BATCH_MESSAGES} messages, not {count}");
            return Err(Invalid::parameter("batch", message));
        }
        let envelope = Envelope { context: Context::read(batch.get("context")), sent_at: batch.get("sentAt") };
        Ok(Self { messages, envelope })
    }
}

/// Returns the write key in a request body, if any.
#[must_use]
pub fn write_key(body: &str) -> Option<Cow<'_, str>> {
    text(JsonFields::read(body).ok()?.get("writeKey"))
}

fn fields<'a>(json: &'a str, what: &str) -> Result<JsonFields<'a>, Invalid> {
    let invalid =
        |error| Invalid { code: "invalid_json", param: None, message: format!("{what} must be a JSON object: {error}") };
    JsonFields::read(json).map_err(invalid)
}
