//! The body of `POST /track`, parsed leniently. Admission interprets the values.

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use super::json_fields::Text;
use super::json_fields::{JsonFields, readable, text_of};
use super::placeholder::is_placeholder;
use super::plain_json::PlainJson;
use crate::text::cut_bytes;

/// The maximum size of any text field except `name` and `metadata`, in bytes.
pub const MAX_TEXT_BYTES: usize = 4 * 1024;
/// The maximum length of `group_id`, in Unicode characters.
pub const MAX_GROUP_ID_CHARS: usize = 512;
/// The maximum length of `name`, in Unicode characters.
pub const MAX_NAME_CHARS: usize = 100;
/// The maximum nesting depth of `metadata`.
pub const MAX_METADATA_DEPTH: usize = 8;
/// The maximum number of keys in all objects of `metadata`.
pub const MAX_METADATA_KEYS: usize = 128;
/// The maximum length of a key in `metadata`, in bytes.
pub const MAX_METADATA_KEY_BYTES: usize = 128;
/// The maximum length of a string in `metadata`, in bytes.
pub const MAX_METADATA_TEXT_BYTES: usize = 8 * 1024;

/// The reason why an input is rejected: the field, a machine-readable code, and a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// `invalid_json`, `missing_parameter`, `invalid_parameter` …
    pub code: &'static str,
    /// The invalid field (`value`, `metadata.plan`), if the error is about one field.
    pub param: Option<String>,
    /// The problem, and the allowed values.
    pub message: String,
}

impl Invalid {
    /// Creates the error for a field whose value isn't allowed.
    #[must_use]
    pub fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "invalid_parameter", param: Some(param.into()), message: message.into() }
    }

    /// Creates the error for a body that isn't JSON or has the wrong shape.
    #[must_use]
    pub fn json(error: &serde_json::Error) -> Self {
        Self { code: "invalid_json", param: None, message: format!("the body is not valid JSON for this request: {error}") }
    }

    /// Creates the error for a missing required field.
    #[must_use]
    pub fn missing(param: &str) -> Self {
        Self { code: "missing_parameter", param: Some(param.to_owned()), message: format!("`{param}` is required") }
    }
}

/// JSON as sent, without surrounding white space. Never null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a>(pub(crate) &'a str);

impl<'a> Raw<'a> {
    fn new(json: &'a str) -> Option<Self> {
        (json != "null").then_some(Self(json))
    }
}

/// Declares each optional text field of an event once: its meaning, its name, and the setter for
/// programs that embed the engine.
macro_rules! text_fields {
    ($(#[doc = $doc:literal] $field:ident $($variant:ident)?;)*) => {
        /// The names and meanings of the optional text fields of an event.
        pub const TEXT_FIELDS: &[(&str, &str)] = &[$((stringify!($field), $doc)),*];

        /// The optional text fields that senders other than HTTP can set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum TextField {
            $($(
                #[doc = $doc]
                $variant,
            )?)*
        }

        /// An event as sent. Unknown fields are ignored, because newer trackers talk to older
        /// servers.
        #[derive(Debug, Default)]
        pub struct Submission<'a> {
            pub(crate) name: Option<Text<'a>>,
            pub(crate) notify: Option<bool>,
            $(pub(crate) $field: Option<Text<'a>>,)*
            pub(crate) metadata: Option<Raw<'a>>,
            /// `true` if nobody did anything at the time of the event. Any other JSON counts as
            /// absent.
            pub(crate) non_interaction: Option<bool>,
            pub(crate) value: Option<Raw<'a>>,
            pub(crate) overrides: Option<Raw<'a>>,
            pub(crate) timestamp: Option<Raw<'a>>,
            /// The time of sending, by the clock of `timestamp`.
            pub(crate) sent_at: Option<Raw<'a>>,
            /// Whether `userId` is present. It is not a field, but a common misspelling of
            /// `user_id`.
            pub(crate) has_camel_user_id: bool,
            /// Whether `anonymousId` is present, the same misspelling of `anonymous_id`.
            pub(crate) has_camel_anonymous_id: bool,
            /// The fields of a wrong type, which count as absent.
            pub(crate) of_other_type: Vec<&'static str>,
        }

        impl<'a> Submission<'a> {
            /// Sets a text field.
            pub fn set(&mut self, field: TextField, text: &'a str) {
                let place = match field {
                    $($(TextField::$variant => &mut self.$field,)?)*
                };
                *place = Some(Text(Cow::Borrowed(text)));
            }

            /// Reads the value of a field from plain JSON. Returns `None` if it is null or has an
            /// unusual type.
            fn read_field(&mut self, name: &str, json: &mut PlainJson<'a>) -> Option<()> {
                let text = |json: &mut PlainJson<'a>| Some(Text(Cow::Borrowed(json.text()?)));
                match name {
                    "name" => self.name = Some(text(json)?),
                    $(stringify!($field) => self.$field = Some(text(json)?),)*
                    "notify" => self.notify = Some(json.boolean()?),
                    "non_interaction" => self.non_interaction = Some(json.boolean()?),
                    _ => self.set_raw_field(name, json.raw()?),
                }
                Some(())
            }

            /// Sets a field from its JSON. The last field of a name counts.
            fn set_field(&mut self, name: &str, json: &'a str) {
                match name {
                    "name" => self.name = self.text_field("name", json),
                    $(stringify!($field) => self.$field = self.text_field(stringify!($field), json),)*
                    "notify" => self.notify = self.boolean_field("notify", json),
                    "non_interaction" => self.non_interaction = self.boolean_field("non_interaction", json),
                    _ => self.set_raw_field(name, json),
                }
            }

            /// Returns the optional text fields by name.
            pub(crate) fn texts(&self) -> [(&'static str, Option<&Text<'a>>); TEXT_FIELDS.len()] {
                [$((stringify!($field), self.$field.as_ref())),*]
            }
        }
    };
}

