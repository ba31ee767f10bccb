//! The body of `POST /track`: parsing, and checks of shape and bounds. Admission interprets the values.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

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
            pub(crate) metadata: Option<&'a RawValue>,
            #[serde(borrow)]
            pub(crate) value: Option<&'a RawValue>,
            #[serde(borrow, rename = "_acOverrides")]
            pub(crate) overrides: Option<&'a RawValue>,
            #[serde(borrow)]
            pub(crate) timestamp: Option<&'a RawValue>,
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
        (self.value, self.metadata, self.timestamp) = (value, metadata, timestamp);
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
        serde_json::from_str(text).map_err(|error| wrong_field(body).unwrap_or_else(|| Invalid::json(&error)))
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

/// Checks the bounds of `metadata`: depth, number and length of keys, length of strings. `json` comes from a parser.
pub(crate) fn check_metadata(json: &str) -> Result<(), Invalid> {
    if is_small(json.as_bytes()) { Ok(()) } else { check_metadata_text(json) }
}

/// As [`check_metadata`], of text that may not be JSON.
pub(crate) fn check_metadata_text(json: &str) -> Result<(), Invalid> {
    let mut keys = 0;
    let mut problem = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    let bounds = Bounds { depth: 0, keys: &mut keys, problem: &mut problem };
    match bounds.deserialize(&mut reader) {
        Ok(()) if json.len() > MAX_METADATA_TEXT_BYTES && longest_number(json) > MAX_METADATA_TEXT_BYTES => {
            let message = format!("a number in `metadata` has more than {MAX_METADATA_TEXT_BYTES} characters");
            Err(Invalid::parameter("metadata", message))
        }
        Ok(()) => Ok(()),
        Err(error) => {
            Err(Invalid::parameter("metadata", problem.unwrap_or_else(|| format!("`metadata` is not valid JSON: {error}"))))
        }
    }
}

/// Whether valid JSON is far from every bound, as nearly all metadata is. It has no escapes then, and no number that is hard to read.
fn is_small(json: &[u8]) -> bool {
    const MAX_NUMBER_CHARACTERS: usize = 15;
    let (mut depth, mut keys, mut number, mut place) = (0, 0, 0, 0);
    while let Some(byte) = json.get(place) {
        place += 1;
        number = match byte {
            b'0'..=b'9' | b'-' | b'.' => number + 1,
            b'e' | b'E' if number > 0 => return false,
            _ => 0,
        };
        match byte {
            b'"' => {
                let Some(end) = memchr::memchr2(b'"', b'\\', &json[place..]) else { return false };
                if json[place + end] == b'\\' || end > MAX_METADATA_KEY_BYTES {
                    return false;
                }
                place += end + 1;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = usize::saturating_sub(depth, 1),
            b':' => keys += 1,
            _ => {}
        }
        if depth > MAX_METADATA_DEPTH || keys > MAX_METADATA_KEYS || number > MAX_NUMBER_CHARACTERS {
            return false;
        }
    }
    true
}

/// The length of the longest number in valid JSON. Deserializing does not tell it.
fn longest_number(json: &str) -> usize {
    let (mut longest, mut length, mut is_text, mut is_escaped) = (0, 0, false, false);
    for byte in json.bytes() {
        length = match byte {
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' if !is_text => length + 1,
            _ => 0,
        };
        longest = longest.max(length);
        is_text ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    longest
}

struct Bounds<'b> {
    depth: usize,
    keys: &'b mut usize,
    problem: &'b mut Option<String>,
}

impl Bounds<'_> {
    fn inner(&mut self) -> Bounds<'_> {
        Bounds { depth: self.depth + 1, keys: self.keys, problem: self.problem }
    }

    fn fail<E: serde::de::Error>(&mut self, message: String) -> E {
        let error = E::custom(&message);
        *self.problem = Some(message);
        error
    }

    fn check_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        match text.len() {
            0..=MAX_METADATA_TEXT_BYTES => Ok(()),
            long => {
                Err(self.fail(format!("a string in `metadata` has {long} bytes; at most {MAX_METADATA_TEXT_BYTES} are allowed")))
            }
        }
    }

    fn check_depth<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth >= MAX_METADATA_DEPTH {
            return Err(self.fail(format!("`metadata` nests deeper than {MAX_METADATA_DEPTH} levels")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounds<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounds<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.check_text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.check_depth()?;
        while items.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.check_depth()?;
        while let Some(key) = entries.next_key::<Text<'de>>()? {
            *self.keys += 1;
            if *self.keys > MAX_METADATA_KEYS {
                return Err(self.fail(format!("`metadata` has more than {MAX_METADATA_KEYS} keys")));
            }
            if key.0.len() > MAX_METADATA_KEY_BYTES {
                return Err(self.fail(format!(
                    "a key of `metadata` has {} bytes; at most {MAX_METADATA_KEY_BYTES} are allowed",
                    key.0.len()
                )));
            }
            entries.next_value_seed(self.inner())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    fn object(keys: usize) -> String {
        let entries: Vec<String> = (0..keys).map(|i| format!("\"k{i}\":{i}")).collect();
        format!("{{{}}}", entries.join(","))
    }

    #[test]
    fn metadata_is_taken_up_to_its_bounds_and_not_past_them() {
        let text = |n: usize| format!("\"{}\"", "x".repeat(n));
        let key = |n: usize| format!("{{\"{}\":1}}", "k".repeat(n));
        let table: &[(String, bool)] = &[
            (nested(8), true),
            (nested(9), false),
            (nested(100_000), false),
            (format!("{{\"a\\\"\":[0.{}]}}", "1".repeat(8 * 1024 - 2)), true),
            (format!("{{\"a\\\"\":[0.{}]}}", "1".repeat(8 * 1024 - 1)), false),
            (format!("[\"\\\\\", 0.{}e-5]", "1".repeat(8 * 1024)), false),
            (format!("[{}]", vec!["12"; 8 * 1024].join(",")), true),
            (format!("[\"{}\",\"{}\"]", "1".repeat(8 * 1024), "1".repeat(8 * 1024)), true),
            (object(128), true),
            (object(129), false),
            (format!("[{},{}]", object(64), object(65)), false),
            (text(8192), true),
            (text(8193), false),
            (key(128), true),
            (key(129), false),
            ("[1e999]".into(), false),
            ("{\"a\":1E999}".into(), false),
            (format!("[{}]", "1".repeat(400)), false),
            ("[\"\\ud800\"]".into(), false),
            ("5".into(), true),
            ("null".into(), true),
        ];
        for (json, fine) in table {
            assert_eq!(check_metadata(json).is_ok(), *fine, "{}", &json[..json.len().min(40)]);
        }
    }

    proptest! {
        #[test]
        fn small_metadata_is_within_all_bounds(
            parts in prop::collection::vec("[\\[{]{1,3}|[\\]}]{1,3}|\"[a-z\\\\]{0,3}\"[:,]?|[0-9.eE-]{1,17},?|true,", 0..12),
            values in prop::collection::vec(("[ -~é]{0,130}", any::<f64>()), 0..4),
        ) {
            let listed = serde_json::json!(values).to_string();
            for json in [parts.concat(), format!("[{}]", parts.concat()), listed] {
                let is_json = serde_json::from_str::<&RawValue>(&json).is_ok();
                prop_assert!(!is_json || !is_small(json.as_bytes()) || check_metadata_text(&json).is_ok(), "{}", json);
            }
        }
    }

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
}
