//! The body of `POST /track`: parsing, and checks of shape and bounds. Admission interprets the values.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use super::plain_json::PlainJson;

/// The maximum size of any text field but `name` and `metadata`, in bytes.
pub const MAX_TEXT_BYTES: usize = 4 * 1024;
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

/// Why an input is rejected: the field, a machine-readable code, and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// `invalid_json`, `missing_parameter`, `invalid_parameter` …
    pub code: &'static str,
    /// The invalid field (`value`, `metadata.plan`), if the error concerns one field.
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

    /// Creates the error for a missing required field.
    #[must_use]
    pub fn missing(param: &str) -> Self {
        Self { code: "missing_parameter", param: Some(param.to_owned()), message: format!("`{param}` is required") }
    }

    /// Creates the error for a body that isn't JSON or has the wrong shape.
    #[must_use]
    pub fn json(error: &serde_json::Error) -> Self {
        Self { code: "invalid_json", param: None, message: format!("the body is not the JSON that is expected: {error}") }
    }
}

/// Text, borrowed from the body if it contains no escapes. (serde's `borrow` on `Option<Cow<str>>` would copy it.)
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// JSON as it was sent, without the white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a>(pub(crate) &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

/// Declares each optional text field of an event once: its meaning, its name, and the setter for programs that embed the
/// engine.
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

        /// An event as sent. Unknown fields are ignored, because newer trackers talk to older servers.
        #[derive(Debug, Default, Deserialize)]
        pub struct Submission<'a> {
            #[serde(borrow)]
            pub(crate) name: Option<Text<'a>>,
            pub(crate) notify: Option<bool>,
            $(
                #[serde(borrow)]
                pub(crate) $field: Option<Text<'a>>,
            )*
            #[serde(borrow)]
            pub(crate) metadata: Option<Raw<'a>>,
            /// `true`: nobody did anything at the time of the event. Any other JSON is as absent.
            #[serde(borrow)]
            pub(crate) non_interaction: Option<Raw<'a>>,
            #[serde(borrow)]
            pub(crate) value: Option<Raw<'a>>,
            #[serde(borrow, rename = "_acOverrides")]
            pub(crate) overrides: Option<Raw<'a>>,
            #[serde(borrow)]
            pub(crate) timestamp: Option<Raw<'a>>,
            /// When it was sent, by the clock of `timestamp`.
            #[serde(borrow, rename = "_sent_at")]
            pub(crate) sent_at: Option<Raw<'a>>,
            /// Not a field: a common misspelling of `user_id`, which causes a warning.
            #[serde(default, rename = "userId")]
            pub(crate) camel_user_id: Option<IgnoredAny>,
            /// Not a field: the same misspelling of `anonymous_id`.
            #[serde(default, rename = "anonymousId")]
            pub(crate) camel_anonymous_id: Option<IgnoredAny>,
        }

        impl<'a> Submission<'a> {
            /// Sets a text field.
            pub fn set(&mut self, field: TextField, text: &'a str) {
                let place = match field {
                    $($(TextField::$variant => &mut self.$field,)?)*
                };
                *place = Some(Text(Cow::Borrowed(text)));
            }

            /// Reads the value of a field from plain JSON. `None`: it is null, of another type, or there already.
            fn read_field(&mut self, name: &str, json: &mut PlainJson<'a>) -> Option<()> {
                let text = |json: &mut PlainJson<'a>| Some(Text(Cow::Borrowed(json.string()?)));
                let raw = |json: &mut PlainJson<'a>| json.raw().filter(|raw| *raw != "null").map(Raw);
                match name {
                    "name" => set_once(&mut self.name, text(json)),
                    $(stringify!($field) => set_once(&mut self.$field, text(json)),)*
                    "notify" => set_once(&mut self.notify, json.boolean()),
                    "metadata" => set_once(&mut self.metadata, raw(json)),
                    "non_interaction" => set_once(&mut self.non_interaction, raw(json)),
                    "value" => set_once(&mut self.value, raw(json)),
                    "_acOverrides" => set_once(&mut self.overrides, raw(json)),
                    "timestamp" => set_once(&mut self.timestamp, raw(json)),
                    "_sent_at" => set_once(&mut self.sent_at, raw(json)),
                    "userId" => set_once(&mut self.camel_user_id, raw(json).map(|_| IgnoredAny)),
                    "anonymousId" => set_once(&mut self.camel_anonymous_id, raw(json).map(|_| IgnoredAny)),
                    _ => json.raw().map(drop),
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
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RawOverrides<'a> {
    #[serde(borrow)]
    pub(crate) source: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) medium: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) campaign: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) channel: Option<Text<'a>>,
}

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

    /// Parses the JSON of one event.
    ///
    /// # Errors [`Invalid`] if the body is not JSON or not an object, or if a field has the wrong type, which it then
    /// names.
    pub fn parse(body: &'a [u8]) -> Result<Self, Invalid> {
        // serde_json would also accept a JSON array as the list of fields.
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(Invalid {
                code: "invalid_json",
                param: None,
                message: "an event is a JSON object, not an array; batches go to /i/batch as {\"events\": […]}".into(),
            });
        }
        // Checked once for the whole body, because ignored fields are not checked one by one.
        let text = std::str::from_utf8(body).map_err(|_| Invalid {
            code: "invalid_json",
            param: None,
            message: "the body is not UTF-8".into(),
        })?;
        if let Some(submission) = Self::read_plain(text) {
            return Ok(submission);
        }
        serde_json::from_str(text).map_err(|error| wrong_field(body).unwrap_or_else(|| Invalid::json(&error)))
    }

    /// Reads an event as nearly all are sent, in half the time of [`serde_json`]. `None`: of any other, valid or not.
    fn read_plain(text: &'a str) -> Option<Self> {
        let mut submission = Self::default();
        let mut json = PlainJson::new(text)?;
        json.object(|name, json| submission.read_field(name, json))?;
        json.end()?;
        Some(submission)
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

fn set_once<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value?);
    Some(())
}

