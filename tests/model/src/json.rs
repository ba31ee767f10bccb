//! JSON with exact numbers.

use crate::decimal::Decimal;
use crate::sent::whole;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// A JSON value. Numbers are exact decimals: `2.50` equals `2.5`, and 0.1 differs from
/// 0.1000000001.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(BTreeMap<String, Json>),
    /// In an expected answer, an identifier whose spelling is up to the engine. The same name
    /// stands for the same text in every answer, different names for different texts (see
    /// [`crate::compare::Ids`]).
    Id(String),
}

static NULL: Json = Json::Null;

impl Json {
    /// Parses JSON.
    ///
    /// # Errors The position at which the text is not valid JSON.
    pub fn parse(text: &str) -> Result<Json, String> {
        let trimmed = text.trim();
        let read = |what: serde_json::Error| format!("{what} in {trimmed:.200}");
        Ok(match trimmed.as_bytes().first() {
            Some(b'{') => {
                let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(trimmed).map_err(read)?;
                let fields = fields.into_iter().map(|(key, value)| Ok((key, Json::parse(value.get())?)));
                Json::Object(fields.collect::<Result<_, String>>()?)
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(trimmed).map_err(read)?;
                let items = items.iter().map(|item| Json::parse(item.get()));
                Json::List(items.collect::<Result<_, String>>()?)
            }
            Some(b'"') => Json::Text(serde_json::from_str(&whole(trimmed)).map_err(read)?),
            Some(b'-' | b'0'..=b'9') => {
                let raw: &RawValue = serde_json::from_str(trimmed).map_err(read)?;
                let number = Decimal::parse(raw.get());
                Json::Number(number.ok_or_else(|| format!("a number too long to be exact: {trimmed:.60}"))?)
            }
            Some(b't' | b'f') => Json::Bool(serde_json::from_str(trimmed).map_err(read)?),
            _ => serde_json::from_str::<()>(trimmed).map(|()| Json::Null).map_err(read)?,
        })
    }

    /// Creates an object with these fields.
    #[must_use]
    pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
        Json::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Creates a list from an iterator.
    #[must_use]
    pub fn list(items: impl IntoIterator<Item = Json>) -> Json {
        Json::List(items.into_iter().collect())
    }

    /// Returns a field of an object; `null` if there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> &Json {
        match self {
            Json::Object(fields) => fields.get(name).unwrap_or(&NULL),
            _ => &NULL,
        }
    }

    /// Returns the value at a dotted path, with list positions as numbers:
    /// `companies.0.company_id`.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Json> {
        path.split('.').try_fold(self, |at, step| match at {
            Json::Object(fields) => fields.get(step),
            Json::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        })
    }

    /// Returns the text, if the value is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, if the value is one and not empty.
    #[must_use]
    pub fn filled(&self) -> Option<&str> {
        self.text().filter(|text| !text.is_empty())
    }

    /// Returns the number, if the value is one.
    #[must_use]
    pub fn number(&self) -> Option<Decimal> {
        match self {
            Json::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the items of a list; none for other values.
    #[must_use]
    pub fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<Option<String>> for Json {
    fn from(text: Option<String>) -> Json {
        text.map_or(Json::Null, Json::Text)
    }
}

impl From<bool> for Json {
    fn from(truth: bool) -> Json {
        Json::Bool(truth)
    }
}

impl From<usize> for Json {
    fn from(count: usize) -> Json {
        Json::Number(Decimal::from(count as i128))
    }
}

impl From<Decimal> for Json {
    fn from(number: Decimal) -> Json {
        Json::Number(number)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(truth) => write!(f, "{truth}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::Text(text) => f.write_str(&quoted(text)),
            Json::Id(name) => write!(f, "<{name}>"),
            Json::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{}: {value}", if index == 0 { "" } else { ", " }, quoted(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let read = Json::parse(r#" {"a": [0.1, 2.50, 1e2, "7", null, true], "b": {"c": -0.000001}} "#).unwrap();
        let shown = r#"{"a": [0.1, 2.5, 100, "7", null, true], "b": {"c": -0.000001}}"#;
        assert_eq!(read.to_string(), shown);
        assert_eq!(read.at("a.3").and_then(Json::text), Some("7"));
        assert_eq!(Json::parse(shown).unwrap(), read);
        assert!(Json::parse("{").is_err());
        assert!(Json::parse("nul").is_err());
        assert!(Json::parse("1 2").is_err());
    }
}
