//! Lists the paths of an event's metadata that filters can find.

use std::collections::BTreeMap;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::metadata::{MetadataPath, Scalar};
use crate::intake::submission::{MAX_METADATA_DEPTH, Text};
use crate::named_values;

named_values! {
    /// The type of a JSON scalar, except null.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ScalarType by as_str {
        /// `true` or `false`.
        Boolean = "boolean",
        /// A number.
        Number = "number",
        /// Text.
        Text = "text",
    }
}

/// The values of an object by key: of a repeated key, the last one.
type Values<'j> = BTreeMap<String, &'j str>;

/// Passes each path at which [`MetadataPath::find`] finds a boolean, a number or text in `json` to
/// `visit`, once, with the type of its value.
pub fn visit_paths(json: &str, visit: &mut impl FnMut(&str, ScalarType)) {
    let top = values(json);
    let mut nested = Vec::new();
    for (key, json) in &top {
        if !json.starts_with('{') {
            visit_scalar(key, json, visit);
        } else if !key.contains('.') {
            nested.push((key.clone(), *json));
        }
    }
    // A path is split at every dot, and tried as a whole first.
    for _ in 0..MAX_METADATA_DEPTH {
        for (prefix, json) in std::mem::take(&mut nested) {
            for (key, json) in values(json).into_iter().filter(|(key, _)| !key.contains('.')) {
                let path = format!("{prefix}.{key}");
                if json.starts_with('{') {
                    nested.push((path, json));
                } else if !top.contains_key(&path) {
                    visit_scalar(&path, json, visit);
                }
            }
        }
    }
}

fn visit_scalar(path: &str, json: &str, visit: &mut impl FnMut(&str, ScalarType)) {
    let kind = match Scalar::parse(json) {
        None | Some(Scalar::Null) => return,
        Some(Scalar::Bool(_)) => ScalarType::Boolean,
        Some(Scalar::Number(_)) => ScalarType::Number,
        Some(Scalar::Text(_)) => ScalarType::Text,
    };
    if MetadataPath::parse(path).is_ok() {
        visit(path, kind);
    }
}

/// Returns the values of an object; none for any other value.
fn values(json: &str) -> Values<'_> {
    serde_json::Deserializer::from_str(json).deserialize_map(LastValues).unwrap_or_default()
}

struct LastValues;

impl<'de> Visitor<'de> for LastValues {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(Text(key)) = entries.next_key::<Text<'de>>()? {
            values.insert(key.into_owned(), entries.next_value::<&'de RawValue>()?.get());
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(json: &str) -> Vec<String> {
        let mut paths = Vec::new();
        visit_paths(json, &mut |path, kind| paths.push(format!("{path} {kind}")));
        paths.sort();
        paths
    }

    #[test]
    fn paths_are_those_that_a_filter_finds() {
        let table: [(&str, &[&str]); 15] = [
            (r#"{"plan": "pro", "seats": 5, "paid": true}"#, &["paid boolean", "plan text", "seats number"]),
            (r#"{"a": {"b": {"c": 1}, "d": "x"}}"#, &["a.b.c number", "a.d text"]),
            (r#"{"a": null, "b": [1], "c": {}, "d": {"e": null}}"#, &[]),
            (r#"{"a.b": 1, "a": {"b": "x"}}"#, &["a.b number"]),
            (r#"{"a.b": null, "a": {"b": "x"}}"#, &[]),
            (r#"{"a.b": {"c": 1}, "a": {"b": 2}}"#, &[]),
            (r#"{"a.b": [1], "a": {"b": 2, "c": 3}}"#, &["a.c number"]),
            (r#"{"a": {"b.c": 1}}"#, &[]),
            (r#"{"a": 1, "a": "x"}"#, &["a text"]),
            (r#"{"a": {"b": 1}, "a": 2}"#, &["a number"]),
            (r#"{"a": {"": 1}, "": {"b": true}}"#, &[".b boolean", "a. number"]),
            (r#"{"": 1}"#, &[]),
            (r#"{"pl\u0061n": ""}"#, &["plan text"]),
            ("[1]", &[]),
            ("5", &[]),
        ];
        for (json, expected) in table {
            assert_eq!(paths(json), expected, "{json}");
        }
    }

    fn metadata() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec!["a", "b", "a.b", "", ".", "b.a"]);
        let leaf = prop::sample::select(vec!["1", "null", "true", "\"x\"", "[1]"]).prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| {
                let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            })
        })
    }

    proptest! {
        #[test]
        fn a_filter_finds_each_path_and_no_other(json in metadata()) {
            let mut found = BTreeMap::new();
            visit_paths(&json, &mut |path, kind| assert_eq!(found.insert(path.to_owned(), kind), None, "each once"));
            let keys = ["a", "b", ""];
            let mut tried = vec![String::new()];
            for _ in 0..4 {
                let longer = tried.iter().flat_map(|path| keys.map(|key| format!("{path}.{key}")));
                tried = keys.map(str::to_owned).into_iter().chain(longer).collect();
                for path in tried.iter().filter(|path| !path.is_empty()) {
                    let at_path = MetadataPath::parse(path).unwrap();
                    let kind = match at_path.find(&json) {
                        Scalar::Null => None,
                        Scalar::Bool(_) => Some(ScalarType::Boolean),
                        Scalar::Number(_) => Some(ScalarType::Number),
                        Scalar::Text(_) => Some(ScalarType::Text),
                    };
                    prop_assert_eq!(found.get(path).copied(), kind, "{} in {}", path, json);
                }
            }
        }
    }
}
