//! Query strings and JSON bodies, read strictly: what an operation doesn't know is refused, so that a mistyped name can't
//! silently change a number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use actix_web::HttpRequest;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::respond::error::ApiError;

/// The query string of a request.
#[derive(Debug)]
pub struct Query {
    values: BTreeMap<String, String>,
}

impl Query {
    /// Reads it; only `allowed` names may be there, each once.
    pub fn read(request: &HttpRequest, allowed: &[&str]) -> Result<Self, ApiError> {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
            if !allowed.contains(&name.as_ref()) {
                return Err(ApiError::unknown_parameter(&name, allowed));
            }
            if values.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(ApiError::parameter(name, "the parameter is given more than once"));
            }
        }
        Ok(Self { values })
    }

    /// Reads it as ingestion does: of each parameter the first, and those that nobody knows are ignored, as older servers
    /// meet newer trackers.
    pub fn read_leniently(request: &HttpRequest) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
            values.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self { values }
    }

    /// A parameter's text, if it is there.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// A parameter's text, of 1 to `max_characters` characters if it is there.
    pub fn filled(&self, name: &str, max_characters: usize) -> Result<Option<&str>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.chars().count() {
            0 => Err(ApiError::parameter(name, format!("`{name}` must not be empty"))),
            characters if characters > max_characters => {
                let message = format!("`{name}` must have at most {max_characters} characters, not {characters}");
                Err(ApiError::parameter(name, message))
            }
            _ => Ok(Some(text)),
        }
    }

    /// A parameter's text, of 1 to `max_characters` characters, which must be there.
    pub fn required(&self, name: &str, max_characters: usize) -> Result<&str, ApiError> {
        self.filled(name, max_characters)?.ok_or_else(|| ApiError::missing(name))
    }

    /// A parameter's word out of a few, or the usual one if it isn't there.
    pub fn word<T: FromStr<Err: Display> + Default>(&self, name: &str) -> Result<T, ApiError> {
        let Some(text) = self.text(name) else { return Ok(T::default()) };
        text.parse().map_err(|error| ApiError::parameter(name, format!("`{name}` {error}, not {:?}", cut(text))))
    }

    /// A parameter's integer within `range`, or `default` if it isn't there.
    pub fn integer(&self, name: &str, range: RangeInclusive<u32>, default: u32) -> Result<u32, ApiError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        digits(text).filter(|value| range.contains(value)).ok_or_else(|| {
            let (first, last) = (range.start(), range.end());
            ApiError::parameter(name, format!("`{name}` must be an integer from {first} to {last}, not {:?}", cut(text)))
        })
    }

    /// How many rows a list is to have at most: the parameter `limit`, from 1 to `most`, or `usual` if it isn't there.
    pub fn limit(&self, most: u32, usual: u32) -> Result<usize, ApiError> {
        Ok(usize::try_from(self.integer("limit", 1..=most, usual)?).unwrap_or(usize::MAX))
    }
}

/// The fields of a JSON object.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    values: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// Reads a body; only `allowed` fields may be there. An empty body is an empty object.
    pub fn read(body: &'a [u8], allowed: &[&str]) -> Result<Self, ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let values: BTreeMap<Name<'a>, &RawValue> = serde_json::from_slice(body)
            .map_err(|error| ApiError::bad_request("invalid_json", format!("the body must be a JSON object: {error}")))?;
        let values: BTreeMap<Cow<'a, str>, &RawValue> = values.into_iter().map(|(Name(name), value)| (name, value)).collect();
        match values.keys().find(|name| !allowed.contains(&name.as_ref())) {
            Some(unknown) => Err(ApiError::unknown_parameter(unknown, allowed)),
            None => Ok(Self { values }),
        }
    }

    /// The JSON text of a field; null is as if absent.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    /// A field, which must be `expected` (in words) if it is there.
    pub fn get<T: Deserialize<'a>>(&self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let value = serde_json::from_str(raw);
        value.map(Some).map_err(|_| ApiError::parameter(name, format!("`{name}` must be {expected}, not {}", cut(raw))))
    }

    /// A text field, if it is there.
    pub fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        self.get(name, "a string")
    }
}

/// A field's own parser, with its message.
pub fn parsed<T>(name: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>, expected: &str) -> Result<T, ApiError> {
    parse(text).ok_or_else(|| ApiError::parameter(name, format!("`{name}` must be {expected}, not {:?}", cut(text))))
}

/// A number in digits alone: no sign.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn cut(text: &str) -> &str {
    headcount_domain::text::cut_chars(text, 64)
}