text_fields! {
    /// The text of the notification.
    message Message;
    /// Who, as the sender's own system names the user.
    user_id UserId;
    /// Who, before the user is known. With both ids the event links them.
    anonymous_id AnonymousId;
    /// The address of the page before.
    referrer Referrer;
    /// The size or name of the screen.
    screen Screen;
    /// The language of the user.
    language Language;
    /// The address of the page.
    url Url;
    /// The host of the page. Default: that of `url`.
    hostname Hostname;
    /// Where to send the notification.
    channel Channel;
    /// The currency of `value`: an ISO 4217 code of any case. Default: the project's.
    currency Currency;
    /// Names the event for ever within its project: a second one with the same changes nothing.
    external_id ExternalId;
    /// The group that the event belongs to; a company, if no `group_type` is given.
    group_id GroupId;
    /// The type of that group. Default: `company`.
    group_type GroupType;
    /// What the user consented to, separated by commas. Given and without `analytics`: the event counts, nobody is counted.
    privacy_categories PrivacyCategories;
    /// Short for `privacy_categories`, which wins.
    pc;
    /// Privacy signals, separated by commas: `gpc`, `dnt`, `gpp:…`.
    privacy_signals PrivacySignals;
    /// Short for `privacy_signals`, which wins.
    ps;
    /// What asked for consent.
    consent_source ConsentSource;
    /// The visitor's user agent. Only read from servers: a browser's own is that of its request.
    user_agent UserAgent;
    /// The visitor's address, which distinguishes visitors and, with a database, their country; it is not stored. Only read from servers: a browser's own is that of its request.
    ip Ip;
}

/// The fields of `_acOverrides`.
pub(crate) const OVERRIDES: [&str; 4] =
    ["_acOverrides.source", "_acOverrides.medium", "_acOverrides.campaign", "_acOverrides.channel"];

impl<'a> Submission<'a> {
    /// Creates an event with only a name.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        Self { name: Some(Text(Cow::Borrowed(name))), ..Self::default() }
    }

    /// Sets whether the event notifies.
    pub fn set_notify(&mut self, notify: Option<bool>) {
        self.notify = notify;
    }

    /// Sets the fields that are not text.
    pub fn set_raw(&mut self, value: Option<&'a RawValue>, metadata: Option<&'a RawValue>, timestamp: Option<&'a RawValue>) {
        let raw = |value: Option<&'a RawValue>| value.map(|value| Raw(value.get()));
        (self.value, self.metadata, self.timestamp) = (raw(value), raw(metadata), raw(timestamp));
    }

    /// Parses the JSON of one event, whatever its fields contain.
    ///
    /// # Errors
    /// [`Invalid`] if the body is not a JSON object.
    pub fn read<R>(body: &[u8], use_it: impl FnOnce(&Submission<'_>) -> R) -> Result<R, Invalid> {
        if let Some(submission) = std::str::from_utf8(body).ok().and_then(Submission::read_plain) {
            return Ok(use_it(&submission));
        }
        let json = readable(body);
        Submission::read_any(&json).map(|submission| use_it(&submission))
    }

    /// Parses an event in the usual form, in half the time of [`serde_json`]. Returns `None` for
    /// any other form, valid or not.
    fn read_plain(text: &'a str) -> Option<Self> {
        let mut submission = Self::default();
        let mut json = PlainJson::new(text)?;
        json.object(|name, json| submission.read_field(name, json))?;
        json.end()?;
        Some(submission)
    }

    fn read_any(json: &'a str) -> Result<Self, Invalid> {
        let invalid = |message: String| Invalid { code: "invalid_json", param: None, message };
        if json.trim_start().starts_with('[') {
            let message = "an event is a JSON object, not an array; batches go to /i/batch as {\"events\": […]}";
            return Err(invalid(message.into()));
        }
        let fields = JsonFields::read(json);
        let JsonFields(fields) = fields.map_err(|error| invalid(format!("the body is not a JSON object: {error}")))?;
        let mut submission = Self::default();
        for (name, json) in fields {
            submission.set_field(&name, json);
        }
        Ok(submission)
    }

    fn set_raw_field(&mut self, name: &str, json: &'a str) {
        match name {
            "metadata" => self.metadata = Raw::new(json),
            "value" => self.value = Raw::new(json),
            "_acOverrides" => self.overrides = Raw::new(json),
            "timestamp" => self.timestamp = Raw::new(json),
            "_sent_at" => self.sent_at = Raw::new(json),
            "userId" => self.has_camel_user_id = json != "null",
            "anonymousId" => self.has_camel_anonymous_id = json != "null",
            _ => {}
        }
    }

    fn text_field(&mut self, name: &'static str, json: &'a str) -> Option<Text<'a>> {
        let text = text_of(json).map(Text);
        self.note_type(name, text.is_some() || json == "null");
        text
    }

    fn boolean_field(&mut self, name: &'static str, json: &'a str) -> Option<bool> {
        let boolean = json.parse().ok();
        self.note_type(name, boolean.is_some() || json == "null");
        boolean
    }

    /// Notes whether the last field of a name has an allowed type.
    fn note_type(&mut self, name: &'static str, is_right: bool) {
        self.of_other_type.retain(|other| *other != name);
        if !is_right {
            self.of_other_type.push(name);
        }
    }

    /// Returns the user agent that a server sent in the body.
    #[must_use]
    pub fn user_agent(&self) -> Option<&str> {
        text(self.user_agent.as_ref())
    }

    /// Returns the address that a server sent in the body.
    #[must_use]
    pub fn ip(&self) -> Option<&str> {
        text(self.ip.as_ref())
    }
}

