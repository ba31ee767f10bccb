//! Exact comparison of an answer with the expected one, which reports the place of a difference.

use crate::json::Json;
use std::collections::BTreeMap;
use std::fmt;

/// A difference between an answer and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The place: `series[3].unique_users`; empty for the whole answer.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the answer" } else { &self.path };
        write!(f, "{place}: expected {}, got {}", self.expected, self.got)
    }
}

/// The engine's texts for the identifiers that expected answers leave open ([`Json::Id`]).
#[derive(Clone, Debug, Default)]
pub struct Ids {
    by_name: BTreeMap<String, String>,
    by_text: BTreeMap<String, String>,
}

impl Ids {
    /// Returns the engine's text for `name`, if an answer has shown it.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// Binds `name` to the engine's `text`; returns `false` if it is bound to another text.
    pub fn bind(&mut self, name: &str, text: &str) -> bool {
        let known_text = self.by_name.entry(name.to_owned()).or_insert_with(|| text.to_owned());
        let known_name = self.by_text.entry(text.to_owned()).or_insert_with(|| name.to_owned());
        known_text == text && known_name == name
    }
}

/// Checks that `got` contains all of `expected`: at least the fields of an object, and exactly the
/// elements of a list, in order. An expected `{}` is an empty object. Numbers are compared as exact
/// decimals.
///
/// # Errors The first difference.
pub fn same(expected: &Json, got: &Json, ids: &mut Ids) -> Result<(), Difference> {
    at("", expected, got, ids)
}

fn at(path: &str, expected: &Json, got: &Json, ids: &mut Ids) -> Result<(), Difference> {
    let differs = |expected: String, got: String| Err(Difference { path: path.to_owned(), expected, got });
    match (expected, got) {
        (Json::Object(wanted), Json::Object(fields)) if wanted.is_empty() && !fields.is_empty() => {
            differs("{}".to_owned(), got.to_string())
        }
        (Json::Object(wanted), Json::Object(fields)) => {
            for (key, value) in wanted {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let Some(found) = fields.get(key) else {
                    return Err(Difference { path: inner, expected: value.to_string(), got: "no such field".to_owned() });
                };
                at(&inner, value, found, ids)?;
            }
            Ok(())
        }
        (Json::List(wanted), Json::List(items)) => {
            for (index, (value, found)) in wanted.iter().zip(items).enumerate() {
                at(&format!("{path}[{index}]"), value, found, ids)?;
            }
            if wanted.len() == items.len() {
                return Ok(());
            }
            differs(format!("{} elements: {expected}", wanted.len()), format!("{}: {got}", items.len()))
        }
        (Json::Id(name), Json::Text(text)) if ids.bind(name, text) => Ok(()),
        (Json::Id(name), _) => differs(format!("{name}, known as {:?}", ids.text(name)), got.to_string()),
        _ if expected == got => Ok(()),
        _ => differs(expected.to_string(), got.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(expected: &str, got: &str) -> Result<(), String> {
        let (expected, got) = (Json::parse(expected).unwrap(), Json::parse(got).unwrap());
        same(&expected, &got, &mut Ids::default()).map_err(|difference| difference.path)
    }

    #[test]
    fn fields_may_be_more_and_elements_not() {
        assert_eq!(compare(r#"{"a": 1.50}"#, r#"{"a": 1.5, "b": 2}"#), Ok(()));
        assert_eq!(compare(r#"{"a": 5}"#, r#"{"a": "5"}"#), Err("a".to_owned()));
        assert_eq!(compare(r#"{"a": 13.805992}"#, r#"{"a": 13.8059921}"#), Err("a".to_owned()));
        assert_eq!(compare(r#"{"a": {}}"#, r#"{"a": {"b": 1}}"#), Err("a".to_owned()));
        assert_eq!(compare(r#"{"a": [{"b": 1}]}"#, r#"{"a": [{"b": 2}]}"#), Err("a[0].b".to_owned()));
        assert_eq!(compare(r#"{"a": [1]}"#, r#"{"a": [1, 2]}"#), Err("a".to_owned()));
        assert_eq!(compare(r#"{"a": null}"#, r#"{"b": 1}"#), Err("a".to_owned()));
    }

    #[test]
    fn an_id_keeps_its_spelling() {
        let mut ids = Ids::default();
        let (ada, ben) = (Json::Id("ada".to_owned()), Json::Id("ben".to_owned()));
        assert!(same(&ada, &Json::from("id_1"), &mut ids).is_ok());
        assert!(same(&ada, &Json::from("id_1"), &mut ids).is_ok());
        assert!(same(&ada, &Json::from("id_2"), &mut ids).is_err());
        assert!(same(&ben, &Json::from("id_1"), &mut ids).is_err());
    }
}