/// Returns the text of an optional field; empty text counts as absent.
pub(crate) fn text<'t>(field: Option<&'t Text<'_>>) -> Option<&'t str> {
    field.map(|text| text.0.as_ref()).filter(|text| !text.is_empty())
}

/// Finds the field with the wrong type, if the body is otherwise a JSON object. Only called after a parse error.
fn wrong_field(body: &[u8]) -> Option<Invalid> {
    let is_text = |name: &str| name == "name" || TEXT_FIELDS.iter().any(|(field, _)| *field == name);
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    fields.iter().find_map(|(name, value)| {
        let expected = match () {
            () if name == "notify" && !value.is_boolean() => "true, false or null",
            () if is_text(name) && !value.is_string() => "a string or null",
            () => return None,
        };
        (!value.is_null()).then(|| Invalid::parameter(name, format!("`{name}` must be {expected}")))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wrong_field_is_named() {
        let table = [
            (r#"{"name": 5}"#, Some("name")),
            (r#"{"name": "a", "notify": "yes"}"#, Some("notify")),
            (r#"{"name": "a", "url": {}}"#, Some("url")),
            (r#"{"name": "a", "#, None),
            (r#"[]"#, None),
            (r#"["name"]"#, None),
            ("", None),
            ("null", None),
        ];
        for (body, param) in table {
            let error = Submission::parse(body.as_bytes()).expect_err(body);
            assert_eq!(error.param.as_deref(), param, "{body}");
        }
    }

    /// What [`serde_json`] makes of an event.
    fn parsed(json: &str) -> Option<String> {
        let json = Some(json).filter(|json| json.trim_start().starts_with('{'))?;
        serde_json::from_str::<Submission<'_>>(json).ok().map(|submission| format!("{submission:?}"))
    }

    #[test]
    fn plain_events_are_read_without_serde() {
        for json in [
            r#"{}"#,
            r#" { "name" : "a" , "user_id":"é", "x": [ ] , "metadata" : { "a" : [ 1, -0.50, true, null, {} ] } } "#,
            r#"{"name":"a","value":12.50,"timestamp":1,"_sent_at":2,"notify":true,"_acOverrides":{"source":"b"},"userId":5,"pc":""}"#,
        ] {
            let read = Submission::read_plain(json).map(|submission| format!("{submission:?}"));
            assert_eq!((read.is_some(), read), (true, parsed(json)), "{json}");
        }
        for json in [r#"{"name":"a","name":"b"}"#, r#"{"pc":null}"#, r#"{"name":"\n"}"#, "{\"name\":\n\"a\"}", r#"{"value":1e5}"#]
        {
            assert!(Submission::read_plain(json).is_none(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn plain_events_are_those_of_serde(
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
