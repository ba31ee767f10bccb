//! Paths into an event's metadata, and the values found there.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::intake::fields::number::Number;
use crate::intake::submission::{MAX_METADATA_DEPTH, MAX_METADATA_KEY_BYTES, Text};

/// The maximum length of a path: the maximum depth of keys of maximum length, separated by dots. A
/// longer path can't match.
pub const MAX_PATH_BYTES: usize = MAX_METADATA_DEPTH * (MAX_METADATA_KEY_BYTES + 1) - 1;

/// A value for comparing and grouping. JSON types are distinct: 5 and `"5"` differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scalar<'v> {
    /// Null, and everything that is not a scalar: absent values, objects, arrays.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, compared by its exact value.
    Number(Number),
    /// Text. Built-in fields are always text.
    Text(Cow<'v, str>),
}

impl<'v> Scalar<'v> {
    /// Parses the JSON text of a scalar; `None` for objects, arrays and invalid JSON.
    #[must_use]
    pub fn parse(json: &'v str) -> Option<Scalar<'v>> {
        match json {
            "null" => Some(Scalar::Null),
            "true" => Some(Scalar::Bool(true)),
            "false" => Some(Scalar::Bool(false)),
            _ if json.starts_with('"') => serde_json::from_str(json).ok().map(|Text(text)| Scalar::Text(text)),
            _ => Number::parse(json).map(Scalar::Number),
        }
    }

    /// The number of bytes of its text; 0 for other types.
    #[must_use]
    pub(crate) fn text_bytes(&self) -> usize {
        if let Scalar::Text(text) = self { text.len() } else { 0 }
    }

    /// Converts the value into one that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Null => Scalar::Null,
            Scalar::Bool(value) => Scalar::Bool(value),
            Scalar::Number(number) => Scalar::Number(number),
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// The path of a property in the metadata: `plan`, `plan.name`.
///
/// The whole path is tried as a single key first. If the metadata has no such key, the path is
/// split at every dot, and each part is a key of the object at the preceding part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MetadataPath(Box<str>);

/// The error for text that is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a path of 1 to {MAX_PATH_BYTES} bytes, such as plan or plan.name")]
pub struct PathError;

impl MetadataPath {
    /// Parses a path. Any text is a path if it is not empty and not longer than [`MAX_PATH_BYTES`],
    /// since keys may contain any character.
    ///
    /// # Errors
    /// [`PathError`] for any other text.
    pub fn parse(text: &str) -> Result<MetadataPath, PathError> {
        match text.len() {
            1..=MAX_PATH_BYTES => Ok(MetadataPath(text.into())),
            _ => Err(PathError),
        }
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Finds the value at this path in `json`; [`Scalar::Null`] if there is none, or if `json` is
    /// not a JSON object. The last value of a repeated key counts.
    #[must_use]
    pub fn find<'j>(&self, json: &'j str) -> Scalar<'j> {
        let nested = || self.0.split('.').try_fold(json, |object, key| value_of(object, key));
        let is_nested = self.0.contains('.');
        let found = value_of(json, &self.0).or_else(|| is_nested.then(nested).flatten());
        found.and_then(Scalar::parse).unwrap_or(Scalar::Null)
    }
}

impl fmt::Display for MetadataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the JSON text of the value at `key`, if `json` is an object with that key.
fn value_of<'j>(json: &'j str, key: &str) -> Option<&'j str> {
    serde_json::Deserializer::from_str(json).deserialize_map(ValueOf(key)).ok().flatten()
}

/// Returns the string at the top-level key `key` of the JSON object `json`, if any.
pub(crate) fn metadata_text(json: &str, key: &str) -> Option<String> {
    let bytes = json.as_bytes();
    // Without escapes, a key is in the text unchanged.
    if memchr::memmem::find(bytes, key.as_bytes()).is_none() && memchr::memchr(b'\\', bytes).is_none() {
        return None;
    }
    match Scalar::parse(value_of(json, key)?)? {
        Scalar::Text(text) => Some(text.into_owned()),
        _ => None,
    }
}

struct ValueOf<'k>(&'k str);

