//! JSON as programs really send it: the fields of an object in order, and texts with half a
//! surrogate pair.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Text, borrowed from the body if it contains no escapes. (serde's `borrow` on `Option<Cow<str>>`
/// would copy it.)
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The fields of a JSON object, as sent. Values are unparsed, however deep they nest.
#[derive(Debug, Clone, Default)]
pub struct JsonFields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> JsonFields<'a> {
    /// Parses an object.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Returns the JSON of the last field of this name, unless it is null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().rev().find(|(key, _)| key == name);
        field.map(|(_, json)| *json).filter(|json| *json != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = JsonFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(Text(key)) = entries.next_key::<Text<'de>>()? {
            fields.push((key, entries.next_value::<&'de RawValue>()?.get()));
        }
        Ok(JsonFields(fields))
    }
}

/// Returns the text of a string, or of a number as written; `None` for any other value.
pub(crate) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str::<Text<'_>>(json).ok().map(|text| text.0),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(json)),
        _ => None,
    }
}

/// Returns a body as text, with U+FFFD for invalid UTF-8. It checks first, since nearly every body
/// is valid.
#[must_use]
pub fn as_text(body: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed)
}

/// Returns a body as text that [`serde_json`] can read: with U+FFFD for invalid UTF-8 and for
/// halves of surrogate pairs, and without a byte order mark.
#[must_use]
pub fn readable(body: &[u8]) -> Cow<'_, str> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    match as_text(body) {
        Cow::Borrowed(text) => whole_pairs(text),
        Cow::Owned(text) => Cow::Owned(whole_pairs(&text).into_owned()),
    }
}

/// Replaces the escape of each unpaired surrogate by U+FFFD.
fn whole_pairs(json: &str) -> Cow<'_, str> {
    let (mut whole, mut kept, mut place) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &json.as_bytes()[place..]) {
        let escape = place + found;
        place = match (escaped_unit(json, escape), escaped_unit(json, escape + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => escape + 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str(&json[kept..escape]);
                whole.push_str("\\ufffd");
                kept = escape + 6;
                kept
            }
            _ => (escape + 2).min(json.len()),
        };
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    whole.push_str(&json[kept..]);
    Cow::Owned(whole)
}

/// Returns the UTF-16 unit of an escape `\uXXXX` at a place.
fn escaped_unit(json: &str, place: usize) -> Option<u16> {
    let digits = json.as_bytes().get(place..place + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (sent, read) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\uDE00a""#, "\u{fffd}a"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83dé""#, "\u{fffd}é"),
        ] {
            let text = readable(sent.as_bytes());
            assert_eq!(text_of(&text).as_deref(), Some(read), "{sent}");
        }
        assert_eq!(readable(b"\xef\xbb\xbf\"a\xf0\x9f\""), "\"a\u{fffd}\"");
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let fields = JsonFields::read(r#"{"a": 1, "b": null, "\u0061": [2]}"#).unwrap();
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("c")), (Some("[2]"), None, None));
        for json in ["[]", "{", "5", "", "{\"a\":}", "{} x"] {
            assert!(JsonFields::read(json).is_err(), "{json}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
        assert!(JsonFields::read(&deep).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_json_but_for_halves_is_json(units in prop::collection::vec("\\\\u(d[89ab]|d[c-f]|00)[0-4]{2}|\\\\[n\"\\\\]|é|a", 0..12)) {
            let json = format!("\"{}\"", units.concat());
            let text = readable(json.as_bytes());
            prop_assert!(serde_json::from_str::<String>(&text).is_ok(), "{} of {}", text, json);
            prop_assert_eq!(readable(text.as_bytes()), text.clone());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(&b"\\ud8cDef0\"\xf0\x9f{}"[..]), 0..40)) {
            let text = readable(&bytes);
            let _ = JsonFields::read(&text);
        }
    }
}