/// Returns the text of an optional field, truncated if it is too long. Empty text counts as absent.
pub(crate) fn text<'t>(field: Option<&'t Text<'_>>) -> Option<&'t str> {
    field.map(|text| cut_bytes(&text.0, MAX_TEXT_BYTES)).filter(|text| !text.is_empty())
}

/// Returns the id of an optional field. An id that is too long counts as absent, since a truncated
/// one would belong to another person. So does a placeholder.
pub(crate) fn id<'t>(field: Option<&'t Text<'_>>) -> Option<&'t str> {
    text(field.filter(|id| id.0.len() <= MAX_TEXT_BYTES && !is_placeholder(&id.0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_object_is_no_event() {
        for body in ["[]", r#"["name"]"#, "", "null", "5", r#"{"name": "a", "#, "{\"name\": \"a", "{} {}"] {
            let error = Submission::read(body.as_bytes(), |_| ()).expect_err(body);
            assert_eq!((error.code, error.param), ("invalid_json", None), "{body}");
        }
    }

    #[test]
    fn fields_of_other_types_are_absent() {
        let body =
            r#"{"name": 5, "user_id": 4711, "url": {}, "pc": [true], "notify": "yes", "ip": null, "screen": [], "screen": "x"}"#;
        let read = |s: &Submission<'_>| {
            let texts = [&s.name, &s.user_id, &s.url, &s.screen].map(|field| text(field.as_ref()).map(str::to_owned));
            (texts, s.notify, s.of_other_type.clone())
        };
        let texts = [Some("5".into()), Some("4711".into()), None, Some("x".into())];
        assert_eq!(Submission::read(body.as_bytes(), read), Ok((texts, None, vec!["url", "pc", "notify"])));
    }

    /// What the reader of any JSON makes of an event.
    fn parsed(json: &str) -> Option<String> {
        Submission::read_any(json).ok().map(|submission| format!("{submission:?}"))
    }

    #[test]
    fn plain_events_are_read_quickly() {
        for json in [
            r#"{}"#,
            r#" { "name" : "a" , "user_id":"é", "x": [ ] , "metadata" : { "a" : [ 1, -0.50, true, null, {} ] } } "#,
            r#"{"name":"a","value":12.50,"timestamp":1,"_sent_at":2,"notify":true,"_acOverrides":{"source":"b"},"userId":5,"pc":""}"#,
            r#"{"name":"a","name":"b","user_id":-4.50}"#,
        ] {
            let read = Submission::read_plain(json).map(|submission| format!("{submission:?}"));
            assert_eq!((read.is_some(), read), (true, parsed(json)), "{json}");
        }
        for json in [r#"{"pc":null}"#, r#"{"pc":[]}"#, r#"{"name":"\n"}"#, "{\"name\":\n\"a\"}", r#"{"value":1e5}"#] {
            assert!(Submission::read_plain(json).is_none(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn plain_events_are_those_of_any_json(
            members in prop::collection::vec(
                (
                    "name|user_id|value|metadata|notify|timestamp|_sent_at|userId|_acOverrides|url|pc|x| ?",
                    "\"[a-zé ]{0,5}\"|-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE]1)?|true|false|null|[{][}]|[{]\"a\":\\[1, 2\\] ?[}]|\\[[{},0]{0,3}\\]",
                ),
                0..6,
            ),
            noise in prop::option::of(("[ -~\n\\\\é]{0,3}", any::<prop::sample::Index>())),
        ) {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let mut json = format!("{{{}}}", members.join(","));
            if let Some((noise, place)) = noise {
                let places: Vec<usize> = json.char_indices().map(|(place, _)| place).collect();
                json.insert_str(*place.get(&places), &noise);
            }
            if let Some(submission) = Submission::read_plain(&json) {
                prop_assert_eq!(Some(format!("{submission:?}")), parsed(&json), "{}", json);
            }
        }
    }
}