impl<'de> Visitor<'de> for ValueOf<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Text(key)) = entries.next_key::<Text<'de>>()? {
            if key == self.0 {
                found = Some(entries.next_value::<&'de RawValue>()?.get());
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(scalar: &Scalar<'_>) -> String {
        match scalar {
            Scalar::Null => "null".to_owned(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => format!("text {text}"),
        }
    }

    #[test]
    fn metadata_text_reads_the_top_level_only() {
        assert_eq!(metadata_text(r#"{"a":{"email":"x"},"email":"e\u0040x.co"}"#, "email").as_deref(), Some("e@x.co"));
        assert_eq!(metadata_text(r#"{"\u0065mail":"e@x.co"}"#, "email").as_deref(), Some("e@x.co"));
        assert_eq!(metadata_text(r#"{"email":5}"#, "email"), None);
        assert_eq!(metadata_text(r#"{"mail":"e@x.co"}"#, "email"), None);
        assert_eq!(metadata_text("[1]", "email"), None);
    }

    #[test]
    fn a_path_tries_the_whole_key_first_then_nesting() {
        let table = [
            // metadata, path, value found
            (r#"{"plan": "pro"}"#, "plan", "text pro"),
            (r#"{"plan": {"name": "pro"}}"#, "plan.name", "text pro"),
            (r#"{"plan": {"name": "pro"}, "plan.name": "whole"}"#, "plan.name", "text whole"),
            (r#"{"plan": {"name": "pro"}, "plan.name": null}"#, "plan.name", "null"),
            (r#"{"a": {"b": {"c": 1}}}"#, "a.b.c", "1"),
            (r#"{"a": {"b.c": 1}}"#, "a.b.c", "null"),
            (r#"{"a.b": {"c": 1}}"#, "a.b.c", "null"),
            (r#"{"a": {"": 1}}"#, "a.", "1"),
            (r#"{"a": 1, "a": 2}"#, "a", "2"),
            (r#"{"a": {"b": 1}, "a": 2}"#, "a.b", "null"),
            (r#"{"pl\u0061n": "\u0070ro"}"#, "plan", "text pro"),
            (r#"{"Plan": "pro"}"#, "plan", "null"),
            (r#"{"a": [1, 2]}"#, "a.0", "null"),
        ];
        for (metadata, path, expected) in table {
            let path = MetadataPath::parse(path).expect(path);
            assert_eq!(shown(&path.find(metadata)), expected, "{path} of {metadata}");
        }
    }

    #[test]
    fn values_keep_their_json_type() {
        let table = [
            // the value of "x", value found
            ("5", "5"),
            ("\"5\"", "text 5"),
            ("5.0", "5"),
            ("5e0", "5"),
            ("9007199254740993", "9007199254740993"),
            ("true", "true"),
            ("\"true\"", "text true"),
            ("false", "false"),
            ("null", "null"),
            ("\"null\"", "text null"),
            ("\"\"", "text "),
            ("{}", "null"),
            (r#"{"name": "pro"}"#, "null"),
            ("[]", "null"),
            ("[5]", "null"),
        ];
        let path = MetadataPath::parse("x").expect("a path");
        for (value, expected) in table {
            for metadata in [format!("{{\"x\":{value}}}"), format!(" {{ \"a\" : [{{}}] , \"x\" : {value} , \"z\" : 0 }} ")] {
                assert_eq!(shown(&path.find(&metadata)), expected, "{metadata}");
            }
        }
    }

    #[test]
    fn what_is_no_object_has_nothing() {
        let path = MetadataPath::parse("a.b").expect("a path");
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        for metadata in
            ["", "5", "null", "\"a.b\"", "[1]", r#"["a.b", 5]"#, "{", r#"{"a.b": 5"#, r#"{"a.b" 5}"#, r#"{"a.b": x}"#, &deep]
        {
            assert_eq!(path.find(metadata), Scalar::Null, "{}", &metadata[..metadata.len().min(40)]);
        }
    }

    #[test]
    fn a_path_has_bounds() {
        assert_eq!(MetadataPath::parse(""), Err(PathError));
        assert!(MetadataPath::parse(&"x".repeat(MAX_PATH_BYTES)).is_ok());
        assert_eq!(MetadataPath::parse(&"x".repeat(MAX_PATH_BYTES + 1)), Err(PathError));
    }

    proptest! {
        #[test]
        fn no_text_panics(json in ".{0,60}", like in r#"[\[\]{}":,a.0-9eE\\u -]{0,40}"#, path in "[a.]{1,5}") {
            let path = MetadataPath::parse(&path).expect("a path");
            let _ = path.find(&json);
            let _ = path.find(&like);
            let _ = Scalar::parse(&like);
        }

        #[test]
        fn any_text_is_found_as_it_was_written(key in ".{1,20}", text in ".{0,40}") {
            let json = serde_json::json!({ key.as_str(): text }).to_string();
            let path = MetadataPath::parse(&key).expect("a path");
            prop_assert_eq!(path.find(&json), Scalar::Text(text.into()));
        }
    }
}
